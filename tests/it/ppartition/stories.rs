//! Stories worked out by hand.

use busbar::ledger::Ledger;
use busbar::model::{Caps, Model};
use busbar::policy::{Changes, Decision, Policy, Ppartition, PpartitionSpec, View};
use busbar::queue::{Queue, SizeClasses};
use busbar::sim::Capping;
use busbar::units::JobId;

use super::rule::Capped;
use super::watched::plain;
use super::*;

const SKIP: Rules = Rules {
    sizes: (4, 64),
    refusal: Refusal::Skip,
    is_uncapped: false,
    fewest: 0,
    sharing: Sharing::Busbar,
};
const PAPER: Rules = Rules { sharing: Sharing::Paper, ..SKIP };
const GAIN: Rules = Rules { sharing: Sharing::Gain, ..SKIP };

/// One application on processors with these curves, in watts.
fn processors(curves: &[&[(u64, u64)]]) -> Vec<Vec<Knots>> {
    let knots = |knots: &&[(u64, u64)]| knots.iter().map(|knot| (knot.0 * 1000, knot.1)).collect();
    vec![curves.iter().map(knots).collect()]
}

/// So many processors with the same curve.
fn alike(count: usize, knots: &[(u64, u64)]) -> Vec<Vec<Knots>> {
    processors(&vec![knots; count])
}

/// Runs jobs under a budget of so many watts, watched: submitted when, nodes, seconds.
fn run(curves: Vec<Vec<Knots>>, watts: u32, jobs: &[(u32, u32, u32)]) -> Run {
    run_by(SKIP, curves, watts, jobs)
}

fn run_by(rules: Rules, curves: Vec<Vec<Knots>>, watts: u32, jobs: &[(u32, u32, u32)]) -> Run {
    let mut before = 0;
    let jobs = jobs.iter().map(|&(submit, nodes, seconds)| {
        let gap = submit - std::mem::replace(&mut before, submit);
        (gap, nodes, seconds, seconds, 1)
    });
    let jobs: Vec<Asked> = jobs.collect();
    let floors = 50 * curves[0].len() as u32;
    assert_eq!(watts * 100 % floors, 0, "the budget is in hundredths of all floors");
    let story = Story {
        curves,
        base_watts: 0,
        jobs,
        budget: vec![(0, watts * 100 / floors)],
        outages: vec![],
        rules,
        events: Events::Instant,
    };
    story.check().0
}

/// Caps that were set at a second: the job, and each of its processors with its milliwatts.
fn set_at(run: &Run, second: u32) -> Vec<(u32, Capped)> {
    let at = |capping: &&Capping| capping.at == Instant::from_secs(second);
    run.cappings.iter().filter(at).map(|c| (c.job.0, plain(&c.caps))).collect()
}

fn end(run: &Run, job: u32) -> u64 {
    run.records[JobId(job).index()].end.millis()
}

/// Two processors: without a cap the first does 150 on 80 W, the second 170 on 100 W; the mean is 160.
/// Of 150 W the first job's share is 75 W. It gets the more efficient processor, and 5 W more that
/// nobody else wants: 150 instead of 145.
///
/// After 10 s the second job comes. Its share is 75 W, too; 70 W are free, and the 5 W are taken from
/// the first. Now they do 145 and 144. The first has done 1500 of its 100 · 160; the second's 27 · 160
/// take 30 s. Then the first gets its 5 W back. It has done 1500 + 30 · 145 = 5850, and the other 10150
/// take 67.667 s.
#[test]
fn free_power_first_then_what_others_can_spare() {
    let curves = processors(&[&[(50, 120), (80, 150)], &[(50, 118), (100, 170)]]);
    let run = run(curves, 150, &[(0, 1, 100), (10, 1, 27)]);
    assert_eq!(set_at(&run, 0), [(0, vec![(0, 80_000)])]);
    assert_eq!(set_at(&run, 10), [(0, vec![(0, 75_000)]), (1, vec![(1, 75_000)])]);
    assert_eq!(set_at(&run, 40), [(0, vec![(0, 80_000)])]);
    assert_eq!(end(&run, 1), 40_000);
    assert!((107_667..=107_669).contains(&end(&run, 0)), "{}", end(&run, 0));
    assert_eq!(run.cappings.len(), 4);
}

