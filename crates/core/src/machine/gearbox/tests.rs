//! Gears that were published, measured and mistaken.

use super::*;

/// The published row, to its two digits; it follows from the formulas.
#[test]
fn the_default_draws_what_was_published() {
    let gearbox = Gearbox::default();
    let published = [(0.8, 0.28), (1.1, 0.38), (1.4, 0.49), (1.7, 0.63), (2.0, 0.80), (2.3, 1.00)];
    assert_eq!(gearbox.gears().len(), published.len());
    for (gear, (ghz, power)) in gearbox.gears().iter().zip(published) {
        assert_eq!(gear.ghz, ghz);
        let derived = (gearbox.relative_power(*gear, Watts::from_watts(1)) * 100.0).round() / 100.0;
        assert_eq!(derived, power, "{ghz} GHz");
    }
    assert_eq!(gearbox.top(), Gear::new(2.3, 1.5));
}

/// 0.75·(0.8·1)/(2.3·2.25) + 0.25·1/1.5 = 0.282 608…: 28.261 W of 100 W, rounded up.
#[test]
fn nodes_draw_their_share_rounded_up() {
    let powers = Gearbox::default().node_powers(Watts::from_watts(100));
    assert_eq!(powers.len(), 6);
    assert_eq!(powers[0].1, Watts::from_watts(100));
    assert_eq!(powers[5].1, Watts::from_milliwatts(28_261));
    // Of a 2 mW node, 1 mW is all a slower gear can save.
    let tiny = Gearbox::default().node_powers(Watts::from_milliwatts(2));
    assert_eq!(tiny.iter().map(|gear| gear.1.milliwatts()).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn larger_jobs_are_less_sensitive() {
    let mean = |processors| Gearbox::default().sensitivity_of(processors).mean;
    assert_eq!([1, 4, 5, 32, 33, 4000].map(mean), [0.5, 0.5, 0.4, 0.4, 0.3, 0.3]);
}

#[test]
fn mistakes_name_the_entry() {
    let read = |text: &str| toml::from_str::<Gearbox>(text).map_err(|e| e.to_string());
    let error = |text: &str| read(text).unwrap_err();
    let gears = |list: &str| error(&format!("gears = [{list}]"));
    assert!(gears("").contains("dvfs.gears is empty; give at least one entry"));
    assert!(
        gears("{ ghz = 2, volts = 1 }, { ghz = 1, volts = 1 }")
            .contains("dvfs.gears entry 2, 'ghz', is 1, but the entry before it has 2")
    );
    assert!(
        gears("{ ghz = 1, volts = 1.2 }, { ghz = 2, volts = 1 }")
            .contains("dvfs.gears entry 2, 'volts', is 1")
    );
    for wrong in ["0", "-1.5", "nan", "inf", "2300.0"] {
        let text =
            gears(&format!("{{ ghz = 1.0, volts = 1.0 }}, {{ ghz = {wrong}, volts = 1.0 }}"));
        assert!(
            text.contains("gears entry 2, 'ghz'") && text.contains("from 0.001 to 100"),
            "{text}"
        );
    }
    assert!(error("static_share = 1.5").contains("dvfs.static_share is 1.5; it must be from 0"));
    let beta = |list: &str| error(&format!("beta = [{list}]"));
    assert!(beta("").contains("dvfs.beta is empty"));
    assert!(
        beta("{ mean = 1.2, variance = 0.0 }")
            .contains("dvfs.beta entry 1, 'mean', is 1.2; it must be from 0 to 1")
    );
    assert!(beta("{ mean = 0.2, variance = -1 }").contains("'variance'"));
    let entry = |up_to: &str| format!("{{ {up_to} mean = 0.5, variance = 0.01 }}");
    assert!(beta(&entry("up_to = 4,")).contains("entry 1 is the last one"));
    assert!(beta(&format!("{0},{0}", entry(""))).contains("entry 1 has no 'up_to'"));
    let small = entry("up_to = 4,");
    assert!(beta(&format!("{small},{small},{}", entry(""))).contains("entry 2 has an 'up_to'"));
    assert!(error("gear = []").contains("unknown field `gear`"));
    assert_eq!(read("").unwrap(), Gearbox::default());
}

/// A node of 300 W that draws 100 W whatever it does: its other 200 W are 180, 110 and 200.
#[test]
fn what_was_measured_is_the_whole_node() {
    let read = |text: &str| toml::from_str::<Gearbox>(text).map_err(|e| e.to_string());
    let gearbox = read(
        "gears = [{ ghz = 1.0, watts = '210W', slowdown = 1.8 }, \
         { ghz = 1.5, watts = '280W' }, { ghz = 2.0, watts = '300W' }]",
    )
    .unwrap();
    let part = Watts::from_watts(200);
    let drawn: Vec<u64> =
        gearbox.node_powers(part).iter().map(|(_, power)| power.milliwatts() / 1000).collect();
    assert_eq!(drawn, [200, 180, 110]);
    assert_eq!(gearbox.relative_power(gearbox.gears()[0], part), 0.55);
    let slowdowns: Vec<f64> = gearbox.gears().iter().map(|gear| gearbox.slowdown(*gear)).collect();
    assert_eq!(slowdowns, [1.8, 2.0 / 1.5, 1.0]);
    // Without frequencies speeds are shares of the fastest.
    let shares = read("gears = [{ watts = '210W', slowdown = 2.0 }, { watts = '300W' }]");
    let shares = shares.unwrap();
    assert_eq!((shares.gears()[0].ghz, shares.slowdown(shares.gears()[0])), (0.5, 2.0));
    let error = |gears: &str| read(&format!("gears = [{gears}]")).unwrap_err();
    assert!(error("{ ghz = 1.0 }").contains("gears entry 1 has neither 'volts' nor 'watts'"));
    assert!(error("{ watts = '9W' }, { watts = '10W' }").contains("entry 1 has neither 'ghz'"));
    assert!(
        error("{ ghz = 1.0, watts = '9W' }, { watts = '10W' }").contains("entry 2 has no 'ghz'")
    );
    assert!(
        error("{ ghz = 1.0, watts = '9W' }, { ghz = 2.0, volts = 1.0 }")
            .contains("entry 2 has no 'watts'")
    );
    assert!(
        error("{ ghz = 1.0, watts = '9W' }, { ghz = 2.0, watts = '8W' }")
            .contains("entry 2, 'watts', is 8, but the entry before it has 9")
    );
    assert!(
        error("{ watts = '9W', slowdown = 0.5 }, { watts = '10W' }").contains("from 1 to 1000")
    );
    assert!(
        error("{ watts = '9W', slowdown = 3.0 }, { watts = '10W', slowdown = 2.0 }")
            .contains("entry 2 is the fastest")
    );
}
