//! The published facts, and what a table must be whatever the facts.

use super::*;

const BOUNDS: [u32; 5] = [6_500, 8_000, 10_000, 12_000, 14_720];
const SEEDS: std::ops::Range<u64> = 0..25;

fn row(profile: &Profile, nodes: u32, cores: u32, cap: u32) -> &Row {
    let configuration = Configuration { nodes, cores, cap: Watts::from_watts(cap) };
    profile.rows.iter().find(|row| row.configuration == configuration).unwrap()
}

fn profile<'a>(profiles: &'a [Profile], application: &str) -> &'a Profile {
    profiles.iter().find(|profile| profile.application == application).unwrap()
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// What a socket draws on the whole machine without a cap.
fn full_watts(profile: &Profile) -> f64 {
    row(profile, NODES, CORES, 115).power.as_f64() / f64::from(NODES * SOCKETS)
}

/// How many nodes worst-case provisioning runs under a bound.
#[derive(Clone, Copy, Debug)]
enum WorstCase {
    /// As many as could draw 230 W each.
    Rated,
    /// As many as draw within the bound when measured.
    Measured,
}

/// The time that the best configuration under a bound saves, compared with worst-case
/// provisioning, as a share.
fn gain(profile: &Profile, bound: u32, worst_case: WorstCase) -> f64 {
    let bound = Watts::from_watts(bound);
    let packed = |row: &&Row| {
        let Configuration { nodes, cores, cap } = row.configuration;
        let power = match worst_case {
            WorstCase::Rated => cap * SOCKETS * nodes,
            WorstCase::Measured => row.power,
        };
        cores == CORES && cap == Watts::from_watts(115) && power <= bound
    };
    let worst = profile.rows.iter().filter(packed).max_by_key(|row| row.configuration.nodes);
    let best = profile.rows.iter().filter(|row| row.power <= bound).min_by_key(|row| row.time);
    1.0 - best.unwrap().time.secs_f64() / worst.unwrap().time.secs_f64()
}

/// Gains by application, then by bound.
fn gains(profiles: &[Profile], worst_case: WorstCase) -> Vec<Vec<f64>> {
    let of = |profile| BOUNDS.iter().map(|&bound| gain(profile, bound, worst_case)).collect();
    profiles.iter().map(of).collect()
}

/// The mean of all gains, and the largest.
fn mean_and_largest(gains: &[Vec<f64>]) -> (f64, f64) {
    let all = || gains.iter().flatten().copied();
    (mean(all()), all().fold(0.0, f64::max))
}

/// Published: 66.1 W (NSC) to 92.6 W (SP-MZ), 81.0 W on average. A single run is within 2 % of
/// that, since measuring is; the mean of eight is nearer.
#[test]
fn sockets_draw_what_is_published() {
    for preset in Preset::ALL {
        for seed in SEEDS {
            let profiles = generate(preset, seed);
            let drawn: Vec<f64> = profiles.iter().map(full_watts).collect();
            let near = |value: f64, published: f64, tolerance: f64| {
                let error = (value / published - 1.0).abs();
                assert!(error < tolerance, "{preset}, seed {seed}: {value} for {published}");
            };
            near(full_watts(profile(&profiles, "NSC")), 66.1, 0.0201);
            near(full_watts(profile(&profiles, "SP-MZ")), 92.6, 0.0201);
            near(mean(drawn.iter().copied()), 81.0, 0.01);
            assert_eq!(drawn.iter().copied().fold(f64::MAX, f64::min), drawn[5], "NSC is least");
            assert_eq!(drawn.iter().copied().fold(0.0, f64::max), drawn[2], "SP-MZ is most");
        }
    }
}

/// Published: at most 34.2 % and on average 11.4 % faster. Over seeds both are met to within half a
/// point. For one seed the mean of forty cells is good to a point, and the largest cell, which is
/// one measured time over another and the luckiest of forty, to three.
///
/// The variant in which worst-case provisioning goes by measured power has no published figure: it
/// is printed.
#[test]
fn the_best_configuration_gains_what_is_published() {
    for preset in Preset::ALL {
        let seeds: Vec<_> =
            SEEDS.map(|seed| gains(&generate(preset, seed), WorstCase::Rated)).collect();
        let figures: Vec<_> = seeds.iter().map(|gains| mean_and_largest(gains)).collect();
        for (seed, &(average, largest)) in figures.iter().enumerate() {
            assert!((average - 0.114).abs() < 0.01, "{preset}, seed {seed}: mean {average}");
            assert!((largest - 0.342).abs() < 0.03, "{preset}, seed {seed}: largest {largest}");
        }
        let average = mean(figures.iter().map(|figure| figure.0));
        let largest = mean(figures.iter().map(|figure| figure.1));
        println!("{preset}: mean {average:.4}, largest {largest:.4}");
        assert!((average - 0.114).abs() < 0.005, "{preset}: mean {average}");
        assert!((largest - 0.342).abs() < 0.005, "{preset}: largest {largest}");

        let measured = SEEDS.map(|seed| gains(&generate(preset, seed), WorstCase::Measured));
        let measured: Vec<_> = measured.map(|gains| mean_and_largest(&gains)).collect();
        println!(
            "{preset}, worst case by measured power: mean {:.4}, largest {:.4}",
            mean(measured.iter().map(|figure| figure.0)),
            mean(measured.iter().map(|figure| figure.1)),
        );
        for (index, profile) in generate(preset, 0).iter().enumerate() {
            let cells = (0..BOUNDS.len()).map(|bound| mean(seeds.iter().map(|s| s[index][bound])));
            let cells: Vec<String> = cells.map(|cell| format!("{:5.1}", 100.0 * cell)).collect();
            println!(
                "{:6} {:5.1} W  {}",
                profile.application,
                full_watts(profile),
                cells.join(" ")
            );
        }
    }
}

