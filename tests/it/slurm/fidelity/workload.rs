//! The workload of a run: what is submitted when, drawn from a seed.

use super::draw::Draw;
use super::site::{GPU_NODES, GPUS, SHARED_CPUS, SHARED_NODES, USERS, User, WHOLE_NODES};

/// One call of `sbatch`.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    /// Seconds after the first one.
    pub(crate) at: f64,
    /// Who submits.
    pub(crate) user: &'static str,
    /// What `sbatch` is told, but dependencies.
    pub(crate) arguments: Vec<String>,
    /// What the job waits for: the word before the colon, and which submissions.
    pub(crate) after: Option<(&'static str, Vec<usize>)>,
    /// How long its job, or each of its jobs, takes.
    pub(crate) seconds: f64,
    /// How many jobs it makes.
    pub(crate) jobs: u32,
}

impl Submission {
    /// The same without what makes jobs wait for something else than nodes: an array is one job, and nobody waits for others.
    pub(crate) fn plain(self) -> Self {
        let waits = ["--array=", "--begin="];
        let is_plain = |word: &String| !waits.iter().any(|wait| word.starts_with(wait));
        let arguments = self.arguments.into_iter().filter(is_plain).collect();
        Submission { arguments, after: None, jobs: 1, ..self }
    }
}

/// A part of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Batch,
    Short,
    Shared,
    Gpu,
}

/// What a job holds, in units of its part of the machine.
struct Size {
    words: Vec<String>,
    units: f64,
}

/// How much there is of a part, in the same units.
fn capacity(part: Part) -> f64 {
    match part {
        Part::Batch | Part::Short => f64::from(WHOLE_NODES),
        Part::Shared => f64::from(SHARED_NODES * SHARED_CPUS),
        Part::Gpu => f64::from(GPU_NODES * GPUS),
    }
}

/// How much of the machine is asked for: a little more than there is, so that queues form.
const LOAD: f64 = 1.2;

struct Drawn {
    part: Part,
    size: Size,
    seconds: f64,
    /// The time limit over what it takes.
    slack: f64,
    submission: Submission,
}

/// Draws about this many jobs, submitted during so many seconds.
pub(crate) fn draw(seed: u64, jobs: u32, during: f64) -> Vec<Submission> {
    let mut draw = Draw::new(seed);
    let mut drawn: Vec<Drawn> = Vec::new();
    let mut count = 0;
    while count < jobs {
        // Some come in crowds, most by themselves.
        let crowd = if draw.chance(0.06) { 3 + draw.below(8) as u32 } else { 1 };
        let at = draw.unit() * during;
        let who = &USERS[draw_user(&mut draw)];
        for place in 0..crowd.min(jobs - count) {
            let one = single(&mut draw, who, at + f64::from(place) * 0.3, jobs - count);
            count += one.submission.jobs;
            drawn.push(one);
        }
    }
    drawn.sort_by(|a, b| a.submission.at.total_cmp(&b.submission.at));
    // Times are stretched so that each part of the machine gets as much work as it should.
    for parts in [&[Part::Batch, Part::Short][..], &[Part::Shared], &[Part::Gpu]] {
        let of = |one: &&Drawn| parts.contains(&one.part);
        let work = |one: &Drawn| one.size.units * one.seconds * f64::from(one.submission.jobs);
        let all: f64 = drawn.iter().filter(of).map(work).sum();
        let factor = LOAD * during * capacity(parts[0]) / all.max(1.0);
        for one in drawn.iter_mut().filter(|one| parts.contains(&one.part)) {
            let most = if one.part == Part::Short { 40.0 } else { 230.0 };
            one.seconds = (one.seconds * factor).clamp(2.0, most);
        }
    }
    chains(&mut draw, &mut drawn);
    drawn.into_iter().map(finish).collect()
}

fn draw_user(draw: &mut Draw) -> usize {
    let parts: Vec<(usize, f64)> = USERS.iter().map(|user| user.part).enumerate().collect();
    draw.one_of(&parts)
}

