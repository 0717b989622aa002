//! Tables as a whole.

use super::*;
use crate::profile::{Origin, Row};
use crate::rows::Number;
use crate::units::{Span, Watts, parse_decimal};
use proptest::prelude::*;
use std::num::NonZeroU32;

fn read_as(layout: &Layout, text: &str) -> Result<Sheet, String> {
    Sheet::parse(text, Path::new("sp.csv"), layout).map_err(|error| error.to_string())
}

fn read(text: &str) -> Result<Sheet, String> {
    read_as(&Layout::default(), text)
}

fn written(profiles: &[Profile]) -> String {
    let mut text = Vec::new();
    write(&mut text, profiles).unwrap();
    String::from_utf8(text).unwrap()
}

const HEADING: &str = "application,nodes,cores,cap_w,time_s,power_w";

#[test]
fn the_table_of_the_paper() {
    let sheet = read(
        "\u{feff}# SP-MZ\napplication,nodes,cores,cap_w,power_w,time_s\r\n\
         SP-MZ, 8, 12, 65, 783.8, 415.3\n\nSP-MZ,6,16,115,796.4,447.90\nLU-MZ,8,10,80,1,2\n",
    )
    .unwrap();
    let names: Vec<&str> = sheet.measured.iter().map(|m| m.application.as_str()).collect();
    assert_eq!(names, ["SP-MZ", "LU-MZ"]);
    let profiles = sheet.profiles();
    let rows = &profiles[0].rows;
    assert_eq!(
        rows[0],
        Row {
            configuration: Configuration { nodes: 6, cores: 16, cap: Watts::from_watts(115) },
            time: Span::from_millis(447_900),
            power: Watts::from_milliwatts(796_400),
            origin: Origin::Measured,
        }
    );
    assert_eq!(sheet.line_of("SP-MZ", &rows[0].configuration), Some(5));
    assert_eq!(sheet.line_of("SP-MZ", &rows[1].configuration), Some(3));
    assert_eq!(sheet.line_of("BT-MZ", &rows[1].configuration), None);
    assert_eq!(
        written(&sheet.profiles()),
        "application,nodes,cores,cap_w,time_s,power_w,origin\n\
         SP-MZ,6,16,115,447.9,796.4,measured\n\
         SP-MZ,8,12,65,415.3,783.8,measured\n\
         LU-MZ,8,10,80,2,1,measured\n"
    );
}

#[test]
fn what_is_wrong_is_named_by_line_and_field() {
    let error = |rows: &str| read(&format!("{HEADING}\n{rows}")).unwrap_err();
    assert!(error("").starts_with("sp.csv has no rows; write a heading, application,nodes,"));
    assert_eq!(read("# nothing\n").unwrap_err(), error(""));
    assert_eq!(
        error("SP,8,12,65,1,1\nSP,8,12,65,0,1"),
        "sp.csv, line 3, field 'time_s': '0' is not above zero; \
         write seconds, such as 415.3"
    );
    assert!(error("SP,8,12,65,1,-4").starts_with("sp.csv, line 2, field 'power_w': '-4' is not"));
    assert!(error("SP,0,12,65,1,1").starts_with("sp.csv, line 2, field 'nodes'"));
    assert!(error("SP,8,many,65,1,1").starts_with("sp.csv, line 2, field 'cores'"));
    assert!(error(",8,12,65,1,1").starts_with("sp.csv, line 2, field 'application'"));
    assert_eq!(
        error("SP,8,12,65,1"),
        "sp.csv, line 2: there are 5 fields, but the heading has 6; \
         quote fields that hold a comma"
    );
    assert!(error("SP").contains("there is 1 field, but the heading has 6"));
    assert_eq!(
        read("SP,8,12,65,1,1\n").unwrap_err(),
        "sp.csv, line 1: the heading is missing, because 'SP,8,12,65,1,1' has no column name; write one first, \
        application,nodes,cores,cap_w,time_s,power_w,origin"
    );
    assert!(error("\"SP,8,12,65,1,1").starts_with("sp.csv, line 2: a quote is opened"));
    assert_eq!(
        read(&format!(
            "{HEADING},origin\nSP,8,12,65,1,1,measured\nLU,8,12,65,1,1,measured\n#\n\
             SP,8,12,65.0,2,2,predicted"
        ))
        .unwrap_err(),
        "sp.csv, line 5: SP on 8 nodes × 12 cores at 65W is in line 2 already; keep one"
    );
    let missing = read("application,nodes,cores,cap_w,runtime,power_w\n").unwrap_err();
    assert!(
        missing
            .starts_with("sp.csv, line 1, column 'time_s': it is missing; the columns are: appl"),
        "{missing}"
    );
}

