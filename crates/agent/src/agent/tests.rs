//! The agent on an emulated node, with a clock that the tests turn. Each fault has a test here or, if it is about
//! connections, in `tests/it`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::*;
use crate::emulate::{self, Fault, Faults, Shape, USUAL_DRAM};
use crate::hardware::discover_by;
use crate::reading::Reading;
use crate::wire::{DomainSample, Outcome, Sample};

mod random;

/// An emulated node with its agent.
struct Bench {
    place: tempfile::TempDir,
    config: Config,
    clock: Arc<Mutex<Instant>>,
    agent: Option<Agent>,
}

fn watts(watts: u32) -> Watts {
    Watts::from_watts(watts)
}

fn controller() -> Peer {
    let (identity, client) = ("user 1".to_owned(), "test".to_owned());
    Peer { identity, instance: None, client, role: Role::Controller }
}

impl Bench {
    /// Two packages of 40 to 100 W each, whose job would draw 180 W, and 90 W each.
    fn new() -> Self {
        Bench::with(Shape::default(), |_| ())
    }

    fn with(shape: Shape, change: impl FnOnce(&mut Config)) -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("tree");
        emulate::create(&root, shape).unwrap();
        emulate::set_demand(&root, watts(180)).unwrap();
        let mut config = Config { node: "n1".to_owned(), ..Config::default() };
        config.state = place.path().join("state");
        config.hardware.powercap = root;
        config.hardware.emulate = true;
        change(&mut config);
        let clock = Arc::new(Mutex::new(Instant::now()));
        let mut bench = Bench { place, config, clock, agent: None };
        bench.start();
        bench
    }

    fn start(&mut self) {
        let clock = self.clock.clone();
        let clock = Arc::new(move || *clock.lock().unwrap());
        let hardware = discover_by(&self.config.hardware, clock).unwrap();
        self.agent = Some(Agent::start(self.config.clone(), hardware, self.now()).unwrap());
    }

    /// The agent is killed: nothing of what it would do at its end is done.
    fn kill(&mut self) {
        self.agent = None;
    }

    fn agent(&mut self) -> &mut Agent {
        self.agent.as_mut().unwrap()
    }

    fn now(&self) -> Instant {
        *self.clock.lock().unwrap()
    }

    /// Lets seconds go by, and collects what happens.
    fn pass(&mut self, seconds: u32) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..seconds {
            *self.clock.lock().unwrap() += Duration::from_secs(1);
            let now = self.now();
            events.extend(self.agent().watch(now));
        }
        events
    }

    fn ask(&mut self, request: Request) -> Answer {
        let now = self.now();
        self.agent().answer(&controller(), request, now)
    }

    fn set(&mut self, caps: Caps) -> SetReport {
        match self.ask(Request::Set(caps)) {
            Answer::Set(report) => report,
            other => panic!("{other:?}"),
        }
    }

    fn set_node(&mut self, cap: u32) -> SetReport {
        self.set(Caps::Node { cap: watts(cap) })
    }

    fn set_domains(&mut self, caps: &[(&str, u32)]) -> SetReport {
        let caps = caps.iter().map(|(name, cap)| (DomainName::written(name), watts(*cap)));
        self.set(Caps::Domains { caps: caps.collect() })
    }

    fn sample(&mut self) -> Sample {
        self.agent().sample()
    }

    fn domain(&mut self, name: &str) -> DomainSample {
        let sample = self.sample();
        sample.domains.into_iter().find(|domain| domain.name.as_str() == name).unwrap()
    }

    fn fault(&self, zone: &str, fault: Fault) {
        let faults = Faults::from([(zone.to_owned(), vec![fault])]);
        emulate::set_faults(&self.config.hardware.powercap, &faults).unwrap();
    }

    fn repair(&self) {
        emulate::set_faults(&self.config.hardware.powercap, &Faults::new()).unwrap();
    }

    fn file(&self, path: &str) -> PathBuf {
        self.config.hardware.powercap.join(path)
    }

    /// The limit in the tree itself, in watts.
    fn limit(&self, zone: &str) -> u64 {
        let path = self.file(&format!("{zone}/constraint_0_power_limit_uw"));
        fs::read_to_string(path).unwrap().trim().parse::<u64>().unwrap() / 1_000_000
    }

    fn limits(&self) -> [u64; 2] {
        [self.limit("intel-rapl:0"), self.limit("intel-rapl:1")]
    }

    fn log(&self) -> String {
        fs::read_to_string(self.config.state.join("changes.log")).unwrap_or_default()
    }
}