fn single(draw: &mut Draw, who: &User, at: f64, most: u32) -> Drawn {
    let part = draw.one_of(&[
        (Part::Batch, 0.42),
        (Part::Short, 0.18),
        (Part::Shared, 0.29),
        (Part::Gpu, 0.11),
    ]);
    let account = match who.name == "news" && draw.chance(0.3) {
        true => "teaching",
        false => who.account,
    };
    let mut qos =
        draw.one_of(&[("normal", 0.66), ("high", 0.1), ("urgent", 0.07), ("scavenger", 0.17)]);
    let size = match part {
        Part::Batch => {
            let nodes: u32 = draw.one_of(&[
                (1, 0.3),
                (2, 0.24),
                (3, 0.1),
                (4, 0.16),
                (8, 0.12),
                (12, 0.05),
                (20, 0.03),
            ]);
            let nodes = if account == "teaching" || qos == "urgent" { nodes.min(8) } else { nodes };
            Size { words: vec![format!("-N{nodes}")], units: f64::from(nodes) }
        }
        Part::Short => {
            let nodes = draw.one_of(&[(1, 0.5), (2, 0.3), (4, 0.2)]);
            Size { words: vec![format!("-N{nodes}")], units: f64::from(nodes) }
        }
        Part::Shared => {
            let tasks = draw.one_of(&[(1, 0.3), (2, 0.25), (4, 0.25), (6, 0.1), (8, 0.1)]);
            let memory = draw.one_of(&[(1000, 0.7), (1900, 0.3)]);
            let words =
                vec!["-N1".to_owned(), format!("-n{tasks}"), format!("--mem-per-cpu={memory}")];
            Size { words, units: f64::from(tasks) }
        }
        Part::Gpu => {
            let gpus = draw.one_of(&[(1, 0.45), (2, 0.35), (4, 0.2)]);
            let words = vec![
                "-N1".to_owned(),
                "-n1".to_owned(),
                format!("-c{gpus}"),
                format!("--gres=gpu:{gpus}"),
            ];
            Size { words, units: f64::from(gpus) }
        }
    };
    let is_array = part != Part::Short && most >= 12 && size.units <= 4.0 && draw.chance(0.03);
    let (jobs, array) = if is_array {
        let tasks = 8 + draw.below(u64::from(most.min(25) - 8)) as u32;
        let limit = 2 + draw.below(6);
        if qos == "urgent" {
            qos = "normal";
        }
        (tasks, Some(format!("--array=1-{tasks}%{limit}")))
    } else {
        (1, None)
    };
    let middle = if part == Part::Short { 12.0 } else { 25.0 };
    let mut seconds = draw.around(middle, 3.0);
    if size.units >= 12.0 {
        seconds = seconds.min(middle);
    }
    let slack = draw.one_of(&[(1.0, 0.4), (1.5, 0.3), (2.5, 0.18), (5.0, 0.1), (0.5, 0.02)]);
    let name = match part {
        Part::Batch => "batch",
        Part::Short => "short",
        Part::Shared => "shared",
        Part::Gpu => "gpu",
    };
    let mut arguments = vec![format!("-p{name}"), format!("-A{account}"), format!("--qos={qos}")];
    arguments.extend(array);
    if draw.chance(0.02) {
        arguments.push(format!("--begin=now+{}", 30 + draw.below(90)));
    }
    let submission = Submission { at, user: who.name, arguments, after: None, seconds: 0.0, jobs };
    Drawn { part, size, seconds, slack, submission }
}

/// Makes some jobs wait for others: chains of three, the one that waits for a failure, and those of which one runs at a time.
fn chains(draw: &mut Draw, drawn: &mut [Drawn]) {
    for place in 0..drawn.len() {
        let kind = draw.unit();
        if kind > 0.1 || place < 6 || drawn[place].submission.after.is_some() {
            continue;
        }
        let user = drawn[place].submission.user;
        let earlier: Vec<usize> = (place.saturating_sub(25)..place)
            .filter(|at| drawn[*at].submission.user == user)
            .collect();
        if kind < 0.025 {
            drawn[place].submission.after = Some(("singleton", Vec::new()));
        } else if let Some(last) = earlier.last() {
            let two = earlier[earlier.len().saturating_sub(2)..].to_vec();
            drawn[place].submission.after = Some(match (kind * 1000.0) as u32 {
                25..=59 => ("afterok", vec![*last]),
                60..=79 => ("afterany", two),
                80..=89 => ("after", vec![*last]),
                _ => ("afternotok", vec![*last]),
            });
        }
    }
}

fn finish(one: Drawn) -> Submission {
    let Drawn { part, size, seconds, slack, mut submission } = one;
    let most = if part == Part::Short { 1.0 } else { 5.0 };
    let limit = (seconds * slack / 60.0).ceil().clamp(1.0, most);
    submission.seconds = (seconds * 10.0).round() / 10.0;
    submission.arguments.push(format!("-t{limit}"));
    submission.arguments.extend(size.words);
    let is_single = submission.after.as_ref().is_some_and(|(kind, _)| *kind == "singleton");
    submission.arguments.push(format!("-J{}", if is_single { "single" } else { "job" }));
    // A job that another one waits to see fail has to.
    let end = if (submission.seconds as u64).is_multiple_of(17) { "; exit 1" } else { "" };
    submission.arguments.push(format!("--wrap=sleep {}{end}", submission.seconds));
    submission
}
