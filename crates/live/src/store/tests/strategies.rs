//! Jobs, events and batches as they come: all of their forms, with texts and figures of every kind.

use std::path::PathBuf;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;

use super::super::{Batch, Boot};
use crate::job::{
    After, Allotment, ChangeReason, Element, End, EndReason, Ending as Asked, Entry, Event,
    EventKind, JobOutcome, JobRequest, Owner, Part, PartRequest, Phase, Place, Previous, Program,
    Run, Scope, ScopedLimit,
};
use busbar_core::ledger::SwitchState;
use busbar_core::units::{Instant, Joules, Span, Watts};

/// A batch whose jobs have no numbers yet.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    submitted: Vec<(Entry, Program)>,
    changed: Vec<(Index, u32, Phase)>,
    events: Vec<(Index, Event)>,
    nodes: Vec<(u32, Option<SwitchState>)>,
    budget: Option<Option<String>>,
    part_budgets: Vec<(Scope, Option<String>)>,
    now: (Instant, i64),
    boot: Option<(String, i64)>,
    pub(super) ends_with: Ending,
}

/// What happens to the store after a batch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Nothing,
    Drop,
    Close,
}

impl Snapshot {
    /// The batch, in a store that has these jobs, numbered from 1.
    pub(super) fn numbered(&self, mut jobs: Vec<Entry>) -> Batch {
        let mut submitted = self.submitted.clone();
        for (number, (entry, _)) in (jobs.len() as u64 + 1..).zip(&mut submitted) {
            entry.number = number;
            jobs.push(entry.clone());
        }
        let all = jobs.len();
        let mut changed = Vec::new();
        for (which, attempts, phase) in self.changed.iter().filter(|_| all > 0) {
            let entry = which.get(&jobs).clone();
            changed.push(Entry { attempts: *attempts, phase: phase.clone(), ..entry });
        }
        let events = self.events.iter().filter(|(_, event)| all > 0 || event.kind.job().is_none());
        let events = events
            .map(|(whose, event)| {
                let mut event = event.clone();
                if all > 0 {
                    name(&mut event.kind, whose.index(all) as u64 + 1);
                }
                event
            })
            .collect();
        let boot = self.boot.clone().map(|(id, origin)| Boot { id, origin });
        let (elements, budget, now) = (Vec::new(), self.budget.clone(), self.now);
        let nodes = self.nodes.clone();
        let part_budgets = self.part_budgets.clone();
        Batch { submitted, elements, changed, events, nodes, budget, part_budgets, now, boot }
    }
}

/// Lets an event be about a job, if it is about one at all.
fn name(what: &mut EventKind, number: u64) {
    match what {
        EventKind::Submitted { job, .. }
        | EventKind::Held { job, .. }
        | EventKind::Started { job, .. }
        | EventKind::Withdrawn { job, .. }
        | EventKind::Changed { job, .. }
        | EventKind::Suspended { job }
        | EventKind::Resumed { job }
        | EventKind::Ending { job, .. }
        | EventKind::Ended { job, .. } => *job = number,
        _ => {}
    }
}

pub(super) fn batches() -> impl Strategy<Value = Vec<Snapshot>> {
    vec(draft(), 1..5)
}

fn draft() -> impl Strategy<Value = Snapshot> {
    (
        vec((entry(), program()), 0..3),
        vec((any::<Index>(), 0_u32..9, phase()), 0..3),
        vec((any::<Index>(), event()), 0..5),
        vec((0_u32..4, option::of(switched())), 0..4),
        option::of(option::of(text())),
        vec((prop::sample::select(vec!["row", "rack"]), option::of(text())), 0..3),
        (0_u64..1 << 50, 0_i64..1 << 45),
        option::of((text(), any::<i64>())),
        prop_oneof![Just(Ending::Nothing), Just(Ending::Drop), Just(Ending::Close)],
    )
        .prop_map(
            |(submitted, changed, events, nodes, budget, parts, (now, wall), boot, ends_with)| {
                Snapshot {
                    submitted,
                    changed,
                    events,
                    nodes,
                    budget,
                    part_budgets: parts
                        .into_iter()
                        .map(|(name, budget)| (Scope::Feed(name.to_owned()), budget))
                        .collect(),
                    now: (Instant::from_millis(now), wall),
                    boot,
                    ends_with,
                }
            },
        )
}

