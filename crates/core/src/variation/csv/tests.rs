//! Tables that are right, and all the ways in which they are not.

use super::*;

fn read(text: &str) -> Result<Table, String> {
    Table::parse(text, Path::new("c.csv")).map_err(|error| error.to_string())
}

const GOOD: &str = "processor,application,cap_w,gips,power_w
a,EP,51,30,51.2
a,EP,60,40.5,59.99

# another processor
b,EP,60,41,60
b,EP,51,31,50.9
";

#[test]
fn a_table_is_read() {
    let table = read(GOOD).unwrap();
    assert_eq!(table.processors.names(), ["a", "b"]);
    assert_eq!(table.processors.floor(), Watts::from_watts(51));
    // 51.2 W under a cap of 51 W.
    assert_eq!(table.above_cap, Some((1, 2)));
    assert_eq!(table.noise, None);
    let curves = &table.processors.applications()[0].curves;
    assert_eq!(curves[0].least(), Watts::from_milliwatts(51_200));
    assert_eq!(curves[0].most(), Watts::from_milliwatts(59_990));
    assert_eq!(curves[0].peak(), Ips::from_ips(40_500_000_000));
    // It draws 50.9 W at the lowest cap, and the curve begins at the cap: 31 + 10 · 0.1 / 9.1.
    assert_eq!(curves[1].least(), Watts::from_watts(51));
    assert_eq!(curves[1].slowest(), Ips::from_ips(31_109_890_109));
}

#[test]
fn power_is_rounded_up_and_small_falls_are_noise() {
    let text = "a,EP,51,30,50.00001\na,EP,60,40,60\na,EP,65,39.3,65\na,EP,70,50,70";
    let table = read(text).unwrap();
    assert_eq!(table.noise, Some((1, 3)));
    assert_eq!(table.processors.applications()[0].curves[0].knots().len(), 3);
    assert_eq!(read("a,EP,51,30,51.00001").unwrap().above_cap, Some((1, 1)));
}

#[test]
fn mistakes_are_named() {
    let error = |text: &str| read(text).unwrap_err();
    assert_eq!(
        error(""),
        "c.csv: there are no rows; write a heading, processor,application,cap_w,gips,power_w, and \
         rows"
    );
    assert_eq!(
        error("a,EP,51,30"),
        "c.csv, line 1, field 'power_w': 'a,EP,51,30' is not 5 fields; write \
         processor,application,cap_w,gips,power_w"
    );
    assert!(error("a,EP,51,30,1,2").contains("is not 5 fields"));
    assert_eq!(
        error("processor,application,cap_w,gops,power_w\na,EP,51,30,51"),
        "c.csv, line 1, field 'gips': the heading says 'gops' instead of 'gips'; write \
         processor,application,cap_w,gips,power_w"
    );
    assert!(
        error(",EP,51,30,51")
            .starts_with("c.csv, line 1, field 'processor': \"\" is not a valid name")
    );
    assert_eq!(
        error("a,EP,51,0,51"),
        "c.csv, line 1, field 'gips': '0' is not above zero; write billions of instructions per \
         second, such as 46.43"
    );
    assert!(error("a,EP,51,-3,51").contains("field 'gips': '-3' is not above zero"));
    assert!(error("a,EP,x,3,51").contains("field 'cap_w': 'x' is not a number"));
    assert!(error("a,EP,51,3,").contains("field 'power_w': the value is missing"));
    assert!(error("a,EP,51,3,0.0").contains("field 'power_w': '0.0' is not above zero"));
    assert!(error("a,EP,51,3,1000001").contains("field 'power_w': '1000001' is too large"));
    assert!(error("a,EP,51,10001,51").contains("field 'gips': '10001' is too large"));
    assert!(error("a,EP,51,3,99999999999999999999").contains("field 'power_w'"));
}

#[test]
fn what_is_missing_or_twice_is_named() {
    let error = |text: &str| read(text).unwrap_err();
    assert_eq!(
        error("a,EP,51,30,51\na,EP,60,40,60\nb,EP,51,30,51"),
        "c.csv: processor 'b' has no row for EP at 60W, a cap that others have; measure it, or remove that cap \
        everywhere"
    );
    assert_eq!(
        error("a,EP,51,30,51\na,SP,51,40,51\nb,EP,51,30,51"),
        "c.csv: processor 'b' has no rows for SP, which others have; measure it there, or remove the processor or \
        the application"
    );
    let fall = error("a,EP,51,30,51\na,EP,60,40,60\na,EP,65,39.1,65");
    assert!(
        fall.starts_with(
            "c.csv, line 3, field 'gips': 39.100 GIPS at 65W is more than 2 % slower than 40.000 \
             GIPS at 60W in line 2"
        ),
        "{fall}"
    );
}

#[test]
fn repeated_runs_are_summed_up() {
    let table = read("a,EP,51,30,51\na,EP,51.0,33,50\na,EP,51,32,297.65999999999997\n").unwrap();
    let curve = &table.processors.applications()[0].curves[0];
    let knot = Knot { power: Watts::from_milliwatts(297_660), ips: Ips::from_ips(32_000_000_000) };
    assert_eq!(curve.knots(), [knot]);
    let Repeated { points, runs, percent } = table.repeated.unwrap();
    assert_eq!((points, runs, percent.round()), (1, 3, 10.0));
    let said = table.remarks(Path::new("c.csv")).join("\n");
    assert!(said.contains("c.csv: 3 runs of 1 point are summarised by the median speed"), "{said}");
}

#[test]
fn speeds_may_be_of_any_kind() {
    let table = read("processor,application,cap_w,speed,power_w\na,EP,51,0.41,51\n").unwrap();
    assert!(table.is_relative);
    let said = table.remarks(Path::new("c.csv")).join("\n");
    assert!(said.contains("1 GIPS stands for one unit of work in a second"), "{said}");
    assert!(!read(GOOD).unwrap().is_relative);
}

#[test]
fn what_is_written_is_read_again() {
    let knot = |power, ips| Knot { power: Watts::from_milliwatts(power), ips: Ips::from_ips(ips) };
    let row = |cap, knot| Measurement {
        processor: "a",
        application: "EP",
        cap: Watts::from_watts(cap),
        knot,
    };
    let rows = [row(51, knot(51_000, 1)), row(60, knot(59_990, 46_430_000_000))];
    let mut out = Vec::new();
    write(&mut out, rows.into_iter()).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text,
        "processor,application,cap_w,gips,power_w\na,EP,51,0.000000001,51\na,EP,60,46.43,59.99\n"
    );
    let table = read(&text).unwrap();
    let curve = &table.processors.applications()[0].curves[0];
    assert_eq!(curve.knots(), rows.map(|row| row.knot));
}

proptest::proptest! {
    /// No text makes the reader panic.
    #[test]
    fn any_text_gets_an_answer(text in "([a-c,0-9.\\-\n]|a,b,51,3,51\n){0,60}") {
        let _ = read(&text);
    }
}