#[test]
fn files_of_others_are_read_as_they_are_meant() {
    let layout = Layout {
        sockets_per_cap: NonZeroU32::new(2).unwrap(),
        cap_range: Some("50W..100W".parse().unwrap()),
        ignore_other_columns: true,
        ..Layout::new(
            ["application=class/app", "cap=both_w", "time=run", "power=pkg"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            ["nodes=1", "cores=24", "origin=predicted"].map(|text| text.parse().unwrap()).to_vec(),
        )
        .unwrap()
    };
    let read = |rows: &str| read_as(&layout, &format!("class,app,both_w,run,pkg,notes\n{rows}"));
    let sheet = read("big,lu,125,54.09,75.14,\"hot, noisy\"\n").unwrap();
    assert_eq!(
        written(&sheet.profiles()).lines().last(),
        Some("big/lu,1,24,62.5,54.09,75.14,predicted")
    );
    assert_eq!(
        read("big,lu,80,54.09,75.14,\n").unwrap_err(),
        "sp.csv, line 2, field 'both_w': a cap of 40W a socket is outside 50W..100W"
    );
    assert_eq!(
        read("big,lu,125.001,54.09,75.14,\n").unwrap_err(),
        "sp.csv, line 2, field 'both_w': 125.001W cannot be divided among 2 sockets to the milliwatt"
    );
    assert!(
        read("big,,125,54.09,75.14,\n")
            .unwrap_err()
            .contains("field 'class/app': the name is missing")
    );
    assert!(
        read("big,lu,125,54.09,,\n").unwrap_err().contains("field 'pkg': the value is missing")
    );
}

#[test]
fn columns_may_be_separated_in_other_ways() {
    let plain = format!("{HEADING},origin\nSP,8,12,65,1.5,1,\n\"L;U\",8,12,65,1.5,1,predicted\n");
    let plain = plain.replace("1,\n", "1,measured\n");
    let expected = read(&plain).unwrap().profiles();
    for separator in [";", "\t", " ; ", "\t "] {
        let text = plain.replace(',', separator);
        assert_eq!(read(&text).unwrap().profiles(), expected, "{separator:?}");
    }
    // An empty field at either end is a field.
    let layout = Layout { ignore_other_columns: true, ..Layout::default() };
    let text = format!("note,{HEADING},more\n,SP,8,12,65,1,1,\n").replace(',', "\t");
    assert_eq!(read_as(&layout, &text).unwrap().measured.len(), 1);
    let decimal_comma = format!("{HEADING}\nSP,8,12,65,1!5,1\n").replace(',', ";");
    assert_eq!(
        read(&decimal_comma.replace('!', ",")).unwrap_err(),
        "sp.csv, line 2, field 'time_s': '1,5' is not a plain number; write seconds, such as 415.3"
    );
}

#[test]
fn other_encodings_are_named() {
    let decode = |bytes: &[u8]| {
        let sheet = Sheet::decode(bytes, Path::new("sp.csv"), &Layout::default());
        sheet.unwrap_err().to_string()
    };
    let latin = [HEADING.as_bytes(), b"\nSP,8,12,65,1,1\nA\xe9,8,12,65,1,1\n"].concat();
    assert!(decode(&latin).starts_with("sp.csv, line 3: this is not UTF-8 text; save"));
    let wide: Vec<u8> = HEADING.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(decode(&[b"\xff\xfe", &wide[..]].concat()).contains("line 1: this is not UTF-8"));
}

#[test]
fn powers_beyond_all_sockets_are_noticed() {
    let implausible = |rows: &str| read(&format!("{HEADING}\n{rows}")).unwrap().implausible();
    // 8 sockets × 50 W × 2 nodes are 800 W.
    assert_eq!(implausible("SP,2,1,50,1,800\n"), None);
    assert_eq!(implausible("SP,1,1,50,1,20\nSP,2,1,50,1,800.001\nA,1,1,50,1,9000"), Some((2, 3)));
}

fn noted<'a>(sheet: &'a Sheet, words: &str) -> Option<&'a str> {
    sheet.notes.iter().map(String::as_str).find(|note| note.contains(words))
}

