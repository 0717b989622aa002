//! Foreseen, and then lived through.

use super::*;
use crate::live::config::LastResort;
use crate::live::controller::WasGood;
use crate::live::job::{After, Program, Submission, Wish};
use crate::live::socket::Gone;
use crate::machine::Machine;

fn at(seconds: u32) -> Instant {
    Instant::from_secs(seconds)
}

fn watts(watts: u32) -> Watts {
    Watts::from_watts(watts)
}

fn wish(nodes: u32, seconds: u32, after: &[u64]) -> Wish {
    Wish {
        name: "test".to_owned(),
        nodes,
        moldable: None,
        time: Span::from_secs(seconds),
        application: None,
        slowdown: None,
        after: after.iter().map(|job| After { job: *job, any: false }).collect(),
        held: false,
    }
}

/// Four nodes of 100 W, with these jobs submitted at the beginning.
fn controller(policy: &str, limit: u32, wishes: &[Wish]) -> Controller {
    let setup = Setup::new(Machine::of_processors(4).unwrap(), policy.parse().unwrap());
    let setup = Setup { last_resort: LastResort::Suspend, ..setup };
    let budget = Budget::constant(watts(limit));
    let mut controller = Controller::new(setup, budget, Saved::default(), at(0)).unwrap();
    for wish in wishes {
        let program = Program {
            command: vec!["true".to_owned()],
            folder: "/".into(),
            environment: Vec::new(),
            output: "out".into(),
            errors: None,
        };
        let submission = Submission { wish: wish.clone(), program, array: None };
        let owner = Owner { user: 0, group: 0 };
        controller.submit(at(0), owner, submission, &|_| Some(WasGood(true))).unwrap();
    }
    controller.turn(at(0)).unwrap();
    controller.take(at(0), 0);
    controller
}

/// As an operator sees it; the clock on the wall began with the daemon's.
fn outlook_at(controller: &Controller, now: Instant) -> Outlook {
    let viewer = controller.setup().viewer(Owner { user: 0, group: 0 });
    Outlook::of(controller, viewer, now, now.millis() as i64)
}

fn wanted() -> Wanted {
    Wanted::for_at_most(Span::from_secs(100_000), Gone::default())
}

fn foreseen(outlook: Outlook, question: &Question) -> Forecast {
    outlook.forecast(question, &wanted()).unwrap()
}

/// Start and end of each job, in seconds from the beginning.
fn told(forecast: &Forecast) -> Vec<(Option<i64>, Option<i64>)> {
    forecast.jobs.iter().map(|line| (line.start, line.end)).collect()
}

fn some(start: i64, end: i64) -> (Option<i64>, Option<i64>) {
    (Some(start), Some(end))
}

#[test]
fn jobs_start_when_others_end() {
    let wishes = [wish(3, 100, &[]), wish(2, 50, &[]), wish(1, 100, &[]), wish(1, 10, &[2])];
    let controller = controller("easy", 400, &wishes);
    let outlook = || outlook_at(&controller, at(40));
    let forecast = foreseen(outlook(), &Question::default());
    assert_eq!(told(&forecast), [some(0, 100), some(100, 150), some(0, 100), some(150, 160)]);
    assert_eq!((forecast.peak, forecast.all_over), (watts(400), 160));
    // 40 of 50 s are over already.
    let half = Question { percent: Some(50), ..Question::default() };
    let forecast = foreseen(outlook(), &half);
    assert_eq!(told(&forecast), [some(0, 50), some(50, 75), some(0, 50), some(75, 80)]);
    let asked = Question { job: Some(wish(1, 30, &[])), ..Question::default() };
    let forecast = foreseen(outlook(), &asked);
    assert_eq!((forecast.jobs.len(), forecast.jobs[4].job), (5, None));
    assert_eq!(told(&forecast)[4], some(100, 130));
    let long = Question { percent: Some(101), ..Question::default() };
    assert!(outlook().forecast(&long, &wanted()).is_err());
}

