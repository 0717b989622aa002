//! What the terminal shows.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Gauge, Paragraph, Row, Sparkline, Table};

use super::super::users::Users;
use super::super::words;
use super::{Tab, View};
use crate::live::job::NodeState;
use crate::live::wire::{JobLine, NodeLine, PowerState, State};
use crate::report::human_power;
use crate::units::Watts;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, users: &Users) {
    let notices = view.status.notices.len().min(3) as u16;
    let parts = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(3),
        Constraint::Length(5),
        Constraint::Length(notices),
        Constraint::Min(3),
        Constraint::Length(1),
    ]);
    let [title, gauge, curve, problems, list, keys] = parts.areas(frame.area());
    frame.render_widget(Paragraph::new(heading(view)), title);
    frame.render_widget(power(&view.status.power), gauge);
    draw_curve(frame, view, curve);
    let lines: Vec<Line<'_>> = view
        .status
        .notices
        .iter()
        .take(3)
        .map(|text| Line::from(words::visible(text)).red())
        .collect();
    frame.render_widget(Paragraph::new(lines), problems);
    match view.tab {
        Tab::Jobs => frame.render_widget(jobs(view, users), list),
        Tab::Nodes => frame.render_widget(nodes(view), list),
    }
    let pause = if view.is_paused { "paused; space resumes" } else { "space pauses" };
    let other = if view.tab == Tab::Jobs { "n nodes" } else { "n jobs" };
    frame.render_widget(
        Paragraph::new(format!("q quits   {other}   ↑↓ scroll   {pause}")).dim(),
        keys,
    );
}

fn heading(view: &View) -> Line<'_> {
    let status = &view.status;
    let (all, idle) = status.nodes;
    Line::from(vec![
        Span::from("busbar ").bold(),
        Span::from(format!(
            "{}, {}   {} run, {} wait   {} of {all} nodes are busy",
            status.machine,
            status.policy,
            status.running,
            status.waiting,
            all.saturating_sub(idle)
        )),
    ])
}

fn watts(power: Watts) -> String {
    human_power(power.as_f64())
}

/// The power against the limit. What is beyond it is red.
fn power(power: &PowerState) -> Gauge<'static> {
    let counted = power.base.saturating_add(power.held);
    let (shown, how) = match &power.measured {
        Some(measured) if measured.emulated => (measured.power, "emulated"),
        Some(measured) => (measured.power, "measured"),
        None => (counted, "counted"),
    };
    let limit = power.limit.filter(|limit| *limit > Watts::ZERO);
    let share = limit.map_or(0.0, |limit| shown.as_f64() / limit.as_f64());
    let colour = match share {
        share if share > 1.0 => Color::Red,
        share if share > 0.95 => Color::Yellow,
        _ => Color::Green,
    };
    let label = match limit {
        None => format!("{} {how}, no limit", watts(shown)),
        Some(limit) => {
            let free = power.free.map(|free| format!(", {} free", watts(free)));
            let free = free.unwrap_or_default();
            format!("{} {how} of {} ({:.0} %){free}", watts(shown), watts(limit), share * 100.0)
        }
    };
    Gauge::default()
        .block(Block::bordered().title("power"))
        .gauge_style(Style::new().fg(colour))
        .ratio(share.clamp(0.0, 1.0))
        .label(label)
}

fn draw_curve(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let room = usize::from(area.width.saturating_sub(2));
    let latest = view.power.len().saturating_sub(room);
    let values: Vec<u64> = view.power.range(latest..).copied().collect();
    let limit = view.status.power.limit.map_or(0, |limit| limit.milliwatts() / 1000);
    let most = limit.max(values.iter().copied().max().unwrap_or(1));
    let curve = Sparkline::default()
        .block(Block::bordered().title("power until now"))
        .data(values)
        .max(most);
    frame.render_widget(curve.style(Style::new().fg(Color::Cyan)), area);
}

fn jobs<'a>(view: &'a View, users: &'a Users) -> Table<'a> {
    let headings = ["JOB", "USER", "STATE", "TIME/LIMIT", "NODES", "POWER", "NAME", "REASON"];
    let widths = [
        Constraint::Length(8),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(18),
        Constraint::Length(6),
        Constraint::Length(10),
        Constraint::Length(16),
        Constraint::Fill(1),
    ];
    let rows = view.jobs.iter().skip(view.scrolled).map(|job| job_row(job, users));
    let title = format!("{} jobs", view.jobs.len());
    Table::new(rows, widths).header(header(&headings)).block(Block::bordered().title(title))
}

fn header(headings: &[&'static str]) -> Row<'static> {
    Row::new(headings.iter().map(|heading| Cell::from(*heading))).style(Modifier::BOLD)
}

fn job_row<'a>(job: &JobLine, users: &Users) -> Row<'a> {
    let limit = words::clock(job.time);
    let ran = job.ran.map(|ran| format!("{}/{limit}", words::clock(ran)));
    let power = match (job.power, job.needs) {
        (Some(power), _) => watts(power),
        (None, Some(needs)) => format!("({})", watts(needs)),
        (None, None) => String::new(),
    };
    let row = Row::new([
        job.job.to_string(),
        users.name(job.user),
        words::state(job.state).to_owned(),
        ran.unwrap_or(limit),
        job.nodes.to_string(),
        power,
        words::name(job.name.as_deref()),
        job.reason.as_deref().map(words::visible).unwrap_or_default(),
    ]);
    match job.state {
        State::Running => row.style(Style::new().fg(Color::Green)),
        State::Starting | State::Suspended | State::Ending => {
            row.style(Style::new().fg(Color::Yellow))
        }
        _ => row,
    }
}

fn nodes(view: &View) -> Table<'_> {
    let headings = ["NODE", "STATE", "JOB", "CAP", "POWER", "REASON"];
    let widths = [
        Constraint::Length(16),
        Constraint::Length(10),
        Constraint::Length(8),
        Constraint::Length(10),
        Constraint::Length(22),
        Constraint::Fill(1),
    ];
    let rows = view.nodes.iter().skip(view.scrolled).map(node_row);
    let title = format!("{} nodes", view.nodes.len());
    Table::new(rows, widths).header(header(&headings)).block(Block::bordered().title(title))
}

fn node_row<'a>(node: &NodeLine) -> Row<'a> {
    let (state, reason) = match &node.state {
        NodeState::Up => ("up", ""),
        NodeState::Awaited => ("awaited", ""),
        NodeState::Drained { reason } => ("drained", reason.as_str()),
        NodeState::Down { reason } => ("down", reason.as_str()),
    };
    let state = node.switched.map_or(state.to_owned(), |switched| switched.to_string());
    let reason = if node.switched.is_some() { "" } else { reason };
    let measured = node.measured.as_ref().map(|measured| {
        let how = if measured.is_emulated { "emulated" } else { "measured" };
        format!("{} {how}", watts(measured.power))
    });
    let row = Row::new([
        node.name.clone().unwrap_or_else(|| node.node.to_string()),
        state,
        node.job.map(|job| job.to_string()).unwrap_or_default(),
        node.cap.map(watts).unwrap_or_default(),
        measured.unwrap_or_default(),
        words::visible(reason),
    ]);
    match node.state {
        NodeState::Up => row,
        _ => row.style(Style::new().fg(Color::Yellow)),
    }
}
