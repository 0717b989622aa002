//! Small stories, each worked out by hand from the paper's rule.

use super::*;

/// Between 60 % and 90 % of the limit a job may be slowed down to less than twice its time,
/// above that to less than four times.
const GUIDE: Guide = Guide {
    lower_millionths: 600_000,
    upper_millionths: 900_000,
    bsld_lower: 2.0,
    bsld_upper: 4.0,
    bsld_threshold_ms: 1,
};

/// A job that arrives at 0 and takes exactly the time it asked for. Each way: time, power.
fn job<const WAYS: usize>(nodes: u32, ways: [(u64, u64); WAYS]) -> PlainJob {
    let way = |(time_ms, milliwatts)| Way::rigid(nodes, time_ms, time_ms, milliwatts);
    PlainJob {
        submit_ms: 0,
        asked: nodes,
        nodes,
        requested_ms: ways[0].0,
        weight_thousandths: 1000,
        tolerance_millionths: None,
        ways: ways.map(way).to_vec(),
    }
}

/// A machine with one limit of 100 milliwatts: a milliwatt is a percent.
fn machine(nodes: u32) -> PlainMachine {
    PlainMachine { nodes, budget: vec![(0, 100)] }
}

/// What a rule makes of a story; asked after every event or once an instant, it is the same
/// in all stories here.
fn starts(machine: &PlainMachine, jobs: &[PlainJob], rule: Rule) -> Starts {
    let starts = Plain::starts(machine, jobs, rule, false);
    assert_eq!(Plain::starts(machine, jobs, rule, true), starts, "{rule:?}");
    starts
}

#[test]
fn nothing_is_slowed_down_below_the_lower_share() {
    // Job 0: at way 1 the power would be 20: below 60, the threshold is 0. Way 0.
    // Job 1: at way 1 it would be 39 + 20 = 59: still below. Way 0. Now 78 are drawn.
    // Without a lower share both are slowed down: 1.5 is less than 2.
    let jobs = vec![job(1, [(100, 39), (150, 20)]); 2];
    let guided = Rule::PbGuided(GUIDE);
    assert_eq!(starts(&machine(4), &jobs, guided), [Some((0, 0)), Some((0, 0))]);
    let guided = Rule::PbGuided(Guide { lower_millionths: 0, ..GUIDE });
    assert_eq!(starts(&machine(4), &jobs, guided), [Some((0, 1)), Some((0, 1))]);
    // One milliwatt more is 60 and no longer below it: the second is slowed down.
    let jobs = vec![job(1, [(100, 40), (150, 20)]); 2];
    let guided = Rule::PbGuided(GUIDE);
    assert_eq!(starts(&machine(4), &jobs, guided), [Some((0, 0)), Some((0, 1))]);
}

#[test]
fn the_more_is_drawn_the_slower_a_way_is_accepted() {
    // Predicted slowdowns at 0: 1, 1.5 and 3.
    // Job 0: way 2 makes 20, way 1 makes 30: both below 60, threshold 0. Way 0.
    // Job 1: way 2 makes 60: threshold 2, and 3 is too much. Way 1 makes 70: 1.5 is less
    // than 2. Way 1.
    // Job 2: way 2 makes 90: no longer below 90, threshold 4, and 3 is less. Way 2.
    let jobs = vec![job(1, [(100, 40), (150, 30), (300, 20)]); 3];
    let guided = Rule::PbGuided(GUIDE);
    let expected = [Some((0, 0)), Some((0, 1)), Some((0, 2))];
    assert_eq!(starts(&machine(3), &jobs, guided), expected);
    // The other rule slows down nobody: 40, 80, and the third waits for 100.
    let expected = [Some((0, 0)), Some((0, 0)), Some((100, 0))];
    assert_eq!(starts(&machine(3), &jobs, Rule::EasyPower), expected);
}