fn switched() -> impl Strategy<Value = SwitchState> {
    prop::sample::select(vec![SwitchState::Stopping, SwitchState::Off, SwitchState::Starting])
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..8).prop_map(String::from_iter)
}

fn path() -> impl Strategy<Value = PathBuf> {
    text().prop_map(PathBuf::from)
}

fn instant() -> impl Strategy<Value = Instant> {
    prop_oneof![9 => (0_u64..1 << 50).prop_map(Instant::from_millis), 1 => Just(Instant::NEVER)]
}

fn span() -> impl Strategy<Value = Span> {
    any::<u64>().prop_map(Span::from_millis)
}

fn watts() -> impl Strategy<Value = Watts> {
    any::<u64>().prop_map(Watts::from_milliwatts)
}

fn joules() -> impl Strategy<Value = Joules> {
    any::<u64>().prop_map(|microjoules| Joules::from_microjoules(microjoules.into()))
}

fn entry() -> impl Strategy<Value = Entry> {
    (any::<(u32, u32)>(), request(), instant(), any::<u32>(), phase(), option::of(element()))
        .prop_map(|((user, group), request, submit, attempts, phase, array)| Entry {
            number: 0,
            owner: Owner { user, group },
            request,
            submit,
            attempts,
            phase,
            array,
            handle: None,
        })
}

/// An element whose array has a number that no job here gets to.
fn element() -> impl Strategy<Value = Element> {
    let array = 1_000_000_u64..=u64::from(u32::MAX);
    (array, any::<[u32; 4]>(), any::<Option<u32>>()).prop_map(|(array, numbers, at_once)| {
        let [index, count, least, most] = numbers;
        Element { array, index, count, least, most, at_once }
    })
}

fn part_request() -> impl Strategy<Value = PartRequest> {
    let counts = any::<(Option<u32>, Option<u32>, Option<u32>, bool)>();
    (option::of(text()), counts).prop_map(|(partition, counts)| {
        let (processors, gpus, memory_mib, exclusive) = counts;
        PartRequest { partition, processors, gpus, memory_mib, exclusive }
    })
}

fn part() -> impl Strategy<Value = Part> {
    let numbers = || vec(any::<u32>(), 0..3);
    let place = (numbers(), numbers()).prop_map(|(cores, gpus)| Place { cores, gpus });
    (any::<[u32; 3]>(), vec(place, 0..3)).prop_map(|([processors, memory_mib, gpus], places)| {
        Part { processors, memory_mib, gpus, places }
    })
}

fn request() -> impl Strategy<Value = JobRequest> {
    let after = (1_u64..20, any::<bool>()).prop_map(|(job, any)| After { job, any });
    (
        text(),
        any::<u32>(),
        any::<Option<(u32, u32)>>(),
        span(),
        option::of(text()),
        option::of(text()),
        vec(after, 0..3),
        any::<bool>(),
        option::of(text()),
        part_request(),
    )
        .prop_map(
            |(name, nodes, moldable, time, application, slowdown, after, held, account, part)| {
                JobRequest {
                    name,
                    nodes,
                    moldable,
                    time,
                    application,
                    slowdown,
                    after,
                    held,
                    account,
                    part,
                }
            },
        )
}

fn program() -> impl Strategy<Value = Program> {
    (vec(text(), 1..4), path(), vec((text(), text()), 0..4), path(), option::of(path())).prop_map(
        |(command, folder, environment, output, errors)| Program {
            command,
            folder,
            environment,
            output,
            errors,
        },
    )
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Waiting),
        run().prop_map(Phase::Running),
        outcome().prop_map(Phase::Over),
    ]
}

fn allotment() -> impl Strategy<Value = Allotment> {
    let nodes = vec((any::<u32>(), watts()), 0..4);
    (nodes, any::<u32>(), watts(), span(), watts(), any::<u32>(), option::of(part())).prop_map(
        |(nodes, cores, cap, time, power, speed, part)| Allotment {
            nodes,
            cores,
            cap,
            time,
            power,
            speed,
            part: part.map(Box::new),
        },
    )
}

