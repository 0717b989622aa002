//! Dates, prices and carbon: what runs cost, against plain sums, and real files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use busbar::budget::BudgetSpec;
use busbar::calendar::{Calendar, Condition, RunDates, Windows};
use busbar::job::Job;
use busbar::machine::{Cooling, Machine};
use busbar::policy::{Fcfs, plain};
use busbar::sim::{PowerSample, Run, Simulation};
use busbar::tariff::{TariffSpec, parse_carbon, parse_outdoor, parse_price};
use busbar::units::{Instant, Span, Watts};
use busbar::workload::Workload;
use busbar::workload::demo::demo;
use busbar::workload::swf::{self, BadRecords};
use busbar_needs::needs;

fn dated(workload: Workload, start: &str) -> Workload {
    workload.dated(Ok(start.parse().unwrap()))
}

/// The power drawn over time as parts of one power each: from when, until when.
fn parts(run: &Run) -> Vec<(Instant, Instant, Watts)> {
    let ends = run.power.iter().skip(1).map(|sample| sample.at).chain([run.end]);
    let part = |(sample, end): (&PowerSample, Instant)| {
        (sample.at.min(run.end), end.min(run.end), sample.power)
    };
    run.power.iter().zip(ends).map(part).collect()
}

/// What the site draws is what somebody finds who looks at each minute: the power of the machine times the PUE of the
/// hour. The temperatures of six hours come again and again; at each of them the PUE can be read off the points.
#[test]
fn cooling_follows_the_temperature_outdoors() {
    let points = [(0.0, 1.1), (10.0, 1.3), (30.0, 1.5)];
    let cooling = Cooling::by_temperature(&points, false).unwrap();
    let machine = Machine { cooling: Some(cooling), ..Machine::of_processors(256).unwrap() };
    let hours = [("-5", 11), ("0", 11), ("5", 12), ("10", 13), ("20", 14), ("33", 15)];
    let rows =
        hours.iter().enumerate().map(|(hour, (degrees, _))| format!("{},{degrees}\n", 3600 * hour));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weather.csv");
    std::fs::write(&file, format!("time,outdoor_c\n{}", rows.collect::<String>())).unwrap();
    let demo = demo();
    let jobs = demo.jobs().iter().zip(demo.run_times()).take(300);
    let workload = Workload::new("some", jobs.map(|(job, time)| (*job, *time)));
    let spec = TariffSpec {
        price: Some(parse_price("0.30EUR/kWh").unwrap()),
        outdoor: Some(parse_outdoor(&format!("{} repeat", file.display())).unwrap()),
        ..TariffSpec::default()
    };
    let tariff = spec.resolve(&workload.dates(), Instant::ZERO, Instant::ZERO).unwrap();
    let run = Simulation::new(&machine, &workload)
        .keep_power(true)
        .tariff(&tariff, None)
        .run(plain().as_mut());
    let (mut energy, mut peak) = (0u128, 0u64);
    for (from, until, power) in parts(&run) {
        let mut at = from.millis();
        while at < until.millis() {
            let next = (at / 3_600_000 + 1) * 3_600_000;
            let (_, tenths) = hours[(at / 3_600_000 % 6) as usize];
            let site = (power.milliwatts() * tenths).div_ceil(10);
            let end = next.min(until.millis());
            energy += u128::from(site) * u128::from(end - at);
            (peak, at) = (peak.max(site), end);
        }
    }
    let site = run.site.unwrap();
    assert_eq!((site.energy.microjoules(), site.peak.milliwatts()), (energy, peak));
    assert_eq!(site.unknown, Span::ZERO);
    // 0.30 EUR for each kilowatt hour, in millionths, rounded up.
    let cost = (energy as i128 * 300_000 + 3_599_999_999_999) / 3_600_000_000_000;
    assert_eq!(run.charges.unwrap().energy, Some(cost));
    assert!(run.end.since(run.begin) > Span::from_secs(12 * 3600));

    // Without 'repeat', the highest PUE counts after six hours.
    let once = TariffSpec {
        outdoor: Some(parse_outdoor(&file.display().to_string()).unwrap()),
        ..TariffSpec::default()
    };
    let tariff = once.resolve(&workload.dates(), Instant::ZERO, Instant::ZERO).unwrap();
    let again = Simulation::new(&machine, &workload).tariff(&tariff, None).run(plain().as_mut());
    let site = again.site.unwrap();
    assert!(site.energy.microjoules() > energy && again.energy == run.energy);
    assert_eq!(site.unknown, run.end.since(Instant::from_secs(6 * 3600)));
}