#[test]
fn a_chain_is_followed_to_its_end() {
    let wishes: Vec<Wish> = (0..40)
        .map(|job| wish(1, 10, if job == 0 { &[] } else { std::slice::from_ref(&job) }))
        .collect();
    let controller = controller("easy", 400, &wishes);
    let forecast = foreseen(outlook_at(&controller, at(0)), &Question::default());
    assert_eq!(told(&forecast)[39], some(390, 400));
}

/// What is foreseen for a limit that falls is what comes when it does, under policies that change nobody
/// because of what they know beforehand.
#[test]
fn a_limit_that_falls_is_foreseen_as_it_comes() {
    for (policy, limit) in [("easy-power", "300W"), ("easy", "250W")] {
        let wishes = [wish(1, 600, &[]), wish(1, 600, &[]), wish(2, 600, &[]), wish(1, 60, &[])];
        let mut live = controller(policy, 400, &wishes);
        let question = Question {
            budget: vec![(Span::from_secs(60), limit.to_owned())],
            ..Question::default()
        };
        let forecast = foreseen(outlook_at(&live, at(0)), &question);
        let limit = feed::limit(limit, &live.setup().machine).unwrap();
        // The operator sets it when the time has come.
        live.advance(at(60));
        live.set_budget(Budget::constant(limit), true);
        live.turn(at(60)).unwrap();
        live.take(at(60), 0);
        let later = foreseen(outlook_at(&live, at(60)), &Question::default());
        assert!(later.peak <= limit, "{policy}: {}", later.peak);
        // What is known beforehand may keep somebody from starting; who runs fares alike.
        for (one, other) in told(&forecast).iter().zip(&told(&later)).take(3) {
            assert_eq!(one, other, "{policy}");
        }
        assert!(forecast.all_over > 600, "{policy}: it costs time");
    }
}

#[test]
fn who_never_starts_says_why() {
    let mut held = wish(1, 10, &[]);
    held.held = true;
    let wishes = [held, wish(1, 10, &[1]), wish(4, 10, &[])];
    let controller = controller("easy", 300, &wishes);
    let forecast = foreseen(outlook_at(&controller, at(0)), &Question::default());
    let reasons: Vec<&str> =
        forecast.jobs.iter().map(|line| line.reason.as_deref().unwrap_or_default()).collect();
    assert_eq!(
        reasons,
        ["until it is released", "after 1", "needs more power than the budget allows"]
    );
    assert_eq!(told(&forecast), [(None, None); 3]);
}

/// Of an array of six jobs of ten seconds two may run at once, and whoever waits for it waits for all.
#[test]
fn the_bound_of_an_array_is_foreseen() {
    let mut live = controller("easy", 400, &[]);
    let program = Program {
        command: vec!["true".to_owned()],
        folder: "/".into(),
        environment: Vec::new(),
        output: "out".into(),
        errors: None,
    };
    let owner = Owner { user: 0, group: 0 };
    let array = Some("1-6%2".parse().unwrap());
    let submission = Submission { wish: wish(1, 10, &[]), program: program.clone(), array };
    let number = live.submit(at(0), owner, submission, &|_| None).unwrap();
    let submission = Submission { wish: wish(1, 5, &[number]), program, array: None };
    live.submit(at(0), owner, submission, &|_| None).unwrap();
    live.turn(at(0)).unwrap();
    live.take(at(0), 0);
    let forecast = foreseen(outlook_at(&live, at(0)), &Question::default());
    let expected = [(0, 10), (0, 10), (10, 20), (10, 20), (20, 30), (20, 30), (30, 35)];
    assert_eq!(told(&forecast), expected.map(|(start, end)| some(start, end)));
    let indices = forecast.jobs.iter().filter_map(|line| Some(line.array?.index));
    assert_eq!(indices.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}
