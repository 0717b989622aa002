//! Random faults, requests, restarts and second writers: what a controller believes is never less than what
//! holds, and what is shown as watts is what was drawn.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    SetNode(u32),
    SetDomain(usize, u32),
    Fault(usize, Fault),
    Repair,
    /// Somebody else writes a limit, in watts.
    Foreign(usize, u32),
    Renew,
    Pass(u32),
    Restart,
    Release,
}

fn fault() -> impl Strategy<Value = Fault> {
    prop::sample::select(vec![
        Fault::WriteDenied,
        Fault::ReadDenied,
        Fault::Locked,
        Fault::Refused,
        Fault::Ignored,
        Fault::Clamped(75_000_000),
        Fault::Disobeyed,
        Fault::Disabled,
        Fault::Stuck,
        Fault::Jumped(900_000_000),
        Fault::Vanished,
    ])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (60u32..220).prop_map(Step::SetNode),
        3 => (0usize..2, 30u32..120).prop_map(|(zone, cap)| Step::SetDomain(zone, cap)),
        4 => (0usize..2, fault()).prop_map(|(zone, fault)| Step::Fault(zone, fault)),
        2 => Just(Step::Repair),
        1 => (0usize..2, 20u32..110).prop_map(|(zone, watts)| Step::Foreign(zone, watts)),
        1 => Just(Step::Renew),
        4 => (1u32..4).prop_map(Step::Pass),
        1 => Just(Step::Restart),
        1 => Just(Step::Release),
    ]
}

/// A controller: it believes what it is told, and nothing else.
struct Controlled {
    bench: Bench,
    believed: BTreeMap<DomainName, Effective>,
    faults: Faults,
}

impl Controlled {
    fn new() -> Self {
        let mut controlled =
            Controlled { bench: Bench::new(), believed: BTreeMap::new(), faults: Faults::new() };
        controlled.connect();
        controlled
    }

    /// The inventory replaces all that was believed.
    fn connect(&mut self) {
        let inventory = self.bench.agent().inventory();
        self.believed =
            inventory.domains.into_iter().map(|domain| (domain.name, domain.effective)).collect();
    }

    fn hear(&mut self, reports: &[DomainReport]) {
        for report in reports {
            self.believed.insert(report.name.clone(), report.effective);
        }
    }

    fn ask(&mut self, request: Request) {
        if let Answer::Set(report) = self.bench.ask(request) {
            self.hear(&report.domains);
        }
    }

    fn pass(&mut self, seconds: u32) {
        for event in self.bench.pass(seconds) {
            match event {
                Event::Changed { name, effective, .. } | Event::Found { name, effective } => {
                    self.believed.insert(name, effective);
                }
                Event::LeaseEnded { report, .. } => self.hear(&report.domains),
                _ => (),
            }
        }
    }

    fn has(&self, zone: usize, fault: Fault) -> bool {
        let faults = self.faults.get(&format!("intel-rapl:{zone}"));
        faults.is_some_and(|faults| faults.contains(&fault))
    }

    /// Whether a zone has no limit in force.
    fn is_free(&self, zone: usize) -> bool {
        let file = self.bench.file(&format!("intel-rapl:{zone}/enabled"));
        self.has(zone, Fault::Disabled) || fs::read_to_string(file).unwrap().trim() == "0"
    }

    /// The limit in the tree itself, in microwatts.
    fn limit(&self, zone: usize) -> u64 {
        let file = format!("intel-rapl:{zone}/constraint_0_power_limit_uw");
        fs::read_to_string(self.bench.file(&file)).unwrap().trim().parse().unwrap()
    }

    /// Nothing holds that is above what the controller counts.
    fn check_belief(&self, zone: usize) {
        let name = DomainName::written(&format!("package-{zone}"));
        let counted = self.believed[&name].counted(watts(100)).milliwatts();
        let holds = if self.is_free(zone) { 100_000 } else { self.limit(zone) / 1000 };
        assert!(
            holds.min(100_000) <= counted,
            "zone {zone}: {holds} mW hold, {counted} mW are believed"
        );
    }

    /// What a zone draws in milliwatts: 90 W of demand, within 99.9 % of its limit.
    fn drawn(&self, zone: usize) -> u64 {
        let limit = self.limit(zone) - self.limit(zone) / 1000;
        let is_free = self.is_free(zone) || self.has(zone, Fault::Disobeyed);
        let drawn = if is_free { 90_000_000 } else { limit.clamp(10_000_000, 90_000_000) };
        drawn.div_ceil(1000)
    }

    /// What is shown as watts is what was drawn.
    fn check_power(&mut self, zone: usize, drawn: u64) {
        let shown = self.bench.domain(&format!("package-{zone}")).power;
        assert!(!matches!(shown, Reading::Measured { .. }), "nothing here is measured");
        let Some(shown) = shown.value() else { return };
        let shown = shown.milliwatts();
        assert!(
            shown.abs_diff(drawn) <= 1,
            "zone {zone}: {shown} mW are shown, {drawn} mW were drawn"
        );
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::SetNode(cap) => self.ask(Request::Set(Caps::Node { cap: watts(cap) })),
            Step::SetDomain(zone, cap) => {
                let caps = vec![(DomainName::written(&format!("package-{zone}")), watts(cap))];
                self.ask(Request::Set(Caps::Domains { caps }));
            }
            Step::Fault(zone, fault) => {
                self.faults = Faults::from([(format!("intel-rapl:{zone}"), vec![fault])]);
                emulate::set_faults(&self.bench.config.hardware.powercap, &self.faults).unwrap();
            }
            Step::Repair => {
                self.faults.clear();
                self.bench.repair();
            }
            Step::Foreign(zone, watts) => {
                let file = format!("intel-rapl:{zone}/constraint_0_power_limit_uw");
                fs::write(self.bench.file(&file), format!("{}\n", u64::from(watts) * 1_000_000))
                    .unwrap();
            }
            Step::Renew => self.ask(Request::Renew { lease: 3000 }),
            Step::Pass(seconds) => self.pass(seconds),
            Step::Restart => {
                self.bench.kill();
                // An agent that starts without seeing a zone does not know it as a domain.
                self.take(Step::Repair);
                self.bench.start();
                self.connect();
            }
            Step::Release => self.ask(Request::Release),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn nothing_holds_above_what_is_believed_and_no_wrong_watt_is_shown(
        steps in prop::collection::vec(step(), 1..25),
    ) {
        let mut controlled = Controlled::new();
        // A domain without a cap is not looked after, so the controller sets one first.
        controlled.ask(Request::Set(Caps::Node { cap: watts(190) }));
        controlled.pass(3);
        for step in steps {
            controlled.take(step);
            // What somebody else does is noticed at the next look.
            let drawn = [controlled.drawn(0), controlled.drawn(1)];
            controlled.pass(1);
            for (zone, drawn) in drawn.into_iter().enumerate() {
                controlled.check_belief(zone);
                controlled.check_power(zone, drawn);
            }
        }
    }
}