/// What is added up as the run goes on is what somebody finds who looks at each minute of it. The clocks of
/// Berlin are set back on the second day.
#[test]
fn sums_are_those_of_a_walk_along_the_power() {
    let machine = Machine::of_processors(256).unwrap();
    // Whole minutes, so that a minute has one power and one price.
    let minute = |millis: u64| Instant::from_millis(millis / 60_000 * 60_000);
    let demo = demo();
    let jobs = demo.jobs().iter().zip(demo.run_times()).take(900).map(|(job, run_time)| {
        let run_time = Span::from_millis(minute(run_time.millis()).millis() + 60_000);
        let requested = Span::from_millis(minute(job.requested.millis()).millis() + 60_000);
        (
            Job { submit: minute(job.submit.millis()), requested: requested.max(run_time), ..*job },
            run_time,
        )
    });
    let workload = dated(Workload::new("minutes", jobs), "2026-10-24 07:00 Europe/Berlin");
    let dates = workload.dates();
    let calendar = workload.calendar().unwrap();
    let spec = TariffSpec {
        price: Some(parse_price("sat+sun 02:00-03:00: -0.07EUR/kWh, weekdays 07:00-20:00: 0.3213EUR/kWh, else 0.24EUR/kWh").unwrap()),
        carbon: Some(parse_carbon("10:15-16:45: 123.4g/kWh, else 456.7g/kWh").unwrap()),
        demand: Some("11.5EUR/kW".parse().unwrap()),
        outdoor: None,
    };
    let tariff = spec.resolve(&dates, Instant::ZERO, Instant::ZERO).unwrap();
    let condition: Condition = "weekdays 14:00-18:00".parse().unwrap();
    let windows = Windows::of(&condition, &dates).unwrap();
    let budget = "80%".parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
    let run = Simulation::new(&machine, &workload)
        .budget(budget)
        .keep_power(true)
        .tariff(&tariff, Some(&windows))
        .run(plain().as_mut());
    let charges = run.charges.unwrap();

    // In billionths for each kilowatt hour, times milliwatts times minutes.
    let (mut cost, mut carbon, mut in_window, mut open) = (0i128, 0i128, 0i128, 0u64);
    let (mut quarters, mut energy) = (BTreeMap::<i64, ((i16, i8), u128)>::new(), 0u128);
    for (from, until, power) in parts(&run) {
        assert!(from.millis().is_multiple_of(60_000) && until.millis().is_multiple_of(60_000));
        for at in (from.millis()..until.millis()).step_by(60_000).map(Instant::from_millis) {
            let wall = calendar.wall(at);
            let (day, hour, clock) =
                (wall.weekday().to_monday_zero_offset(), wall.hour(), (wall.hour(), wall.minute()));
            let price = match (day, hour) {
                (5 | 6, 2) => -70_000_000,
                (0..5, 7..20) => 321_300_000,
                _ => 240_000_000,
            };
            let grams = if ((10, 15)..(16, 45)).contains(&clock) {
                123_400_000_000
            } else {
                456_700_000_000
            };
            let drawn = i128::from(power.milliwatts());
            cost += drawn * price;
            carbon += drawn * grams;
            if day < 5 && (14..18).contains(&hour) {
                in_window += drawn;
                open += 1;
            }
            energy += u128::from(power.milliwatts()) * 60_000;
            let quarter = calendar.time(at).as_second().div_euclid(900);
            let of = quarters.entry(quarter).or_insert(((wall.year(), wall.month()), 0));
            of.1 += u128::from(power.milliwatts()) * 60_000;
        }
    }
    assert_eq!(energy, run.energy.microjoules());
    // A kilowatt hour has 60 million milliwatt minutes; what is counted is in millionths, rounded up.
    let micros = |sum: i128| -(-sum).div_euclid(60_000_000 * 1000);
    assert_eq!(charges.energy, Some(micros(cost)));
    assert_eq!(charges.carbon, Some(micros(carbon)));
    let window = charges.window.unwrap();
    assert_eq!(window.energy.microjoules(), in_window as u128 * 60_000);
    assert_eq!(window.time, Span::from_millis(open * 60_000));
    assert!(open > 0 && cost != 0);
    let mut months = BTreeMap::<(i16, i8), u128>::new();
    for (month, energy) in quarters.into_values() {
        let highest = months.entry(month).or_default();
        *highest = (*highest).max(energy.div_ceil(900_000));
    }
    assert!(months.len() > 1, "{months:?}");
    assert_eq!(charges.months as usize, months.len());
    let total: u128 = months.values().sum();
    assert_eq!(charges.demand, Some((total * 11_500_000).div_ceil(1_000_000) as i128));
}

