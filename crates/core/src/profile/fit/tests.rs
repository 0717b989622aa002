//! Tests of the model as a whole.

use busbar_needs::needs;

use super::*;
use crate::profile::cab::{self, Preset};
use crate::units::Share;

mod choice;

fn configuration(nodes: u32, cores: u32, cap: u32) -> Configuration {
    Configuration { nodes, cores, cap: Watts::from_watts(cap) }
}

fn row(configuration: Configuration, seconds: f64, watts: f64) -> Row {
    Row {
        configuration,
        time: Span::from_millis((seconds * 1000.0).round() as u64),
        power: Watts::from_f64_rounded_up(watts).unwrap(),
        origin: Origin::Measured,
    }
}

/// A polynomial of the kind that is to be found.
fn known(configuration: Configuration) -> Row {
    let n = f64::from(configuration.nodes).ln();
    let c = f64::from(configuration.cores).ln();
    let p = configuration.cap.as_f64().ln();
    let time = 14.0 - 1.2 * n - 0.8 * c - 0.5 * p + 0.09 * n * n + 0.02 * c * c + 0.03 * p * p
        - 0.01 * n * c
        + 0.02 * n * p
        - 0.03 * c * p;
    let power = 0.5 + 0.9 * n + 0.4 * c + 1.1 * p - 0.02 * n * n - 0.03 * c * c - 0.04 * p * p
        + 0.01 * n * c
        + 0.015 * n * p
        - 0.005 * c * p;
    row(configuration, time.exp(), power.exp())
}

fn chosen(rows: &[Row], training: Training) -> Vec<Row> {
    choose(rows, &training).into_iter().map(|index| rows[index]).collect()
}

const TENTH: Share = Share::percent(10);

#[test]
fn a_known_polynomial_is_found() {
    let rows: Vec<Row> = cab::configurations().map(known).collect();
    for training in
        [Training::Random { share: TENTH, seed: 1 }, Training::Designed { share: TENTH }]
    {
        let model = fit("known", &chosen(&rows, training)).unwrap();
        assert_eq!((model.coefficients(), model.trained_on().len()), (10, 38));
        let errors = errors(&model, &rows).unwrap();
        assert_eq!(errors.points, 375 - 38);
        // Rows are rounded to a millisecond and a milliwatt, of seconds and hundreds of watts.
        assert!(errors.time.maximum < 1e-4, "{training:?}: {errors:?}");
        assert!(errors.power.maximum < 1e-4, "{training:?}: {errors:?}");
        assert_eq!(errors.power_far_too_low, 0.0);
    }
}

#[test]
fn what_does_not_vary_is_left_out() {
    let rows: Vec<Row> = [40, 50, 60, 70, 80].map(|cap| known(configuration(1, 16, cap))).to_vec();
    let model = fit("one node", &rows).unwrap();
    assert_eq!(model.coefficients(), 3);
    let asked = configuration(1, 16, 65);
    let (predicted, truth) = (model.predict(&asked).unwrap(), known(asked));
    assert!((predicted.time.secs_f64() / truth.time.secs_f64() - 1.0).abs() < 1e-4);
    assert!((predicted.power.as_f64() / truth.power.as_f64() - 1.0).abs() < 1e-4);
    assert_eq!(model.predict(&configuration(2, 16, 65)), None);
}

#[test]
fn errors_worked_out_by_hand() {
    // Trained on one configuration, a model is a constant: 100 s, 200 W.
    let model = fit("constant", &[row(configuration(1, 8, 50), 100.0, 200.0); 2]).unwrap();
    assert_eq!(model.coefficients(), 1);
    // A row of the same configuration was trained on, another configuration is not covered.
    let rows = [row(configuration(1, 8, 50), 50.0, 50.0), row(configuration(2, 8, 50), 50.0, 50.0)];
    assert_eq!(errors(&model, &rows), None);
    assert_eq!(silence(&model, &rows), Silence { uncovered: 1, beyond_measure: 0 });

    // On caps with the same figures the model is the same for every cap.
    let flat = |cap, seconds, watts| row(configuration(1, 8, cap), seconds, watts);
    let model = fit("flat", &[40, 50, 100, 110].map(|cap| flat(cap, 100.0, 200.0))).unwrap();
    let rows = [
        flat(60, 80.0, 250.0),
        flat(70, 125.0, 200.0),
        flat(80, 100.0, 160.0),
        flat(90, 200.0, 210.0),
    ];
    let errors = errors(&model, &rows).unwrap();
    assert_eq!((errors.points, silence(&model, &rows).rows()), (4, 0));
    let near = |value: f64, expected: f64| {
        assert!((value - expected).abs() < 1e-4, "{value} for {expected}");
    };
    // Times: 25 % too high, 20 % too low, right, 50 % too low.
    near(errors.time.lower_quartile, 0.15);
    near(errors.time.median, 0.225);
    near(errors.time.upper_quartile, 0.3125);
    near(errors.time.mean, 0.2375);
    near(errors.time.maximum, 0.5);
    // Powers: 20 % too low, right, 25 % too high, 4.8 % too low.
    near(errors.power.maximum, 0.25);
    near(errors.power_far_too_low, 0.25);
    near(errors.worst_power_too_low, 0.2);
}