#[test]
fn repeated_measurements_are_summed_up() {
    let sheet = read(&format!(
        "{HEADING},repetition\nSP,1,1,50,10,40,1\nSP,1,1,50,12,45,2\nSP,1,1,50,11,44,3\n\
         SP,1,1,60,9,50,1\n"
    ));
    let sheet = sheet.unwrap();
    let rows = &sheet.profiles()[0].rows;
    assert_eq!(
        (rows.len(), rows[0].time, rows[0].power),
        (2, Span::from_secs(11), Watts::from_watts(45))
    );
    let said = noted(&sheet, "are summarised by").unwrap();
    assert!(said.starts_with("3 runs of 1 configuration are summarised by"), "{said}");
    assert!(said.ends_with("differ by up to 20.0 % (SP on 1 node × 1 core at 50W)"), "{said}");
    assert_eq!(noted(&sheet, "are ignored"), Some("unknown columns are ignored: repetition"));
}

#[test]
fn rows_without_a_cap_have_the_highest() {
    let heading = "application,nodes,cores,socket_cap_w,socket_memory_cap_w,time_s,power_w";
    let rows = "A,2,8,100,20,10,380\nA,2,8,,,9,460\nA,2,8,50,15,20,250\n";
    let sheet = read(&format!("{heading}\n{rows}")).unwrap();
    // 100 W and 20 W again, with 9 s: the slower one of two counts.
    let rows_of = |sheet: &Sheet| -> Vec<(u64, u64)> {
        let profile = sheet.profiles().remove(0);
        profile.rows.iter().map(|r| (r.configuration.cap.milliwatts(), r.time.millis())).collect()
    };
    assert_eq!(rows_of(&sheet), [(65_000, 20_000), (120_000, 10_000)]);
    assert_eq!(
        noted(&sheet, "without a cap"),
        Some(
            "1 row without a cap counts as 100W a socket, the highest in the table; 1 row without a \
             memory cap counts as 20W a socket, the highest in the table"
        )
    );
    let layout = Layout { highest_cap: Some(Watts::from_watts(130)), ..Layout::default() };
    let sheet = read_as(&layout, &format!("{heading}\n{rows}")).unwrap();
    assert_eq!(rows_of(&sheet).last(), Some(&(150_000, 9000)));
    let layout = Layout { highest_cap: Some(Watts::from_watts(90)), ..Layout::default() };
    assert_eq!(
        read_as(&layout, &format!("{heading}\n{rows}")).unwrap_err(),
        "sp.csv, line 2, field 'socket_cap_w': 100W a socket is above --highest-cap 90W"
    );
    assert!(
        read(&format!("{heading}\nA,2,8,,,9,460\n"))
            .unwrap_err()
            .starts_with("sp.csv, line 2, field 'socket_cap_w': no row has a cap")
    );
}

