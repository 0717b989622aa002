use busbar_core::units::{Instant, Joules, Span, Watts};

use super::*;
use crate::job::{Allotment, End, Event, EventKind, JobOutcome, JobRequest, Owner};

/// Seventeen digits, more than an `f64` has.
const ENERGY: Joules = Joules::from_microjoules(43_200_000_000_123_457);

fn again(reply: &Reply) -> Reply {
    serde_json::from_str(&serde_json::to_string(reply).unwrap()).unwrap()
}

#[test]
fn answers_come_back_to_the_last_digit() {
    let allotment = Allotment {
        nodes: vec![(3, Watts::from_milliwatts(115_001)), (4, Watts::ZERO)],
        cores: 8,
        cap: Watts::from_milliwatts(115_001),
        time: Span::from_millis(90_061_001),
        power: Watts::from_milliwatts(230_002),
        speed: 999_999,
        part: None,
    };
    let outcome = JobOutcome {
        start: Some(Instant::from_millis(1)),
        end: Instant::from_millis(86_400_123),
        how: Some(End::Exited(0)),
        reason: None,
        energy: ENERGY,
        nodes: vec![3, 4],
        by: None,
        full_speed: Some(Span::from_millis(7)),
    };
    let kinds = [
        EventKind::Limit { power: Some(Watts::LARGEST), base: Watts::from_milliwatts(1) },
        EventKind::Limit { power: None, base: Watts::ZERO },
        EventKind::Started { job: 7, attempt: 1, allotment },
        EventKind::Consumed { job: 7, energy: ENERGY, power: Watts::ZERO, emulated: true },
        EventKind::Ended { job: 7, outcome },
    ];
    let line = |(line, kind)| {
        let event = Event { at: Instant::from_millis(1_234_567), kind };
        HistoryLine { line, wall: 1_767_323_045_678, event, by_name: None }
    };
    let history = Reply::History((1..).zip(kinds).map(line).collect());
    assert_eq!(again(&history), history);
    let line = JobLine {
        job: 7,
        name: None,
        user: 0,
        user_name: None,
        state: State::Completed,
        reason: None,
        nodes: 2,
        on: Vec::new(),
        power: Some(Watts::from_milliwatts(12_345)),
        needs: None,
        speed: Some(712_001),
        submitted: 1_767_323_045,
        started: None,
        ran: Some(Span::from_millis(1)),
        time: Span::FOREVER,
        array: None,
        handle: None,
        priority: None,
        partition: None,
        part: None,
    };
    let private = Private {
        request: JobRequest {
            name: "solve".to_owned(),
            nodes: 2,
            moldable: None,
            time: Span::from_millis(3_600_001),
            application: None,
            slowdown: None,
            after: Vec::new(),
            held: false,
            account: None,
            part: Default::default(),
        },
        command: Vec::new(),
        folder: "/".into(),
        output: "o".into(),
        errors: "e".into(),
    };
    let show = Reply::Show(Box::new(JobDetails {
        line,
        owner: Owner { user: 0, group: 0 },
        private: Some(private),
        attempts: 1,
        end: None,
        end_reason: None,
        by: None,
        by_name: None,
        ended: None,
        energy: Some(ENERGY),
    }));
    assert_eq!(again(&show), show);
    let text = serde_json::to_string(&show).unwrap();
    assert!(text.contains(r#""energy_j":43200000000.123457"#), "{text}");
    assert!(
        text.contains(r#""power_w":12.345"#) && text.contains(r#""time_s":3600.001"#),
        "{text}"
    );
}