fn run() -> impl Strategy<Value = Run> {
    let asked = (why(), instant(), any::<bool>(), any::<Option<u32>>());
    let asked = asked.prop_map(|(why, asked, forced, by)| Asked { reason: why, asked, forced, by });
    (
        allotment(),
        (instant(), instant(), instant(), instant(), option::of(instant())),
        any::<u64>(),
        joules(),
        any::<bool>(),
        (option::of(allotment()), option::of((allotment(), option::of(allotment())))),
        option::of(asked),
        any::<(bool, bool)>(),
    )
        .prop_map(
            |(allotment, times, work, energy, suspended, had, ending, (unplaced, of_others))| Run {
                start: times.0,
                since: times.1,
                until: times.2,
                moves_until: times.3,
                moved: times.4,
                allotment,
                work,
                energy,
                before: had.1.map(|(allotment, squeezed_from)| {
                    Box::new(Previous { allotment, squeezed_from })
                }),
                suspended,
                squeezed_from: had.0,
                ending,
                unplaced,
                of_others,
            },
        )
}

fn why() -> impl Strategy<Value = EndReason> {
    prop::sample::select(vec![
        EndReason::Cancelled,
        EndReason::TimeLimit,
        EndReason::Budget,
        EndReason::Dependency,
        EndReason::Dropped,
    ])
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        any::<i32>().prop_map(End::Exited),
        any::<i32>().prop_map(End::Signalled),
        text().prop_map(End::Failed),
        Just(End::Lost),
    ]
}

fn outcome() -> impl Strategy<Value = JobOutcome> {
    (
        option::of(instant()),
        instant(),
        option::of(end()),
        option::of(why()),
        joules(),
        vec(any::<u32>(), 0..4),
        any::<Option<u32>>(),
        option::of(span()),
    )
        .prop_map(|(start, end, how, why, energy, nodes, by, full_speed)| JobOutcome {
            start,
            end,
            how,
            reason: why,
            energy,
            nodes,
            by,
            full_speed,
        })
}

fn event() -> impl Strategy<Value = Event> {
    (instant(), happening()).prop_map(|(at, what)| Event { at, kind: what })
}

/// Everything that can happen, to a job without a number.
fn happening() -> impl Strategy<Value = EventKind> {
    let because = prop::sample::select(vec![
        ChangeReason::Policy,
        ChangeReason::Squeezed,
        ChangeReason::Restored,
    ]);
    prop_oneof![
        (text(), text()).prop_map(|(version, policy)| EventKind::Began { version, policy }),
        Just(EventKind::Stopped),
        any::<(Option<u64>, u64)>().prop_map(|(power, base)| EventKind::Limit {
            power: power.map(Watts::from_milliwatts),
            base: Watts::from_milliwatts(base),
        }),
        Just(EventKind::Submitted { job: 0, element: None }),
        any::<(bool, Option<u32>)>().prop_map(|(held, by)| EventKind::Held { job: 0, held, by }),
        (any::<u32>(), allotment()).prop_map(|(attempt, allotment)| EventKind::Started {
            job: 0,
            attempt,
            allotment
        }),
        text().prop_map(|reason| EventKind::Withdrawn { job: 0, reason }),
        (allotment(), because).prop_map(|(allotment, because)| EventKind::Changed {
            job: 0,
            allotment,
            reason: because
        }),
        Just(EventKind::Suspended { job: 0 }),
        Just(EventKind::Resumed { job: 0 }),
        (why(), any::<(bool, Option<u32>)>()).prop_map(|(why, (forced, by))| EventKind::Ending {
            job: 0,
            reason: why,
            forced,
            by
        }),
        outcome().prop_map(|outcome| EventKind::Ended { job: 0, outcome }),
        text().prop_map(EventKind::notice),
        (text(), option::of(watts())).prop_map(|(text, power)| EventKind::Notice {
            limit: Some(ScopedLimit { of: Scope::Feed(text.clone()), power }),
            text,
        }),
    ]
}
