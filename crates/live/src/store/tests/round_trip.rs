//! What is written is read again: random batches against plain lists.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::{Batch, Query, Saved, Stamp, Store, StoredJob, WallTimes};
use super::{Everything, everything, strategies};
use crate::job::{Entry, Phase, Scope};
use crate::wire::HistoryLine;
use busbar_core::ledger::SwitchState;
use busbar_core::units::Instant;

/// What a store should hold, in plain lists.
#[derive(Default)]
struct Plain {
    jobs: BTreeMap<u64, StoredJob>,
    history: Vec<HistoryLine>,
    nodes: BTreeMap<u32, SwitchState>,
    budget: Option<String>,
    part_budgets: BTreeMap<Scope, String>,
    last: Option<Stamp>,
}

impl Plain {
    fn commit(&mut self, batch: &Batch) {
        let (now, wall) = batch.now;
        let at_wall = |instant: Instant| {
            let exact = i128::from(wall) + i128::from(instant.millis()) - i128::from(now.millis());
            i64::try_from(exact).unwrap_or(if exact < 0 { i64::MIN } else { i64::MAX })
        };
        let times = |entry: &Entry| match &entry.phase {
            Phase::Waiting => (None, None),
            Phase::Running(run) => (Some(run.start), None),
            Phase::Over(outcome) => (outcome.start, Some(outcome.end)),
        };
        for (entry, program) in &batch.submitted {
            let (start, end) = times(entry);
            let walls = WallTimes {
                submit: at_wall(entry.submit),
                start: start.map(at_wall),
                end: end.map(at_wall),
            };
            let kept = StoredJob { entry: entry.clone(), program: program.clone(), walls };
            self.jobs.insert(entry.number, kept);
        }
        for entry in &batch.changed {
            let kept = self.jobs.get_mut(&entry.number).unwrap();
            let (before, after) = (times(&kept.entry), times(entry));
            if before.0 != after.0 {
                kept.walls.start = after.0.map(at_wall);
            }
            if before.1 != after.1 {
                kept.walls.end = after.1.map(at_wall);
            }
            kept.entry = entry.clone();
        }
        for event in &batch.events {
            let line = self.history.len() as u64 + 1;
            let (wall, event) = (at_wall(event.at), event.clone());
            self.history.push(HistoryLine { line, wall, event, by_name: None });
        }
        for (node, state) in &batch.nodes {
            match state {
                Some(state) => _ = self.nodes.insert(*node, *state),
                None => _ = self.nodes.remove(node),
            }
        }
        if let Some(budget) = &batch.budget {
            self.budget = budget.clone();
        }
        for (scope, budget) in &batch.part_budgets {
            match budget {
                Some(budget) => _ = self.part_budgets.insert(scope.clone(), budget.clone()),
                None => _ = self.part_budgets.remove(scope),
            }
        }
        let (boot, origin) = match (&batch.boot, &self.last) {
            (Some(boot), _) => (boot.id.clone(), boot.origin),
            (None, Some(last)) => (last.boot.clone(), last.origin),
            (None, None) => (String::new(), 0),
        };
        self.last = Some(Stamp { now, wall, boot, origin });
    }

    fn everything(&self) -> Everything {
        let next = self.jobs.keys().next_back().map_or(1, |last| last + 1);
        let present: Vec<&StoredJob> =
            self.jobs.values().filter(|kept| !matches!(kept.entry.phase, Phase::Over(_))).collect();
        let over = |kept: &&StoredJob| matches!(kept.entry.phase, Phase::Over(_));
        let mut past: Vec<Entry> =
            self.jobs.values().filter(over).map(|kept| kept.entry.clone()).collect();
        past.sort_by_key(|entry| (entry.end(), entry.number));
        let saved = Saved {
            jobs: present.iter().map(|kept| kept.entry.clone()).collect(),
            walls: present.iter().map(|kept| kept.walls).collect(),
            program_bytes: present
                .iter()
                .map(|kept| serde_json::to_string(&kept.program).unwrap().len() as u64)
                .collect(),
            next,
            nodes: self.nodes.clone(),
            budget: self.budget.clone(),
            part_budgets: self.part_budgets.clone(),
            last: self.last.clone(),
            past,
        };
        let jobs = (0..=next).map(|number| self.jobs.get(&number).cloned()).collect();
        Everything { saved, jobs, history: self.history.clone() }
    }

    fn history(&self, query: Query) -> Vec<HistoryLine> {
        let mut lines: Vec<HistoryLine> = self
            .history
            .iter()
            .filter(|line| query.job.is_none_or(|job| line.event.kind.job() == Some(job)))
            .filter(|line| query.after.is_none_or(|after| line.line > after))
            .cloned()
            .collect();
        let limit = query.limit as usize;
        match query.after {
            Some(_) => lines.truncate(limit),
            None => drop(lines.drain(..lines.len().saturating_sub(limit))),
        }
        lines
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn what_is_written_is_read_again(
        drafts in strategies::batches(),
        queries in prop::collection::vec(
            (prop::option::of(0_u64..12), prop::option::of(0_u64..20), 0_u32..12),
            8,
        ),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let mut plain = Plain::default();
        for draft in drafts {
            let batch = draft.numbered(plain.jobs.values().map(|kept| kept.entry.clone()).collect());
            store.commit(&batch).unwrap();
            plain.commit(&batch);
            store = match draft.ends_with {
                strategies::Ending::Nothing => store,
                strategies::Ending::Drop => {
                    drop(store);
                    Store::open(folder.path()).unwrap()
                }
                strategies::Ending::Close => {
                    store.close().unwrap();
                    Store::open(folder.path()).unwrap()
                }
            };
        }
        prop_assert_eq!(everything(&store), plain.everything());
        let reader = store.reader().unwrap();
        for (job, after, limit) in queries {
            let query = Query { job, after, limit };
            prop_assert_eq!(reader.history(query).unwrap(), plain.history(query), "{:?}", query);
        }
        for number in 0..12 {
            let outcome = plain.jobs.get(&number).and_then(|kept| match &kept.entry.phase {
                Phase::Over(outcome) => Some(outcome.clone()),
                _ => None,
            });
            prop_assert_eq!(reader.outcome(number).unwrap(), outcome);
        }
    }
}