#[test]
fn rows_that_cannot_be_fitted_say_why() {
    let rows: Vec<Row> = cab::configurations().map(known).collect();
    let message = |rows: &[Row]| fit("BT-MZ", rows).unwrap_err().to_string();
    let few = cab::configurations().step_by(42).map(known).collect::<Vec<_>>();
    assert_eq!(
        message(&few),
        "BT-MZ: 9 measured rows are too few for a model of 10 coefficients; give at least 11"
    );
    assert_eq!(
        message(&[]),
        "BT-MZ: 0 measured rows are too few for a model of 1 coefficient; give at least 2"
    );
    let mut zero = rows.clone();
    zero[7].power = Watts::ZERO;
    assert_eq!(
        message(&zero),
        "BT-MZ on 8 nodes × 10 cores at 80W: the power is zero; correct the row or leave it out"
    );
    // Twice the nodes, always twice the cores: nobody can say which of them it was.
    let together = (1..40).map(|factor| known(configuration(factor, 2 * factor, 60 + factor % 7)));
    assert_eq!(
        message(&together.collect::<Vec<_>>()),
        "BT-MZ: nodes, cores and cap vary together in 39 rows, or nearly so, and their effects \
         cannot be told apart; add rows in which they vary independently"
    );
    // Here and there a core more changes little.
    let nearly = (20..60).map(|n| known(configuration(n, 2 * n + n % 2, 60 + n % 7)));
    assert!(message(&nearly.collect::<Vec<_>>()).contains("vary together in 40 rows, or nearly"));
    let mut predicted = rows;
    predicted.iter_mut().for_each(|row| row.origin = Origin::Predicted);
    assert!(matches!(fit("x", &predicted), Err(FitError::TooFew { rows: 0, .. })));
}

#[test]
fn predictions_are_never_zero_and_never_endless() {
    // Steep enough to leave every measure within a few doublings.
    let steep: Vec<Row> = [(1, 1e6), (2, 1.0), (4, 0.001), (8, 0.001)]
        .map(|(nodes, figure)| row(configuration(nodes, 8, 50), figure, figure))
        .to_vec();
    let model = fit("steep", &steep).unwrap();
    for nodes in [1, 2, 3, 4, 8, 1 << 10, 1 << 20, u32::MAX] {
        if let Some(prediction) = model.predict(&configuration(nodes, 8, 50)) {
            assert!(prediction.time > Span::ZERO && prediction.power > Watts::ZERO);
        }
    }
    assert_eq!(model.predict(&configuration(u32::MAX, 8, 50)), None);
    assert_eq!(model.predict(&configuration(0, 8, 50)), None);
    let far = row(configuration(u32::MAX, 8, 50), 1.0, 1.0);
    assert_eq!(silence(&model, &[far]), Silence { uncovered: 0, beyond_measure: 1 });
    assert_eq!(errors(&model, &[far]), None);
    let model = fit("falling", &[steep[0], steep[0], steep[1]]).unwrap();
    let prediction = model.predict(&configuration(1000, 8, 50)).unwrap();
    assert_eq!(prediction.time, Span::from_millis(1));
    assert_eq!(prediction.power, Watts::from_milliwatts(1));
}

#[test]
fn completing_keeps_what_was_measured() {
    let all: Vec<Configuration> = cab::configurations().collect();
    let mut rows: Vec<Row> = all.iter().step_by(3).copied().map(known).collect();
    let model = fit("known", &rows).unwrap();
    // A measured row the model does not agree with, and a prediction that is out of date.
    rows[0].time = Span::from_secs(1);
    rows[1].time = Span::from_secs(1);
    rows[1].origin = Origin::Predicted;
    let profile = Profile { application: "known".to_owned(), rows: rows.clone() };
    let whole = complete(&profile, &model, all.iter().copied());
    assert!(whole.iter().map(|row| row.configuration).eq(all.iter().copied()));
    let measured: Vec<Row> =
        whole.iter().filter(|r| r.origin == Origin::Measured).copied().collect();
    rows.remove(1);
    assert_eq!(measured, rows);
    let again =
        whole.iter().find(|row| row.configuration == profile.rows[1].configuration).unwrap();
    assert!(again.time > Span::from_secs(1), "{again:?}");
    // What is not asked for stays as it is.
    assert_eq!(complete(&profile, &model, []), profile.rows);
}

