use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;

/// A view of a daemon with two jobs, as its answers say.
fn view() -> View {
    let status = r#"{"version":"1","process":1,"policy":"easy","engine":"local","machine":"lab","nodes":[4,2],
        "waiting":1,"running":1,"power":{"limit_w":400,"base_w":40,"held_w":200,"free_w":160,
        "set_by_operator":false,"to_come":[],"notice":null},"since_s":0,"now_s":0,"cycles":1,"longest_cycle_s":0.000001,
        "notices":["node n3 does not answer"]}"#;
    let waiting = r#"{"job":8,"user":0,"state":"waiting","reason":"for power","nodes":4,"needs_w":300,
        "submitted_s":0,"time_s":60}"#;
    let running = r#"{"job":9,"name":"lulesh","user":0,"state":"running","nodes":2,"on":[0,1],"power_w":200,
        "submitted_s":0,"started_s":0,"ran_s":30,"time_s":90}"#;
    let nodes = r#"[{"node":0,"name":"n1","job":9,"cap_w":100},{"node":2,"name":"n3","job":null,"cap_w":null,
        "state":{"drained":{"reason":"no answer"}}}]"#;
    let mut view = View {
        status: serde_json::from_str(status).unwrap(),
        jobs: Vec::new(),
        nodes: serde_json::from_str(nodes).unwrap(),
        power: VecDeque::from([240, 240]),
        tab: Tab::Jobs,
        scrolled: 0,
        is_paused: false,
    };
    let job = |text| serde_json::from_str(text).unwrap();
    view.take(vec![job(waiting), job(running)]);
    view
}

fn drawn(view: &View) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(110, 20)).unwrap();
    terminal.draw(|frame| screen::draw(frame, view, &Users::default())).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |row| (0..110).map(|column| buffer[(column, row)].symbol()).collect::<String>();
    (0..20).map(line).collect()
}

fn press(view: &mut View, code: KeyCode) -> bool {
    view.press(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn power_jobs_and_problems_are_seen() {
    let screen = drawn(&view());
    let has = |text: &str| screen.iter().any(|line| line.contains(text));
    assert!(has("240.0 W counted of 400.0 W (60 %), 160.0 W free"), "{screen:#?}");
    assert!(has("1 run, 1 wait   2 of 4 nodes are busy"), "{screen:#?}");
    assert!(has("node n3 does not answer"), "{screen:#?}");
    assert!(has("(300.0 W)"), "{screen:#?}");
    let place = |text: &str| screen.iter().position(|line| line.contains(text)).unwrap();
    assert!(place("lulesh") < place("for power"), "those that run come first: {screen:#?}");
}

#[test]
fn keys_scroll_switch_and_leave() {
    let mut view = view();
    assert!(press(&mut view, KeyCode::Char('n')));
    let screen = drawn(&view);
    assert!(
        screen.iter().any(|line| line.contains("drained") && line.contains("no answer")),
        "{screen:#?}"
    );
    assert!(press(&mut view, KeyCode::PageDown));
    assert_eq!(view.scrolled, 1, "not beyond the last row");
    assert!(press(&mut view, KeyCode::Up));
    assert_eq!(view.scrolled, 0);
    assert!(!press(&mut view, KeyCode::Char('q')));
}