/// Three processors. The first job's never draws more than 55 W, so the second's gets all it can use,
/// 100 W; 25 W of 180 W stay free. The third job's share is 60 W: 35 W are to be taken. In proportion
/// to 55 W and 100 W that is 12.419 W and 22.581 W, rounded to milliwatts; but the first job can do
/// without no more than 5 W. So the second gives the other 30 W. By the paper it gives no more than
/// its part, and the third job has 25 + 5 + 22.581 W, which is enough.
#[test]
fn taken_in_proportion_but_nobody_below_his_floor() {
    let jobs = [(0, 1, 500), (0, 1, 500), (10, 1, 100)];
    for (rules, second, third) in [(SKIP, 70_000, 60_000), (PAPER, 77_419, 52_581)] {
        let curves = processors(&[
            &[(50, 100), (55, 130)],
            &[(50, 100), (100, 150)],
            &[(50, 99), (110, 160)],
        ]);
        let run = run_by(rules, curves, 180, &jobs);
        assert_eq!(set_at(&run, 0), [(0, vec![(0, 55_000)]), (1, vec![(1, 100_000)])]);
        let expected = [(0, vec![(0, 50_000)]), (1, vec![(1, second)]), (2, vec![(2, third)])];
        assert_eq!(set_at(&run, 10), expected);
    }
}

/// Three processors that draw 50 W and no other power, and two that can use 150 W; 300 W in all. The
/// first job has the first three, at their floor, and the second all the rest. The third job's share
/// is 60 W. By the paper, half of it is asked of the first job, who cannot give it: 30 W feed
/// nobody, and the job waits for the first to end, beside a free processor and 100 W that the second
/// could do without. But the second can give all of it. And 50 W do 90 on the free processor and 50 where they are,
/// so all jobs together gain by it: both then gain as much by a watt, and what is left stays with the second.
#[test]
fn who_is_at_his_floor_keeps_nobody_out() {
    let jobs = [(0, 3, 500), (0, 1, 1000), (10, 1, 100)];
    let fixed: &[(u64, u64)] = &[(50, 100)];
    let free: &[(u64, u64)] = &[(50, 90), (150, 190)];
    let curves = processors(&[fixed, fixed, fixed, free, free]);
    let run = run_by(SKIP, curves.clone(), 300, &jobs);
    let fifties = (0..3).map(|node| (node, 50_000)).collect::<Capped>();
    assert_eq!(set_at(&run, 0), [(0, fifties), (1, vec![(3, 150_000)])]);
    assert_eq!(set_at(&run, 10), [(1, vec![(3, 90_000)]), (2, vec![(4, 60_000)])]);
    let run = run_by(PAPER, curves.clone(), 300, &jobs);
    assert_eq!(set_at(&run, 10), []);
    assert_eq!(run.records[2].start, run.records[0].end);
    let run = run_by(GAIN, curves, 300, &jobs);
    assert_eq!(set_at(&run, 10), [(1, vec![(3, 100_000)]), (2, vec![(4, 50_000)])]);
}

/// Four processors that draw 50 W and no other power, and 100 W: two of them can run. By the paper
/// the share of a job that asks for two is half of the power, which feeds one, and so does the
/// other's: both take twice as long as they asked for. But of the two that can run, its share is all.
#[test]
fn the_share_is_of_the_processors_that_can_run() {
    let jobs = [(0, 2, 100), (0, 2, 100)];
    let run = run_by(SKIP, alike(4, &[(50, 100)]), 100, &jobs);
    assert_eq!((end(&run, 0), end(&run, 1)), (100_000, 200_000));
    let run = run_by(PAPER, alike(4, &[(50, 100)]), 100, &jobs);
    assert_eq!((end(&run, 0), end(&run, 1)), (200_000, 200_000));
}

/// The same machine, and jobs that wait for all processors they ask for. The second asks for all four, of
/// which two can run: it waits for those two, and is not given up. They take twice as long.
#[test]
fn who_asks_for_more_than_can_run_waits_for_all_that_can() {
    let rules = Rules { fewest: 100, ..SKIP };
    let run = run_by(rules, alike(4, &[(50, 100)]), 100, &[(0, 1, 100), (0, 4, 100)]);
    assert_eq!((end(&run, 0), end(&run, 1)), (100_000, 300_000));
}