#[test]
fn power_that_was_not_measured_is_a_bound() {
    let layout = Layout { sockets: NonZeroU32::new(2), ..Layout::default() };
    let sheet = read_as(&layout, "application,nodes,cores,cap_w,time_s\nCG,22,24,64,47.3946\n");
    let sheet = sheet.unwrap();
    assert_eq!(
        written(&sheet.profiles()).lines().last(),
        Some("CG,22,24,64,47.395,2816,bound"),
        "22 nodes × 2 sockets × 64 W"
    );
    assert!(noted(&sheet, "1 row have the upper bound nodes × 2 sockets × cap").is_some());
    // What is drawn beyond the caps is counted.
    let sheet = read_as(&layout, &format!("{HEADING}\nSP,1,1,50,1,101\nSP,1,1,60,1,126\n"));
    assert_eq!(
        noted(&sheet.unwrap(), "× cap"),
        Some("2 rows draw more than nodes × 2 sockets × cap, at worst 5.0 % (line 3)")
    );
}

#[test]
fn energy_stands_for_power() {
    let sheet = read("application,nodes,cores,cap_w,time_s,energy_j\nA,1,1,50,2.5,100.001\n");
    let power = sheet.unwrap().profiles()[0].rows[0].power;
    assert_eq!(power, Watts::from_milliwatts(40_001), "40.0004 W, rounded up");
    let layout = Layout { power_is_of_node: true, ..Layout::default() };
    let sheet = read_as(&layout, &format!("{HEADING}\nA,4,1,50,1,40.5\n")).unwrap();
    assert_eq!(sheet.profiles()[0].rows[0].power, Watts::from_watts(162), "of four nodes");
}

#[test]
fn problems_of_several_sizes_have_names_of_their_own() {
    let sheet = read(
        "class,app,nodes,cores,cap_w,time_s,power_w\nbig,lu,1,1,50,9,40\nsmall,lu,1,1,50,1,40\n\
         big,ua,1,1,50,9,40\n",
    );
    let sheet = sheet.unwrap();
    let names: Vec<&str> = sheet.measured.iter().map(|m| m.application.as_str()).collect();
    assert_eq!(names, ["lu/big", "lu/small", "ua"]);
    assert_eq!(
        noted(&sheet, "size"),
        Some("each problem size is a separate application: lu/big, lu/small")
    );
    // Without a column that tells them apart, a large spread is a sign.
    let sheet = read(&format!("{HEADING}\nlu,1,1,50,9,40\nlu,1,1,50,1,40\n")).unwrap();
    assert!(noted(&sheet, "(--column size=NAME)").is_some());
}

/// Any profile: some rows, in order, each configuration once.
fn profile() -> impl Strategy<Value = Profile> {
    let key = (1..4u32, 1..4u32, 1..4000u64);
    let value = (1..4000u64, 1..=Watts::LARGEST.milliwatts(), any::<bool>());
    let rows = prop::collection::btree_map(key, value, 1..9);
    ("[#a\", é/-]{0,5}x", rows).prop_map(|(name, rows)| Profile {
        application: name.trim().to_owned(),
        rows: rows
            .into_iter()
            .map(|((nodes, cores, cap), (time, power, is_measured))| Row {
                configuration: Configuration { nodes, cores, cap: Watts::from_milliwatts(cap) },
                time: Span::from_millis(time),
                power: Watts::from_milliwatts(power),
                origin: if is_measured { Origin::Measured } else { Origin::Predicted },
            })
            .collect(),
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(profile in profile()) {
        let text = written(std::slice::from_ref(&profile));
        let sheet = read(&text).unwrap();
        prop_assert_eq!(&sheet.profiles(), &[profile]);
        prop_assert_eq!(written(&sheet.profiles()), text);
    }

    #[test]
    fn what_is_exact_is_read_as_everywhere(text in "[0-9]{0,12}\\.?[0-9]{0,3}") {
        let plain = parse_decimal(&text, 1000).ok();
        prop_assert_eq!(Number::read(&text).and_then(|number| number.up(3)), plain);
    }

    #[test]
    fn no_text_makes_it_panic(text in "([a,\"\n#0-9.-]|nodes|cores|application){0,60}") {
        let _ = read(&text);
        let _ = read(&format!("{HEADING}\n{text}"));
    }
}