#[test]
fn a_slowdown_has_to_stay_below_its_threshold() {
    // Job 0: way 1 makes 20: threshold 0. Way 0, 60 drawn.
    // Job 1: way 1 makes 80: threshold `bsld_lower`; way 0 makes 120, which is too much.
    let jobs = vec![job(1, [(100, 60), (150, 20)]); 2];
    let second = |bsld_lower, bsld_threshold_ms| {
        let guide = Guide { bsld_lower, bsld_threshold_ms, ..GUIDE };
        let starts = starts(&machine(2), &jobs, Rule::PbGuided(guide));
        assert_eq!(starts[0], Some((0, 0)));
        starts[1].unwrap()
    };
    // A slowdown of 150 / 100 is not below 1.5. At 100, when nothing runs, way 1 makes 20:
    // threshold 0. Way 0.
    assert_eq!(second(1.5, 1), (100, 0));
    assert_eq!(second(1.51, 1), (0, 1));
    // Set against 150, it is 1, which is below 1.5. It is never less than 1, so that a
    // threshold of 1 slows down nobody, however short.
    assert_eq!(second(1.5, 150), (0, 1));
    assert_eq!(second(1.0, 1000), (100, 0));
}

#[test]
fn the_wait_counts_as_slowdown() {
    // Two nodes. Job 0: both until 100, 10 milliwatts. Job 1: one node from 100 on, for 200,
    // 60 milliwatts. Job 2 waits for 100 as well; then way 1 makes 60 + 20 = 80: threshold 2.
    // Submitted at 50: (50 + 150) / 100 = 2 is not less. Way 0 fits: 60 + 40.
    // Submitted at 51: (49 + 150) / 100 = 1.99 is less. Way 1.
    for (submit_ms, way) in [(50, 0), (51, 1)] {
        let last = PlainJob { submit_ms, ..job(1, [(100, 40), (150, 20)]) };
        let jobs = [job(2, [(100, 10)]), job(1, [(200, 60)]), last];
        let expected = [Some((0, 0)), Some((100, 0)), Some((100, way))];
        assert_eq!(starts(&machine(2), &jobs, Rule::PbGuided(GUIDE)), expected);
    }
}

#[test]
fn the_reservation_is_protected_by_watts() {
    // Nodes for all. Job 0 draws 60 until 100. Job 1, the head, needs 80: reserved at 100,
    // until 200.
    // Job 2: 60 + 30 are there now, but it is still here at 100, and 80 + 30 are not: waits.
    // Job 3: the same power, but gone at 100: starts. 90 drawn.
    // Job 4: 100 now, 80 + 10 beside the head: starts.
    // At 100: job 1 as reserved, 90 drawn. Job 2 waits for its end at 200.
    let jobs = [
        job(1, [(100, 60)]),
        job(1, [(100, 80)]),
        job(1, [(150, 30)]),
        job(1, [(100, 30)]),
        job(1, [(200, 10)]),
    ];
    let expected = [0, 100, 200, 0, 0].map(|start| Some((start, 0)));
    // With one way each, the rules do not differ.
    for rule in [Rule::Easy, Rule::EasyPower, Rule::PbGuided(GUIDE)] {
        assert_eq!(starts(&machine(10), &jobs, rule), expected, "{rule:?}");
    }
}

#[test]
fn a_job_that_may_not_be_slow_beside_the_reservation_may_be_fast_before_it() {
    // As above: 60 until 100, then the head with 80.
    // Job 2: way 1 makes 85: threshold 2, and 1.5 is less; but it would last until 150, and
    // 80 + 25 are not there at 100. Way 0: 60 + 30 now, gone at 100.
    let (first, head, last) =
        (job(1, [(100, 60)]), job(1, [(100, 80)]), job(1, [(100, 30), (150, 25)]));
    let guided = Rule::PbGuided(GUIDE);
    let expected = [Some((0, 0)), Some((100, 0)), Some((0, 0))];
    assert_eq!(starts(&machine(4), &[first.clone(), head, last.clone()], guided), expected);
    // Without the head nothing stands against way 1.
    let expected = [Some((0, 0)), Some((0, 1))];
    assert_eq!(starts(&machine(4), &[first, last], guided), expected);
}

#[test]
fn the_reservation_is_protected_by_nodes() {
    // Three nodes. Job 0: two until 100, 60 milliwatts. Job 1, the head: all three at 100.
    // Job 2: at way 1 (80: threshold 2, slowdown 1.25) it would end at 100: starts.
    // With a way 1 that ends at 101 it would be in the way, as way 0 is not: it ends at 80.
    for (slow, way) in [(100, 1), (101, 0)] {
        let jobs = [job(2, [(100, 60)]), job(3, [(50, 5)]), job(1, [(80, 30), (slow, 20)])];
        let expected = [Some((0, 0)), Some((100, 0)), Some((0, way))];
        assert_eq!(starts(&machine(3), &jobs, Rule::PbGuided(GUIDE)), expected);
    }
}