/// 100 W for two hours on one node, the second of which is not priced.
#[test]
fn what_has_no_price_is_not_free() {
    let machine = Machine::of_processors(1).unwrap();
    let two_hours = Span::from_secs(7200);
    let job = Job::new(1, Instant::ZERO, 1, two_hours);
    let workload = Workload::new("one", [(job, two_hours)]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.csv");
    std::fs::write(&path, "time,price_eur_per_mwh\n0,300\n1800,300\n").unwrap();
    let dates = RunDates { until: Instant::from_secs(90_000), ..RunDates::unknown() };
    let cost = |text: String| {
        let spec = TariffSpec { price: Some(parse_price(&text).unwrap()), ..TariffSpec::default() };
        let tariff = spec.resolve(&dates, Instant::ZERO, Instant::ZERO).unwrap();
        let run = Simulation::new(&machine, &workload).tariff(&tariff, None).run(&mut Fcfs);
        (run.energy.as_f64(), run.charges.unwrap())
    };
    let (energy, charges) = cost(path.display().to_string());
    assert_eq!((charges.energy, charges.unpriced), (None, Span::from_secs(3600)));
    let (_, charges) = cost(format!("{} repeat", path.display()));
    assert_eq!(charges.energy, Some((energy / 3.6e6 * 0.3 * 1e6).round() as i128));
}

/// The header of a log of the archive says when it starts, and where.
#[needs(logs)]
#[test]
fn logs_of_the_archive_have_dates() {
    let folder = PathBuf::from(std::env::var_os("BUSBAR_TRACES").unwrap());
    for (file, start) in [
        // As the headers say: 'Mon Sep 23 14:00:31 CEST 1996', 'Tue Jan 30 08:37:58 PST 2007',
        // 'Fri Apr 24 18:11:04 PDT 1998'.
        ("KTH-SP2-1996-2.1-cln.swf.gz", "1996-09-23T14:00:31+02:00[Europe/Stockholm]"),
        ("LLNL-Thunder-2007-1.1-cln.swf.gz", "2007-01-30T08:37:58-08:00[US/Pacific]"),
        ("SDSC-SP2-1998-4.2-cln.swf.gz", "1998-04-24T18:11:04-07:00[US/Pacific]"),
    ] {
        let mut workload = swf::read_path(folder.join(file), BadRecords::Stop).unwrap().workload;
        assert_eq!(workload.calendar().map(Calendar::to_string).as_deref(), Ok(start), "{file}");
        let date =
            |workload: &Workload| workload.calendar().unwrap().shown(workload.jobs()[0].submit);
        let job = workload.jobs()[1000].submit;
        let known = workload.calendar().unwrap().shown(job);
        workload.slice(1000..2000);
        assert_eq!(date(&workload), known, "a part of a log has the dates of the log");
    }
}

/// A kilowatt through the year 2023 in Germany.
#[needs(power)]
#[test]
fn a_year_of_carbon_intensity_is_read_as_it_is() {
    let folder = PathBuf::from(std::env::var_os("BUSBAR_POWER").unwrap());
    let path = folder.join("carbon_intensity_2023_hourly.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    let column = |line: &str| line.split(',').nth(2).unwrap().parse::<f64>().unwrap();
    let sum: f64 = text.lines().skip(1).map(column).sum();
    let machine =
        Machine { base_power: Watts::from_watts(900), ..Machine::of_processors(1).unwrap() };
    let year = Span::from_secs(8760 * 3600);
    let job = Job::new(1, Instant::ZERO, 1, year);
    let workload = dated(Workload::new("a year", [(job, year)]), "2023-01-01 01:00 Europe/Berlin");
    let spec = TariffSpec {
        carbon: Some(parse_carbon(&format!("{}:DE", path.display())).unwrap()),
        ..TariffSpec::default()
    };
    let tariff = spec.resolve(&workload.dates(), Instant::ZERO, Instant::ZERO).unwrap();
    let run = Simulation::new(&machine, &workload).tariff(&tariff, None).run(&mut Fcfs);
    let kilowatts = run.energy.as_f64() / year.secs_f64() / 1000.0;
    let grams = run.charges.unwrap().carbon.unwrap() as f64 / 1e6;
    assert!((grams - sum * kilowatts).abs() < 1e-3, "{grams} g, {sum} times {kilowatts}");
    // A log of another year is not covered, and the error says what to do.
    let late = dated(workload, "2024-01-01 00:00 UTC");
    let error = spec.resolve(&late.dates(), Instant::ZERO, Instant::ZERO).unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        why.contains("add 'repeat'") && why.contains("2023-01-01 00:00 to 2024-01-01 00:00"),
        "{why}"
    );
}