/// Eight processors that draw 50 W and no other power, and four that do 10 on 50 W and 100 on 75 W; 600 W
/// in all. One job has the eight, another one of the four and 75 W; 125 W are free. A third asks for
/// three: its share is 150 W, of which two processors are best; then it is 2/11 of 600 W, of which
/// one is best, and then 1/10: 60 W. That is less than is free. On 125 W two processors do 110, and
/// one does 100; by the paper it starts on one all the same.
#[test]
fn nobody_is_offered_less_than_is_free() {
    let jobs = [(0, 8, 500), (0, 1, 500), (10, 3, 100)];
    let fixed: &[(u64, u64)] = &[(50, 100)];
    let steep: &[(u64, u64)] = &[(50, 10), (75, 100)];
    let all = [vec![fixed; 8], vec![steep; 4]].concat();
    let run = run_by(SKIP, processors(&all), 600, &jobs);
    assert_eq!(set_at(&run, 10), [(2, vec![(9, 75_000), (10, 50_000)])]);
    let run = run_by(PAPER, processors(&all), 600, &jobs);
    assert_eq!(set_at(&run, 10), [(2, vec![(9, 75_000)])]);
}

/// Six processors that do 10 on 50 W and 100 on 75 W: a second one is worth it from 122.2 W on, when
/// the first can have 72.2 W (90) beside its 50 W (10). Three jobs have one each; their shares are
/// 50 W of 300 W, and 75 W once nobody else wants any. A fourth asks for three: its share is 150 W,
/// more than the 75 W that are free. On 150 W two are best; then its share is 2/5 of 300 W, and on
/// 120 W one is best; then it is 1/4, 75 W, which one can use. That is free: nothing is taken.
#[test]
fn fewer_processors_have_a_smaller_share_until_all_are_of_use() {
    let curves = alike(6, &[(50, 10), (75, 100)]);
    let run = run(curves, 300, &[(0, 1, 500), (0, 1, 500), (0, 1, 500), (10, 3, 100)]);
    let alone = |job| (job, vec![(job, 75_000)]);
    assert_eq!(set_at(&run, 0), [alone(0), alone(1), alone(2)]);
    assert_eq!(set_at(&run, 10), [alone(3)]);
}

/// The same processors, four of them and 200 W. The first job asks for two and has use for one. The
/// second asks for three: of 150 W two are best, and then its share is 2/3 of 200 W. 125 W are free
/// and 8.333 W are taken.
#[test]
fn who_drops_a_processor_may_still_take_from_others() {
    let curves = alike(4, &[(50, 10), (75, 100)]);
    let run = run(curves, 200, &[(0, 2, 500), (10, 3, 100)]);
    assert_eq!(set_at(&run, 0), [(0, vec![(0, 75_000)])]);
    let expected = [(0, vec![(0, 66_667)]), (1, vec![(1, 75_000), (2, 58_333)])];
    assert_eq!(set_at(&run, 10), expected);
}

/// Three processors that gain 3, 2 and 1 for each watt above 50 W; each of three jobs has 55 W of
/// 165 W. When the third job ends, all its power goes to the first, and nobody else changes. It does
/// 105 of a mean of 730/3, so 63 s of work take 146 s.
#[test]
fn what_is_given_back_goes_to_who_gains_most() {
    let curves =
        processors(&[&[(50, 100), (120, 310)], &[(50, 100), (120, 240)], &[(50, 100), (130, 180)]]);
    let run = run(curves, 165, &[(0, 1, 276), (0, 1, 900), (0, 1, 63)]);
    let alone = |job, milliwatts| (job, vec![(job, milliwatts)]);
    assert_eq!(set_at(&run, 0), [alone(0, 55_000), alone(1, 55_000), alone(2, 55_000)]);
    assert_eq!(end(&run, 2), 146_000);
    assert_eq!(set_at(&run, 146), [alone(0, 110_000)]);
    // At 115 all of it takes 584 s, so three quarters are left; at 280 all of it takes 239.857 s.
    let ended = end(&run, 0);
    assert!((325_893..=325_895).contains(&ended), "{ended}");
}

/// Two processors, 90 W. The first job has all of them. The second needs 50 W, and the first can do
/// without 40 W only: nothing changes until it ends. On 90 W a processor does 140 of 150, so 140 s of
/// work take 150 s.
#[test]
fn too_little_changes_nothing() {
    let curves = alike(2, &[(50, 100), (100, 150)]);
    let run = run(curves, 90, &[(0, 1, 140), (10, 1, 140)]);
    let expected = [(0, vec![(0, 90_000)]), (1, vec![(0, 90_000)])];
    let set: Vec<(u32, Capped)> =
        run.cappings.iter().map(|capping| (capping.job.0, plain(&capping.caps))).collect();
    assert_eq!(set, expected);
    assert_eq!((end(&run, 0), end(&run, 1)), (150_000, 300_000));
}