#[test]
fn the_head_takes_a_slower_way_where_that_is_earlier() {
    // Five nodes. Job 0: three until 100, 30 milliwatts. Job 1: one until 300, 50 milliwatts.
    // Job 2, the head, asks for two, and one is free. At 100 two are free. Way 1 makes
    // 80 + 40 = 120, with what is drawn now: threshold 4; slowdown (100 + 150) / 100 = 2.5;
    // beside job 1 it makes 90: reserved at 100 at way 1. (Way 0 would make 110, and have to
    // wait until 300.)
    // Job 3 has a node and 20 milliwatts now. At 100 it would make 50 + 40 + 20: waits.
    // At 100: way 1 of the head makes 50 + 40 = 90: threshold 4, slowdown 2.5. Way 1, until
    // 250. Job 3: then.
    let jobs = [
        job(3, [(100, 30)]),
        job(1, [(300, 50)]),
        job(2, [(100, 60), (150, 40)]),
        job(1, [(150, 20)]),
    ];
    let expected = [Some((0, 0)), Some((0, 0)), Some((100, 1)), Some((250, 0))];
    assert_eq!(starts(&machine(5), &jobs, Rule::PbGuided(GUIDE)), expected);
    // At nominal power the reservation is at 300: job 3 starts at once.
    let expected = [Some((0, 0)), Some((0, 0)), Some((300, 0)), Some((0, 0))];
    assert_eq!(starts(&machine(5), &jobs, Rule::EasyPower), expected);
}

#[test]
fn the_threshold_of_a_later_start_counts_what_is_drawn_now() {
    // Four nodes. Job 0: three until 100, 70 milliwatts. Job 1, the head, asks for two. At
    // 100 way 1 makes 70 + 40 = 110, with what is drawn now: threshold 4, slowdown 2.5:
    // reserved at 100 at way 1. (By what is drawn at 100 the threshold would be 0.)
    // Job 2: 70 + 30 now; at 100 beside the head 40 + 30: starts. (Beside way 0: 80 + 30.)
    // At 100 the head is looked at anew: way 1 makes 30 + 40: threshold 2, slowdown 2.5: no.
    // Way 0 makes 30 + 80: no. At 240: way 1 is 3.9 by now, way 0 fits: reserved there.
    // At 240 nothing runs: way 0.
    let jobs = [job(3, [(100, 70)]), job(2, [(100, 80), (150, 40)]), job(1, [(240, 30)])];
    let expected = [Some((0, 0)), Some((240, 0)), Some((0, 0))];
    assert_eq!(starts(&machine(4), &jobs, Rule::PbGuided(GUIDE)), expected);
}

#[test]
fn the_slowdown_of_a_later_start_counts_the_wait_until_then() {
    // As above, but job 0 stays until 250. For the head at 250 way 1 has threshold 4 again,
    // but (250 + 150) / 100 = 4 is not less: reserved at way 0, until 350.
    // Job 2 would still be here at 250: 80 + 30 are not there. It waits for the head's end.
    let jobs = [job(3, [(250, 70)]), job(2, [(100, 80), (150, 40)]), job(1, [(390, 30)])];
    let expected = [Some((0, 0)), Some((250, 0)), Some((350, 0))];
    assert_eq!(starts(&machine(4), &jobs, Rule::PbGuided(GUIDE)), expected);
}

#[test]
fn a_slowed_job_ends_by_the_clock_of_its_way() {
    // Job 0 draws 60. Job 1: way 1 makes 90: threshold 4, slowdown 2. Way 1. Job 2 needs both
    // nodes: it waits for the real end of job 1, at most for its limit at this way, 200.
    for (run_ms, end) in [(110, 110), (200, 200), (300, 200)] {
        let mut slowed = job(1, [(100, 50), (200, 30)]);
        slowed.ways[1].run_ms = run_ms;
        let jobs = [job(1, [(100, 60)]), slowed, job(2, [(10, 10)])];
        let expected = [Some((0, 0)), Some((0, 1)), Some((end, 0))];
        assert_eq!(starts(&machine(2), &jobs, Rule::PbGuided(GUIDE)), expected);
    }
}