fn outcomes(report: &SetReport) -> Vec<String> {
    report.domains.iter().map(|domain| domain.outcome.to_string()).collect()
}

#[test]
fn a_cap_is_set_read_back_and_verified() {
    let mut bench = Bench::new();
    bench.pass(3);
    assert_eq!(bench.sample().power.value(), Some(&watts(180)));
    assert_eq!(bench.sample().power.origin(), "emulated");
    let report = bench.set_node(120);
    assert!(report.is_confirmed());
    assert_eq!(report.counted, watts(120));
    assert_eq!(bench.limits(), [60, 60]);
    let events = bench.pass(5);
    let is_verified = |event: &Event| matches!(event, Event::Verified { cap, power, .. } if *cap == watts(60) && power.value() == Some(&Watts::from_milliwatts(59_940)));
    assert_eq!(events.iter().filter(|event| is_verified(event)).count(), 2, "{events:?}");
    assert_eq!(events.len(), 2, "that is said once: {events:?}");
    let log = bench.log();
    assert!(log.contains(
        r#""who":"user 1 (test)","what":"set","domain":"package-0","requested_mw":60000"#
    ));
    assert!(
        log.contains(r#""before":{"limit":100000},"after":{"limit":60000},"outcome":"confirmed""#),
        "{log}"
    );
}

#[test]
fn a_cap_that_cannot_be_kept_is_reported_as_it_is() {
    let mut bench = Bench::new();
    // 40 W are the lowest cap of a package.
    let report = bench.set_node(50);
    assert!(!report.is_confirmed());
    assert_eq!(report.counted, watts(80));
    assert_eq!(bench.limits(), [40, 40], "as low as it can be");
    let report = bench.set_domains(&[("package-0", 30)]);
    assert_eq!(outcomes(&report), ["clamped: the lowest cap of this domain is 40W"]);
    // Above the highest cap it gets that, which is less than it may have.
    let report = bench.set_node(500);
    assert!(report.is_confirmed());
    assert_eq!(report.counted, watts(200));
}

#[test]
fn permission_denied_changes_nothing_and_says_so() {
    let mut bench = Bench::new();
    bench.fault("intel-rapl:0", Fault::WriteDenied);
    let report = bench.set_node(120);
    assert!(outcomes(&report)[0].contains("no permission to write"), "{report:?}");
    assert_eq!(report.domains[0].effective, Effective::Limit(watts(100)));
    assert_eq!(report.counted, watts(160), "100 W for the one that failed");
    assert_eq!(bench.limits(), [100, 60]);
    // Without the right to read, nothing is known, and that counts in full.
    bench.fault("intel-rapl:0", Fault::ReadDenied);
    let report = bench.set_node(110);
    assert_eq!(report.domains[0].effective, Effective::Unknown);
    assert_eq!(report.counted, watts(155));
    bench.pass(1);
    assert_eq!(bench.sample().power.value(), None, "unknown is not 0 W");
    assert!(bench.sample().power.to_string().contains("package-0: no permission to read"));
}

#[test]
fn a_locked_limit_and_a_refused_write_fail_with_what_holds() {
    for (fault, reason) in [(Fault::Locked, "is locked"), (Fault::Refused, "cannot write")] {
        let mut bench = Bench::new();
        bench.set_node(160);
        bench.fault("intel-rapl:1", fault);
        let report = bench.set_node(120);
        assert!(outcomes(&report)[1].contains(reason), "{report:?}");
        assert_eq!(report.domains[1].effective, Effective::Limit(watts(80)));
        assert_eq!(report.counted, watts(140));
        // A raise fails as well, and is not believed.
        let report = bench.set_domains(&[("package-1", 90)]);
        assert!(matches!(report.domains[0].outcome, Outcome::Failed { .. }));
        assert_eq!(report.counted, watts(140));
        bench.repair();
        assert!(bench.set_node(120).is_confirmed());
    }
}

#[test]
fn a_limit_that_is_accepted_and_not_set_is_read_back() {
    let mut bench = Bench::new();
    bench.fault("intel-rapl:0", Fault::Ignored);
    let report = bench.set_node(120);
    assert_eq!(outcomes(&report)[0], "clamped: 60W was written, and 100W was read back");
    assert_eq!(report.counted, watts(160));
    bench.fault("intel-rapl:0", Fault::Clamped(75_000_000));
    let report = bench.set_node(120);
    assert_eq!(outcomes(&report)[0], "clamped: 60W was written, and 75W was read back");
    assert_eq!(report.counted, watts(135));
}

#[test]
fn a_read_back_that_lies_is_found_out_by_the_meter() {
    let mut bench = Bench::new();
    bench.fault("intel-rapl:0", Fault::Disobeyed);
    assert!(bench.set_node(120).is_confirmed(), "the limit reads as if it were in force");
    let events = bench.pass(5);
    let exceeded = events.iter().find_map(|event| match event {
        Event::Exceeded { name, cap, power } => {
            Some((name.to_string(), *cap, power.value().copied()))
        }
        _ => None,
    });
    assert_eq!(exceeded, Some(("package-0".to_owned(), watts(60), Some(watts(90)))));
    bench.repair();
    let events = bench.pass(3);
    assert!(matches!(&events[..], [Event::Verified { .. }]), "{events:?}");
}

#[test]
fn a_zone_that_is_switched_off_is_switched_on_or_counts_in_full() {
    let mut bench = Bench::new();
    fs::write(bench.file("intel-rapl:0/enabled"), "0\n").unwrap();
    bench.kill();
    fs::remove_dir_all(&bench.config.state).unwrap();
    bench.start();
    assert!(bench.set_node(120).is_confirmed());
    assert_eq!(fs::read_to_string(bench.file("intel-rapl:0/enabled")).unwrap().trim(), "1");
    bench.ask(Request::Release);
    assert_eq!(fs::read_to_string(bench.file("intel-rapl:0/enabled")).unwrap().trim(), "0");
    bench.fault("intel-rapl:0", Fault::Disabled);
    let report = bench.set_node(120);
    assert!(outcomes(&report)[0].contains("switched off"), "{report:?}");
    assert_eq!(report.domains[0].effective, Effective::Unlimited);
    assert_eq!(report.counted, watts(160));
}

#[test]
fn a_zone_that_vanishes_is_lost_and_found() {
    let mut bench = Bench::new();
    bench.set_node(120);
    bench.pass(5);
    bench.fault("intel-rapl:0", Fault::Vanished);
    let events = bench.pass(2);
    assert!(
        matches!(&events[0], Event::Lost { reason, .. } if reason.contains("is gone")),
        "{events:?}"
    );
    let is_unknown =
        |event: &Event| matches!(event, Event::Changed { effective: Effective::Unknown, .. });
    assert!(events.iter().any(is_unknown), "{events:?}");
    assert_eq!(bench.agent().inventory().counted, watts(160));
    assert_eq!(bench.domain("package-0").power.value(), None);
    let report = bench.set_node(110);
    assert!(outcomes(&report)[0].contains("is gone"), "{report:?}");
    // It comes back with the limit of its firmware.
    let limit = bench.file("intel-rapl:0/constraint_0_power_limit_uw");
    fs::write(limit, "100000000\n").unwrap();
    bench.repair();
    let events = bench.pass(1);
    assert!(events.iter().any(|event| matches!(event, Event::Found { .. })), "{events:?}");
    assert!(bench.limit("intel-rapl:0") <= 60, "the cap is set again");
    bench.pass(2);
    assert!(bench.sample().power.value().is_some());
}

#[test]
fn counters_that_stand_still_or_jump_are_never_watts() {
    for (fault, reason) in
        [(Fault::Stuck, "does not advance"), (Fault::Jumped(900_000_000), "jumped")]
    {
        let mut bench = Bench::new();
        bench.set_node(120);
        bench.pass(6);
        bench.ask(Request::Begin { job: "7".to_owned() });
        bench.fault("intel-rapl:1", fault);
        let events = bench.pass(1);
        let events = [events, bench.pass(1)].concat();
        let told = events.iter().find_map(|event| match event {
            Event::Unverified { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        assert!(told.is_some_and(|told| told.contains(reason)), "{events:?}");
        if fault == Fault::Stuck {
            assert_eq!(bench.sample().power.value(), None);
        }
        bench.pass(2);
        let Answer::Energy(energy) = bench.ask(Request::End { job: "7".to_owned() }) else {
            panic!()
        };
        assert_eq!(energy.energy.value(), None, "a job's energy with a gap is unknown");
        assert!(energy.energy.to_string().contains(reason), "{}", energy.energy);
        assert_eq!(
            energy.domains[0].1.value().map(|joules| joules.microjoules()),
            Some(239_760_000)
        );
    }
}

#[test]
fn a_counter_that_wraps_is_counted_through() {
    let mut bench = Bench::new();
    bench.kill();
    // 262 143 J are the range; 100 J are left.
    fs::write(bench.file("intel-rapl:0/energy_uj"), format!("{:020}\n", 262_043_328_850_u64))
        .unwrap();
    bench.start();
    bench.ask(Request::Begin { job: "7".to_owned() });
    for _ in 0..4 {
        bench.pass(1);
        if bench.domain("package-0").power.value().is_some() {
            assert_eq!(bench.domain("package-0").power.value(), Some(&watts(90)));
        }
    }
    let Answer::Energy(energy) = bench.ask(Request::End { job: "7".to_owned() }) else { panic!() };
    // 4 s of 90 W in each package, whatever the counter did.
    assert_eq!(energy.energy.value().map(|joules| joules.microjoules()), Some(720_000_000));
    assert_eq!(energy.elapsed, 4000);
}

#[test]
fn somebody_elses_change_is_reported_and_undone() {
    let mut bench = Bench::new();
    bench.set_node(120);
    bench.pass(4);
    let limit = bench.file("intel-rapl:0/constraint_0_power_limit_uw");
    fs::write(&limit, "95000000\n").unwrap();
    let events = bench.pass(1);
    let [Event::Changed { expected, found, effective, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*expected, Effective::Limit(watts(60)));
    assert_eq!(*found, Effective::Limit(watts(95)));
    assert_eq!(*effective, Effective::Limit(watts(60)));
    assert_eq!(bench.limits(), [60, 60]);
    assert!(bench.log().contains(r#""who":"somebody else""#));
    // A lower limit is reported and left.
    fs::write(&limit, "50000000\n").unwrap();
    let events = bench.pass(1);
    assert!(events.iter().any(|event| matches!(event, Event::Changed { effective: Effective::Limit(limit), .. } if *limit == watts(50))));
    assert_eq!(bench.limits(), [50, 60]);
    // One that cannot be undone is reported with what holds.
    bench.config.caps.reassert = false;
    bench.kill();
    bench.start();
    fs::write(&limit, "95000000\n").unwrap();
    bench.pass(1);
    assert_eq!(bench.agent().inventory().counted, watts(155));
}

#[test]
fn what_is_lowered_comes_first_and_nothing_is_raised_without_it() {
    let mut bench = Bench::new();
    bench.set_domains(&[("package-0", 50), ("package-1", 90)]);
    bench.fault("intel-rapl:1", Fault::Refused);
    let report = bench.set_domains(&[("package-0", 90), ("package-1", 50)]);
    assert_eq!(outcomes(&report)[0], "withheld: another domain could not be lowered");
    assert_eq!(bench.limits(), [50, 90]);
    assert_eq!(report.counted, watts(140));
    bench.repair();
    assert!(bench.set_domains(&[("package-0", 90), ("package-1", 50)]).is_confirmed());
    assert_eq!(bench.limits(), [90, 50]);
}

#[test]
fn the_sites_limits_are_restored_one_by_one() {
    let mut bench = Bench::new();
    bench.kill();
    fs::remove_dir_all(&bench.config.state).unwrap();
    // The site has limits of its own, not the vendor's.
    fs::write(bench.file("intel-rapl:0/constraint_0_power_limit_uw"), "87654321\n").unwrap();
    bench.start();
    bench.set_node(120);
    bench.fault("intel-rapl:1", Fault::Refused);
    let Answer::Set(report) = bench.ask(Request::Release) else { panic!() };
    assert!(matches!(report.domains[1].outcome, Outcome::Failed { .. }));
    let text = fs::read_to_string(bench.file("intel-rapl:0/constraint_0_power_limit_uw")).unwrap();
    assert_eq!(text.trim(), "87654321", "to the last digit, although the other one failed");
    // What failed can be tried again, also by the next agent.
    bench.repair();
    bench.kill();
    bench.start();
    assert!(matches!(bench.agent().stop(), Stopped::Restored(_)));
    assert_eq!(bench.limit("intel-rapl:1"), 100);
}

#[test]
fn a_restart_keeps_caps_and_knows_them() {
    let mut bench = Bench::new();
    bench.set_node(120);
    assert_eq!(bench.agent().stop(), Stopped::Kept { controller: "user 1".to_owned() });
    bench.kill();
    bench.start();
    assert_eq!(bench.limits(), [60, 60]);
    let inventory = bench.agent().inventory();
    assert_eq!(inventory.counted, watts(120));
    assert_eq!(inventory.controller.as_deref(), Some("user 1"));
    assert_eq!(inventory.domains[0].cap, Some(watts(60)));
    assert_eq!(
        inventory.caps.unwrap().highest,
        watts(200),
        "the range is the site's, not the cap's"
    );
    bench.ask(Request::Release);
    assert_eq!(bench.limits(), [100, 100]);
}

#[test]
fn hardware_that_forgot_a_cap_is_lowered_at_the_start() {
    let mut bench = Bench::new();
    bench.set_node(120);
    bench.kill();
    // As after a reboot.
    fs::write(bench.file("intel-rapl:0/constraint_0_power_limit_uw"), "100000000\n").unwrap();
    let path = bench.config.state.join("limits.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(&this_boot(), "another-boot")).unwrap();
    bench.start();
    assert_eq!(bench.limits(), [60, 60]);
    assert!(bench.log().contains(r#""what":"resume""#));
    bench.ask(Request::Release);
    assert_eq!(bench.limits(), [100, 100]);
}

#[test]
fn killed_between_save_and_write_nothing_is_above_what_is_believed() {
    let mut bench = Bench::new();
    bench.set_node(160);
    let plan: Vec<(usize, Watts)> = vec![(0, watts(50)), (1, watts(95))];
    bench.agent().record_caps(&plan).unwrap();
    bench.kill();
    bench.start();
    // The controller has no answer: it believes the higher of old and new.
    assert_eq!(bench.limits(), [50, 80]);
    assert_eq!(bench.agent().inventory().counted, watts(130));
    bench.ask(Request::Release);
    assert_eq!(bench.limits(), [100, 100], "the site's limits were saved before");
}

#[test]
fn without_a_record_caps_are_lowered_and_not_raised() {
    let mut bench = Bench::new();
    bench.set_node(160);
    let state = bench.config.state.clone();
    fs::remove_file(state.join("changes.log")).unwrap();
    fs::create_dir(state.join("changes.log")).unwrap();
    fs::create_dir(state.join("limits.json.new")).unwrap();
    let report = bench.set_node(120);
    assert!(report.is_confirmed());
    assert_eq!(bench.limits(), [60, 60]);
    let events = bench.pass(1);
    let is_unrecorded = |event: &Event| matches!(event, Event::Unrecorded { reason } if reason.contains("changes.log is a folder"));
    assert!(events.iter().any(is_unrecorded), "{events:?}");
    let report = bench.set_node(180);
    assert!(outcomes(&report)[0].contains("cannot write"), "{report:?}");
    assert_eq!(bench.limits(), [60, 60]);
    // Whatever was recorded, a restart finds the limits that hold.
    fs::remove_dir(state.join("limits.json.new")).unwrap();
    bench.kill();
    bench.start();
    assert_eq!(bench.agent().inventory().counted, watts(120));
}

/// Whoever prepares the state folder could decide which limits are written, and to which file the log goes.
#[test]
fn what_others_could_have_put_into_the_state_folder_is_not_used() {
    let mut bench = Bench::new();
    bench.set_node(120);
    bench.kill();
    let state = bench.config.state.clone();
    let target = bench.place.path().join("target");
    fs::write(&target, "as it was").unwrap();
    let start = |bench: &Bench| {
        let hardware = crate::hardware::discover(&bench.config.hardware).unwrap();
        Agent::start(bench.config.clone(), hardware, bench.now())
            .err()
            .map(|error| error.to_string())
    };
    let file = state.join("changes.log");
    fs::remove_file(&file).unwrap();
    symlink(&target, &file).unwrap();
    let said = start(&bench).unwrap();
    assert!(said.contains("changes.log is a symbolic link"), "{said}");
    fs::remove_file(&file).unwrap();
    fs::hard_link(&target, &file).unwrap();
    let said = start(&bench).unwrap();
    assert!(said.contains("changes.log is the same file as another one"), "{said}");
    fs::remove_file(&file).unwrap();
    let allow = |name: &str, mode| {
        fs::set_permissions(state.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    for (name, usual) in [("limits.json", 0o600), ("", 0o700)] {
        allow(name, 0o777);
        let said = start(&bench).unwrap();
        assert!(said.contains("is writable by others (mode 0777)"), "{said}");
        assert!(said.contains("name a new folder with 'state = …'"), "{said}");
        allow(name, usual);
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "as it was");
    assert_eq!(bench.limits(), [60, 60]);
    assert_eq!(start(&bench), None);
}

#[test]
fn an_agent_that_cannot_save_the_sites_limits_does_not_start() {
    let mut bench = Bench::new();
    bench.kill();
    fs::create_dir(bench.config.state.join("limits.json.new")).unwrap();
    let hardware = crate::hardware::discover(&bench.config.hardware).unwrap();
    let error = Agent::start(bench.config.clone(), hardware, bench.now()).err().unwrap();
    assert!(error.to_string().contains("cannot write"), "{error}");
    assert_eq!(bench.limits(), [100, 100]);
    // What cannot be understood is not guessed at either.
    fs::remove_dir(bench.config.state.join("limits.json.new")).unwrap();
    fs::write(bench.config.state.join("limits.json"), "{\"format\":1,").unwrap();
    let hardware = crate::hardware::discover(&bench.config.hardware).unwrap();
    let error = Agent::start(bench.config.clone(), hardware, bench.now()).err().unwrap();
    assert!(error.to_string().contains("the site's own limits"), "{error}");
}

#[test]
fn a_silent_controller_loses_its_lease_and_nothing_is_raised() {
    let mut bench = Bench::with(Shape::default(), |config| config.caps.safe = Some(watts(100)));
    bench.set_domains(&[("package-0", 90), ("package-1", 45)]);
    bench.ask(Request::Renew { lease: 5000 });
    assert!(!bench.pass(4).iter().any(|event| matches!(event, Event::LeaseEnded { .. })));
    let events = bench.pass(2);
    let ended = events.iter().find_map(|event| match event {
        Event::LeaseEnded { controller, report } => Some((controller.clone(), report.clone())),
        _ => None,
    });
    let (who, report) = ended.unwrap();
    assert_eq!(who, "user 1");
    assert!(report.is_confirmed());
    assert_eq!(bench.limits(), [50, 45], "the safe cap would be 50 W for each");
    assert_eq!(bench.agent().inventory().controller, None);
    // Without a safe cap in the configuration it is the lowest one.
    let mut bench = Bench::new();
    bench.set_node(160);
    bench.ask(Request::Renew { lease: 1_000_000_000 });
    bench.pass(59);
    assert_eq!(bench.limits(), [80, 80]);
    bench.pass(2);
    assert_eq!(bench.limits(), [40, 40]);
}

#[test]
fn a_node_has_one_controller_at_a_time() {
    let mut bench = Bench::new();
    bench.set_node(160);
    let other = Peer { identity: "user 2".to_owned(), ..controller() };
    let now = bench.now();
    let set = Request::Set(Caps::Node { cap: watts(200) });
    let Answer::Refused(refusal) = bench.agent().answer(&other, set.clone(), now) else { panic!() };
    assert_eq!(refusal.kind, RefusalKind::Leased);
    assert!(refusal.message.contains("another controller holds the lease: user 1"), "{refusal}");
    let observer = Peer { role: Role::Observer, ..controller() };
    for request in [
        set.clone(),
        Request::Release,
        Request::Renew { lease: 1 },
        Request::Begin { job: "1".to_owned() },
    ] {
        let Answer::Refused(refusal) = bench.agent().answer(&observer, request, now) else {
            panic!()
        };
        assert_eq!(refusal.kind, RefusalKind::Forbidden);
    }
    assert!(matches!(bench.agent().answer(&observer, Request::Read, now), Answer::Sample(_)));
    bench.ask(Request::Release);
    assert!(matches!(bench.agent().answer(&other, set, now), Answer::Set(_)));
}

/// Two daemons with the same key are two controllers. Each is the same after a restart.
#[test]
fn controllers_with_one_key_are_told_apart() {
    let mut bench = Bench::new();
    let daemon = |instance: &str| Peer { instance: instance.parse().ok(), ..controller() };
    let set = |bench: &mut Bench, who: &Peer, cap| {
        let now = bench.now();
        bench.agent().answer(who, Request::Set(Caps::Node { cap: watts(cap) }), now)
    };
    assert!(matches!(set(&mut bench, &daemon("one"), 160), Answer::Set(_)));
    for _ in 0..3 {
        let Answer::Refused(refusal) = set(&mut bench, &daemon("two"), 200) else { panic!() };
        assert_eq!(refusal.kind, RefusalKind::Leased);
        assert!(refusal.message.contains("lease: user 1, instance one, since 20"), "{refusal}");
    }
    assert_eq!(bench.limits(), [80, 80]);
    // The log says it once, also if the first one renews its lease meanwhile.
    assert!(matches!(set(&mut bench, &daemon("one"), 140), Answer::Set(_)));
    assert!(matches!(set(&mut bench, &daemon("two"), 200), Answer::Refused(_)));
    let notices = bench.agent().take_notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].starts_with("user 1, instance two (test) is refused: "), "{notices:?}");
    // A client that does not say which one it is gets no further.
    assert!(matches!(set(&mut bench, &controller(), 200), Answer::Refused(_)));
    // The agent knows them after its own restart.
    bench.kill();
    bench.start();
    assert!(matches!(set(&mut bench, &daemon("two"), 200), Answer::Refused(_)));
    assert!(matches!(set(&mut bench, &daemon("one"), 160), Answer::Set(_)));
    // When the first one gives the node back, the second one may have it.
    let now = bench.now();
    assert!(matches!(bench.agent().answer(&daemon("one"), Request::Release, now), Answer::Set(_)));
    assert!(matches!(set(&mut bench, &daemon("two"), 200), Answer::Set(_)));
}

/// A daemon of an older version holds a lease without saying which one it is; updated, it goes on.
#[test]
fn a_controller_that_is_updated_keeps_its_lease() {
    let mut bench = Bench::new();
    bench.set_node(160);
    let updated = Peer { instance: "one".parse().ok(), ..controller() };
    let now = bench.now();
    let set = Request::Set(Caps::Node { cap: watts(140) });
    assert!(matches!(bench.agent().answer(&updated, set.clone(), now), Answer::Set(_)));
    assert!(matches!(bench.agent().answer(&controller(), set, now), Answer::Refused(_)));
}

#[test]
fn requests_that_make_no_sense_are_refused_whole() {
    let mut bench = Bench::new();
    let domains = |caps: &[(&str, u32)]| {
        let caps = caps.iter().map(|(name, cap)| (DomainName::written(name), watts(*cap)));
        Request::Set(Caps::Domains { caps: caps.collect() })
    };
    for (request, expected) in [
        (
            domains(&[("package-0", 50), ("package-7", 50)]),
            "no domain 'package-7'; it has: package-0, package-1",
        ),
        (domains(&[("package-0", 50), ("package-0", 60)]), "named twice"),
        (Request::End { job: "9".to_owned() }, "did not begin on this node"),
        (Request::Begin { job: String::new() }, "1 to 128 bytes"),
        (Request::Begin { job: "x".repeat(129) }, "1 to 128 bytes"),
    ] {
        let Answer::Refused(refusal) = bench.ask(request) else { panic!() };
        assert!(refusal.message.contains(expected), "{refusal}");
    }
    assert_eq!(bench.limits(), [100, 100]);
    assert_eq!(bench.agent().controller(), None, "a refused request takes no lease");
}

#[test]
fn memory_and_gpus_are_domains_too() {
    let shape = Shape { dram: Some(USUAL_DRAM), gpus: 1, ..Shape::default() };
    let mut bench = Bench::with(shape, |config| {
        config.hardware.set_gpus = true;
        config.caps.domains =
            vec![crate::domain::DomainKind::Package, crate::domain::DomainKind::Gpu];
    });
    let inventory = bench.agent().inventory();
    let names: Vec<&str> = inventory.domains.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!(names, ["package-0", "package-1", "dram-0", "dram-1", "gpu-0"]);
    assert!(inventory.emulated);
    // 2 × 40 + 100 to 2 × 100 + 300; memory is not part of it.
    assert_eq!(inventory.caps.unwrap().lowest, watts(180));
    assert_eq!(inventory.caps.unwrap().highest, watts(500));
    assert!(bench.set_node(340).is_confirmed());
    let gpu = fs::read_to_string(bench.file("gpu:0/power_limit_uw")).unwrap();
    assert_eq!(gpu.trim(), "200000000");
    assert!(bench.set_domains(&[("dram-1", 12)]).is_confirmed());
    assert_eq!(bench.limit("intel-rapl:1:0"), 12);
    bench.ask(Request::Release);
    let gpu = fs::read_to_string(bench.file("gpu:0/power_limit_uw")).unwrap();
    assert_eq!(gpu.trim(), "300000000");
}

#[test]
fn limits_of_gpus_are_only_read_unless_the_site_says_otherwise() {
    let mut bench = Bench::with(Shape { gpus: 1, ..Shape::default() }, |_| ());
    let inventory = bench.agent().inventory();
    let gpu = &inventory.domains[2];
    assert_eq!((gpu.caps, gpu.effective), (None, Effective::Limit(watts(300))));
    let caps = vec![(DomainName::written("gpu-0"), watts(150))];
    let Answer::Refused(refusal) = bench.ask(Request::Set(Caps::Domains { caps })) else {
        panic!()
    };
    assert!(refusal.message.contains("write 'set = true' under [gpu]"), "{refusal}");
    bench.pass(1);
    assert_eq!(bench.domain("gpu-0").power.origin(), "emulated");
    let _ = &bench.place;
}