/// Two processors need 100 W, but there are 60 W: a job that asks for both gets one of them, which does
/// 110 of 150 on 60 W. So 110 s for two take 300 s.
#[test]
fn what_is_too_much_for_the_machine_runs_on_less() {
    let curves = alike(2, &[(50, 100), (100, 150)]);
    let run = run(curves, 60, &[(0, 2, 110)]);
    assert_eq!(set_at(&run, 0), [(0, vec![(0, 60_000)])]);
    assert_eq!(end(&run, 0), 300_000);
}

/// A policy that is told of a lower limit only when it is in force. Two jobs have 52 W and 100 W of
/// 200 W, and a third waits, who asks for more processors than there are left.
struct Surprised {
    policy: Ppartition,
    machine: Machine,
    workload: Workload,
}

impl Surprised {
    /// What is decided for jobs who hold these caps, in watts, under such limits.
    fn decide(&mut self, at: u32, limits: [u32; 2], held: &[(u32, u32)]) -> Vec<Decision> {
        let steps = [(0, limits[0]), (1000, limits[1])];
        let steps = steps.map(|(at, limit)| (Instant::from_secs(at), Watts::from_watts(limit)));
        let budget = Budget::from_steps(steps.to_vec()).unwrap();
        let model = Varied::on(&self.machine, self.workload.jobs(), 1);
        let mut ledger = Ledger::with_placement(&self.machine, budget);
        let mut queue = Queue::new(SizeClasses::of_sizes([1, 1, 1]), 3);
        let jobs = self.workload.jobs();
        for (id, job) in (0..3).map(JobId).zip(jobs) {
            match held.get(id.index()) {
                Some(&(node, watts)) => {
                    let caps = Caps::one(NodeId(node), Watts::from_watts(watts));
                    let point = model.on(id, job, &caps).unwrap();
                    ledger.start_on(id, &point, &caps).unwrap();
                }
                None => queue.insert(id, &model.footprint(id, job)),
            }
        }
        ledger.advance(Instant::from_secs(at));
        let arrived: Vec<JobId> = if held.is_empty() { queue.iter().collect() } else { vec![] };
        let view = View {
            now: ledger.now(),
            jobs,
            queue: &queue,
            ledger: &ledger,
            model: &model,
            changes: Changes { arrived: &arrived, machine: true, ..Changes::default() },
            waited: None,
            eligible: &[],
        };
        let mut decisions = Vec::new();
        self.policy.decide(&view, &mut decisions);
        decisions
    }
}

/// Under 120 W, 32 W are to be given up. In proportion that would be 10.9 W and 21.1 W; but the first
/// job has only 2 W to spare, so the second gives 30 W. Under 90 W, both have what they cannot do
/// without, and nobody starts.
#[test]
fn when_the_limit_falls_everybody_goes_down_to_it() {
    for (limit, second) in [(120, 70), (90, 50)] {
        let curves = processors(&[
            &[(50, 100), (52, 130)],
            &[(50, 100), (100, 150)],
            &[(50, 99), (101, 151)],
        ]);
        let mut surprised = Surprised {
            policy: Ppartition::with(PpartitionSpec::default()),
            machine: machine(&curves, 0),
            workload: workload(&[(0, 1, 9, 9, 1), (0, 1, 9, 9, 1), (0, 2, 9, 9, 1)]),
        };
        let watts = Watts::from_watts;
        let start =
            |job, watts| Decision::StartOn { job: JobId(job), caps: Caps::one(NodeId(job), watts) };
        let started = surprised.decide(0, [200, 200], &[]);
        assert_eq!(started, [start(0, watts(52)), start(1, watts(100))]);
        let lowered = surprised.decide(1000, [200, limit], &[(0, 52), (1, 100)]);
        let caps = lowered.iter().map(|decision| match decision {
            Decision::Recap { job, caps, .. } => (job.0, plain(caps)),
            other => panic!("{other:?}"),
        });
        let expected = [(0, vec![(0, 50_000)]), (1, vec![(1, second * 1000)])];
        assert_eq!(caps.collect::<Vec<_>>(), expected);
    }
}