#[test]
fn an_oversized_job_runs_at_the_fastest_way_that_fits() {
    // Ways 0 and 1 of job 0 draw more than there ever is. Way 2 is the fastest possible one.
    // Under the guided rule way 3 makes 50: threshold 0. Way 2 needs no threshold.
    // Job 1: 90 + 20 is too much until 150.
    // Job 2 draws too much at every way, job 3 asks for too many nodes.
    let jobs = [
        job(1, [(100, 150), (120, 110), (150, 90), (200, 50)]),
        job(1, [(100, 20)]),
        job(1, [(100, 150), (200, 101)]),
        job(5, [(100, 20)]),
    ];
    let expected = [Some((0, 2)), Some((150, 0)), None, None];
    for rule in [Rule::EasyPower, Rule::PbGuided(GUIDE)] {
        assert_eq!(starts(&machine(4), &jobs, rule), expected, "{rule:?}");
    }
    // The rules that know one way only turn it away.
    let expected = [None, Some((0, 0)), None, None];
    for rule in [Rule::Fcfs, Rule::Easy, Rule::Conservative] {
        assert_eq!(starts(&machine(4), &jobs, rule), expected, "{rule:?}");
    }
}

#[test]
fn an_oversized_job_may_be_slowed_down_further() {
    // Job 0 draws 40. Job 1: way 3 makes 90: threshold 4, slowdown (0 + 200) / 100 = 2, set
    // against the nominal time although that way is out of reach. Way 3. Without slowing down
    // it waits for way 2 to fit, at 100.
    let jobs = [job(1, [(100, 40)]), job(1, [(100, 150), (120, 110), (150, 90), (200, 50)])];
    let expected = [Some((0, 0)), Some((0, 3))];
    assert_eq!(starts(&machine(4), &jobs, Rule::PbGuided(GUIDE)), expected);
    let expected = [Some((0, 0)), Some((100, 2))];
    assert_eq!(starts(&machine(4), &jobs, Rule::EasyPower), expected);
    let guided = Rule::PbGuided(Guide { bsld_upper: 2.0, ..GUIDE });
    assert_eq!(starts(&machine(4), &jobs, guided), expected);
}

#[test]
fn a_limit_to_come_counts_for_the_fastest_possible_way() {
    // 50 now, 100 from 100 on: 80 are possible, so plain EASY waits for them.
    // Guided: way 1 makes 40, that is 80 % of the limit of now: threshold 2, and 1.5 is less.
    let machine = PlainMachine { nodes: 1, budget: vec![(0, 50), (100, 100)] };
    let jobs = [job(1, [(100, 80), (150, 40)])];
    assert_eq!(starts(&machine, &jobs, Rule::EasyPower), [Some((100, 0))]);
    assert_eq!(starts(&machine, &jobs, Rule::PbGuided(GUIDE)), [Some((0, 1))]);
    // With a threshold of 1.5 way 1 is too slow now, and slower still at 100. Then way 0 fits.
    let guided = Rule::PbGuided(Guide { bsld_lower: 1.5, ..GUIDE });
    assert_eq!(starts(&machine, &jobs, guided), [Some((100, 0))]);
}

#[test]
fn a_limit_that_has_gone_no_longer_counts() {
    // 120 until 50, then 100. Job 0 has all of it until 50.
    // Job 1: at 0 its fastest possible way, 110, fits nowhere: no reservation. From 50 on the
    // fastest possible way is way 1, and it starts. (Guided: at 0 way 1 makes 210: threshold
    // 4, slowdown (50 + 150) / 100: reserved at 50. At 50 it is the fastest possible way.)
    // Job 2: at 0 it could have run; from 50 on it never can. It stands in nobody's way.
    // Job 3: 90 + 10 at 50.
    let machine = PlainMachine { nodes: 4, budget: vec![(0, 120), (50, 100)] };
    let jobs = [
        job(1, [(50, 120)]),
        job(1, [(100, 110), (150, 90)]),
        job(1, [(100, 105)]),
        job(1, [(100, 10)]),
    ];
    let expected = [Some((0, 0)), Some((50, 1)), None, Some((50, 0))];
    for rule in [Rule::EasyPower, Rule::PbGuided(GUIDE)] {
        assert_eq!(starts(&machine, &jobs, rule), expected, "{rule:?}");
    }
}