#[test]
fn a_belief_leaves_no_row_out() {
    // One row of thirty is on two nodes; a model that was not trained on it says nothing there.
    let mut rows: Vec<Row> = (50..79).map(|cap| known(configuration(1, 8, cap))).collect();
    rows.push(known(configuration(2, 8, 60)));
    let profile = Profile { application: "odd".to_owned(), rows };
    let believe = |seed| predicted(&profile, &Training::Random { share: Share::percent(50), seed });
    let mut silent = 0;
    for seed in 0..20 {
        match believe(seed) {
            Ok(believed) => assert_eq!(believed.rows.len(), 30),
            Err(FitError::Silent { left_out: 1, trained_on: 15, .. }) => silent += 1,
            // One row on two nodes does not tell nodes from nodes times cap.
            Err(error) => assert!(matches!(error, FitError::Entangled { .. }), "{error}"),
        }
    }
    assert!(silent > 0);
    let error = (0..20).find_map(|seed| {
        believe(seed).err().filter(|error| matches!(error, FitError::Silent { .. }))
    });
    assert_eq!(
        error.unwrap().to_string(),
        "odd: a model of 15 rows does not cover 1 of 30 rows; train it on more rows (--train)"
    );
}

/// The models of all applications of a made-up machine, each with its errors.
fn models(preset: Preset, seed: u64, training: Training) -> Vec<(String, Errors)> {
    let model = |profile: Profile| {
        let model = train(&profile, &training).unwrap();
        (profile.application, errors(&model, &profile.rows).unwrap())
    };
    cab::generate(preset, seed).into_iter().map(model).collect()
}

fn print(name: &str, errors: &Errors) {
    let list = |spread: &Spread| {
        let Spread { lower_quartile, median, upper_quartile, mean, maximum } = *spread;
        [lower_quartile, median, upper_quartile, mean, maximum].map(percent).join(" ")
    };
    println!(
        "  {name:20} time {}  power {}  far too low {} worst {}",
        list(&errors.time),
        list(&errors.power),
        percent(errors.power_far_too_low),
        percent(errors.worst_power_too_low),
    );
}

fn percent(share: f64) -> String {
    format!("{:5.1}", 100.0 * share)
}

/// Published, for training on a tenth of the table: for every application a median error of the
/// time below 7.7 %, a third quartile below 13.2 % and a mean below 10 %, which is what is asserted;
/// no error of a time above 33 %; power too low by more than 10 % at no more than 4 % of the points,
/// and by less than 15 % everywhere.
///
/// Over 200 seeds, on either preset: with random rows power is too low by more than 10 % at 5.9 % of
/// the points on average (3.2 % to 11 %, as luck has it), and the worst of the eight applications is
/// too low by 25 % (15 % to 43 %); the largest error of a time is 31 % (17 % to 75 %). With designed
/// rows it is 3.9 % of the points, 14.5 % (13 % to 16 %) and 17 % (15 % to 19 %). So the published
/// figures for power are those of well-placed rows, or of luck.
#[test]
fn times_on_made_up_machines_are_predicted_as_published() {
    for preset in Preset::ALL {
        for seed in 0..25 {
            let random = Training::Random { share: TENTH, seed };
            for training in [random, Training::Designed { share: TENTH }] {
                let models = models(preset, seed, training);
                if seed == 0 {
                    println!("{preset}, {training:?}");
                    models.iter().for_each(|(name, errors)| print(name, errors));
                }
                for (name, Errors { time, .. }) in models {
                    let published =
                        time.median < 0.077 && time.upper_quartile < 0.132 && time.mean < 0.1;
                    assert!(published, "{preset}, {training:?}, seed {seed}, {name}: {time:?}");
                    let largest = time.maximum < 0.33 || training == random;
                    assert!(largest, "{preset}, {training:?}, seed {seed}, {name}: {time:?}");
                }
            }
        }
    }
}

/// The rows of a measured sweep over caps: two sockets of one node, caps for both together.
fn sweep(text: &str) -> BTreeMap<String, Vec<Row>> {
    let mut applications: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |field: usize| fields[field].parse::<f64>().unwrap();
        let cap = Watts::from_f64_rounded_up(number(2) / 2.0).unwrap();
        // How many cores were used is not in the file; all runs used the same.
        let configuration = Configuration { nodes: 1, cores: 1, cap };
        let name = format!("{}, {}", fields[1], fields[0]);
        applications.entry(name).or_default().push(row(configuration, number(3), number(6)));
    }
    applications
}

/// Real runs of 22 codes on one node, where `BUSBAR_POWER` names a folder that has them: trained on
/// half of the caps, compared on the other half. What comes out is printed: mean errors of 1.9 % to
/// 19 % for times, which jump at the lowest caps, and of 0.4 % to 3.1 % for powers, none of them too
/// low by more than 6.3 %. What is asserted is that there is a model of three coefficients for each.
#[needs(power)]
#[test]
fn a_measured_sweep_over_caps() {
    let folder = std::env::var("BUSBAR_POWER").unwrap();
    let path = std::path::Path::new(&folder).join("npb_ecp_cpu_cap_sweep.csv");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let applications = sweep(&text);
    assert_eq!(applications.len(), 22);
    for (name, rows) in &applications {
        let training = chosen(rows, Training::Designed { share: Share::percent(50) });
        let model = fit(name, &training).unwrap();
        assert_eq!((model.coefficients(), model.trained_on().len()), (3, 5), "{name}");
        let errors = errors(&model, rows).unwrap();
        assert_eq!(errors.points, 5, "{name}");
        print(name, &errors);
    }
}