/// The one difference between the presets. Noise is up to 3 % for each of two times.
#[test]
fn codes_that_do_not_scale_slow_down_beyond_28_nodes_where_peers_cost() {
    for seed in SEEDS {
        let plain = generate(Preset::Cab, seed);
        let contended = generate(Preset::CabContended, seed);
        let seconds = |profiles: &[Profile], application, nodes| {
            row(profile(profiles, application), nodes, CORES, 115).time.secs_f64()
        };
        for name in ["NSC", "NSM"] {
            // From 28 to 64 nodes, with 2.3 times the cores, less than a fifth is gained.
            let change = seconds(&plain, name, 64) / seconds(&plain, name, 28);
            assert!((0.8..0.95).contains(&change), "{name}, seed {seed}: {change}");
            let change = seconds(&contended, name, 64) / seconds(&contended, name, 28);
            assert!((1.08..1.35).contains(&change), "{name}, seed {seed}: {change}");
            let before = seconds(&contended, name, 28) / seconds(&contended, name, 8);
            assert!(before < 0.8, "{name}, seed {seed}: {before}");
        }
        for (one, other) in plain.iter().zip(&contended) {
            let same = !one.application.starts_with("NS");
            assert_eq!(one == other, same, "{}", one.application);
        }
    }
}

#[test]
fn a_table_is_whole_ordered_and_within_its_caps() {
    let expected: Vec<Configuration> = configurations().collect();
    assert_eq!(expected.len(), 15 * 5 * 5);
    assert!(expected.is_sorted_by(|a, b| a < b), "ascending, each once");
    for preset in Preset::ALL {
        for seed in [0, 1, u64::MAX] {
            let profiles = generate(preset, seed);
            let names = profiles.iter().map(|profile| profile.application.as_str());
            let eight = ["SPhot", "BT-MZ", "SP-MZ", "LU-MZ", "SC", "NSC", "SM", "NSM"];
            assert!(names.eq(eight));
            for row in profiles.iter().flat_map(|profile| {
                assert!(profile.rows.iter().map(|row| row.configuration).eq(expected.clone()));
                &profile.rows
            }) {
                let Configuration { nodes, cap, .. } = row.configuration;
                assert!(row.power <= cap * SOCKETS * nodes, "{row:?}");
                assert!(row.power > Watts::from_watts(30) * SOCKETS * nodes, "{row:?}");
                assert_eq!(row.origin, Origin::Measured);
            }
        }
    }
}

#[test]
fn times_are_minutes() {
    for preset in Preset::ALL {
        for profile in generate(preset, 1) {
            let rows = || profile.rows.iter();
            // Full nodes at full speed take minutes; half of the cores of 8 nodes, an hour at most.
            for row in rows().filter(|row| {
                row.configuration.cores == CORES && row.configuration.cap == Watts::from_watts(115)
            }) {
                assert!((240.0..1_500.0).contains(&row.time.secs_f64()), "{row:?}");
            }
            assert!(rows().all(|row| row.time < Span::from_secs(3_600)));
        }
    }
}

/// In the model, that is, before noise.
#[test]
fn a_higher_cap_is_never_slower() {
    for preset in Preset::ALL {
        for application in Application::all(preset.network()) {
            for configuration in configurations() {
                let run = application.run(&configuration);
                let more = Configuration {
                    cap: configuration.cap + Watts::from_watts(5),
                    ..configuration
                };
                let faster = application.run(&more);
                assert!(faster.seconds <= run.seconds, "{} {more:?}", application.name);
                assert!(faster.socket_watts >= run.socket_watts, "{} {more:?}", application.name);
            }
        }
    }
}

#[test]
fn the_seed_decides() {
    assert_eq!(generate(Preset::Cab, 7), generate(Preset::Cab, 7));
    let (one, other) = (generate(Preset::Cab, 7), generate(Preset::Cab, 8));
    for (one, other) in one.iter().zip(&other) {
        let same = one.rows.iter().zip(&other.rows).filter(|(a, b)| a.time == b.time).count();
        assert!(same < 10, "{}: {same} times are the same", one.application);
    }
}

#[test]
fn names_round_trip() {
    for preset in Preset::ALL {
        assert_eq!(preset.to_string().parse(), Ok(preset));
    }
    assert_eq!(
        "caab".parse::<Preset>().unwrap_err().to_string(),
        "unknown machine 'caab'; valid machines: cab, cab-contended"
    );
}

/// Synthetic figures must not change unnoticed, nor from one platform to another.
#[test]
fn a_seed_means_the_same_everywhere() {
    let check = |preset, application, (nodes, cores, cap), (millis, milliwatts)| {
        let profiles = generate(preset, 0);
        let row = row(profile(&profiles, application), nodes, cores, cap);
        assert_eq!((row.time.millis(), row.power.milliwatts()), (millis, milliwatts));
    };
    check(Preset::Cab, "SPhot", (8, 8, 51), (3_030_687, 735_159));
    check(Preset::Cab, "SP-MZ", (28, 16, 115), (444_561, 5_475_745));
    check(Preset::Cab, "NSM", (64, 16, 51), (369_595, 6_365_118));
    check(Preset::CabContended, "NSM", (64, 16, 51), (421_564, 6_365_118));
}
