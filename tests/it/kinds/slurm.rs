//! Policy `slurm` beside the same rules written plainly: every job starts in the same second.

use proptest::prelude::*;

use super::{KINDS, by_policy, by_policy_where, floor, jobs, partitions};
use crate::plain::slurm::{PlainRules, Reserved, starts};

/// The rules as parameters of the policy.
fn text(rules: &PlainRules) -> String {
    let switch = |is_on: bool| if is_on { "on" } else { "off" };
    let PlainRules { backfill, defer, epilog, bf_busy_nodes, pack_serial_at_end, lln, .. } = *rules;
    let switches = [
        ("backfill", backfill),
        ("defer", defer),
        ("epilog", epilog),
        ("bf_busy_nodes", bf_busy_nodes),
        ("pack_serial_at_end", pack_serial_at_end),
        ("lln", lln),
    ];
    let lengths = [
        ("sched_interval", rules.sched_interval),
        ("batch_sched_delay", rules.batch_sched_delay),
        ("bf_interval", rules.bf_interval),
        ("bf_window", rules.bf_window),
        ("bf_resolution", rules.bf_resolution),
        ("bf_min_age_reserve", rules.bf_min_age_reserve),
        ("kill_wait", rules.kill_wait),
    ];
    let counts = [
        ("default_queue_depth", rules.default_queue_depth),
        ("partition_job_depth", rules.partition_job_depth),
        ("sched_max_job_start", rules.sched_max_job_start),
        ("bf_max_job_test", rules.bf_max_job_test),
        ("bf_max_job_start", rules.bf_max_job_start),
        ("bf_max_job_part", rules.bf_max_job_part),
        ("bf_job_part_count_reserve", rules.bf_job_part_count_reserve),
        ("bf_node_space_size", rules.bf_node_space_size),
    ];
    let switches = switches.map(|(key, is_on)| format!("{key}={}", switch(is_on)));
    let lengths = lengths.map(|(key, seconds)| format!("{key}={seconds}s"));
    let counts = counts.map(|(key, count)| format!("{key}={count}"));
    let all: Vec<String> = switches.into_iter().chain(lengths).chain(counts).collect();
    format!("slurm({})", all.join(", "))
}

fn rules() -> impl Strategy<Value = PlainRules> {
    let switch = || prop::bool::weighted(0.2);
    let few = |most: usize| prop_oneof![3 => Just(0usize), 1 => 1..most];
    let switches =
        (prop::bool::weighted(0.85), switch(), any::<bool>(), switch(), switch(), switch());
    let lengths = (10u64..90, 0u64..6, 1u64..40, 60u64..2000, 1u64..90, 0u64..60);
    let age = prop_oneof![3 => Just(0u64), 1 => 1u64..300];
    let counts = (few(20), few(6), few(4), 1usize..40, few(4), few(9), few(4), few(20));
    (switches, lengths, age, counts).prop_map(|(switches, lengths, age, counts)| {
        let (backfill, defer, epilog, bf_busy_nodes, pack_serial_at_end, lln) = switches;
        let (sched_interval, batch_sched_delay, bf_interval, bf_window, bf_resolution, kill_wait) =
            lengths;
        PlainRules {
            backfill,
            defer,
            epilog,
            sched_interval,
            batch_sched_delay,
            default_queue_depth: counts.0,
            partition_job_depth: counts.1,
            sched_max_job_start: counts.2,
            bf_interval,
            bf_window,
            bf_resolution,
            bf_max_job_test: counts.3,
            bf_max_job_start: counts.4,
            bf_max_job_part: counts.5,
            bf_job_part_count_reserve: counts.6,
            bf_node_space_size: counts.7,
            bf_min_age_reserve: age,
            kill_wait,
            bf_busy_nodes,
            pack_serial_at_end,
            lln,
        }
    })
}

/// The settings that Slurm has by itself.
const USUAL: PlainRules = PlainRules {
    backfill: true,
    defer: false,
    epilog: true,
    sched_interval: 60,
    batch_sched_delay: 3,
    default_queue_depth: 100,
    partition_job_depth: 0,
    sched_max_job_start: 0,
    bf_interval: 30,
    bf_window: 24 * 3600,
    bf_resolution: 60,
    bf_max_job_test: 500,
    bf_max_job_start: 0,
    bf_max_job_part: 0,
    bf_job_part_count_reserve: 0,
    bf_node_space_size: 0,
    bf_min_age_reserve: 0,
    kill_wait: 30,
    bf_busy_nodes: false,
    pack_serial_at_end: false,
    lln: false,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The same jobs start at the same times, under any settings, with much power and with little.
    #[test]
    fn slurm_starts_whom_a_plain_loop_starts(
        asked in jobs(),
        rules in rules(),
        limit in prop_oneof![Just(100_000_000u64), 900_000u64..2_000_000],
    ) {
        let kinds = KINDS.map(|(kind, _)| kind);
        let expected = starts(rules, &kinds, &partitions(), &asked, limit - floor(), &[]);
        prop_assert_eq!(by_policy(&asked, limit, None, &text(&rules)), expected);
    }

    /// The same with the settings that nobody changed, which need not be said.
    #[test]
    fn usual_settings_are_those_of_slurm(asked in jobs()) {
        let kinds = KINDS.map(|(kind, _)| kind);
        let limit = 100_000_000;
        let expected = starts(USUAL, &kinds, &partitions(), &asked, limit - floor(), &[]);
        prop_assert_eq!(by_policy(&asked, limit, None, "slurm"), expected);
    }

    /// The main loop where nodes are reserved for a while: nobody is on them who could still be there, and some start on others.
    #[test]
    fn nobody_is_on_reserved_nodes(
        asked in jobs(),
        rules in rules(),
        reserved in prop::collection::vec(reserved(), 1..3),
    ) {
        let rules = PlainRules { backfill: false, ..rules };
        let kinds = KINDS.map(|(kind, _)| kind);
        let limit = 100_000_000;
        let expected = starts(rules, &kinds, &partitions(), &asked, limit - floor(), &reserved);
        let site: Vec<String> =
            std::iter::once(FIRST_COME.to_owned()).chain(reserved.iter().map(written)).collect();
        let policy = text(&rules);
        let started =
            by_policy_where(&asked, limit, None, &policy, false, Some(&site.concat()));
        prop_assert_eq!(started, expected);
    }
}

/// Some of the ten nodes, for some minutes.
fn reserved() -> impl Strategy<Value = Reserved> {
    (0u64..900, 1u64..600, prop::collection::btree_set(0usize..10, 1..6))
        .prop_map(|(from, length, nodes)| (from, from + length, nodes))
}

/// No job is worth more than another, so that the first comes first.
const FIRST_COME: &str =
    "[priority.weights]\nage = 0\nfair_share = 0\njob_size = 0\npartition = 0\n";

/// A reservation as a site file has it.
fn written((from, until, nodes): &Reserved) -> String {
    let nodes: Vec<String> = nodes.iter().map(usize::to_string).collect();
    format!(
        "[[reservation]]\nname = 'r{from}'\nstart = '{from}'\nend = '{until}'\nnodes = '{}'\n",
        nodes.join(",")
    )
}
