//! Tables one by one, each as soon as all of its runs are done, in the order in which they stand
//! below each other.

use std::collections::{BTreeMap, VecDeque};

use crate::experiment::run::Finished;
use crate::experiment::{Cell, CellOutcome, CheckedExperiment, Tried, table};

/// The cells of one table: workload, number of nodes and budget.
type Group = (usize, usize, usize);

fn group(cell: &Cell) -> Group {
    (cell.workload, cell.size, cell.budget)
}

/// The tables that are still to come.
pub(crate) struct Stream<'a> {
    checked: &'a CheckedExperiment<'a>,
    emphasis: fn(&str) -> String,
    /// Each with how many of its runs are to come.
    to_come: VecDeque<(Group, usize)>,
    /// What is known of them.
    tried: BTreeMap<Group, Vec<Tried>>,
}

impl<'a> Stream<'a> {
    /// All tables of an experiment; the line of whoever leads is passed through `emphasis`.
    pub(crate) fn of(checked: &'a CheckedExperiment<'a>, emphasis: fn(&str) -> String) -> Self {
        let mut runs = BTreeMap::<Group, usize>::new();
        for cell in &checked.cells {
            *runs.entry(group(cell)).or_default() += 1;
        }
        Stream { checked, emphasis, to_come: runs.into_iter().collect(), tried: BTreeMap::new() }
    }

    /// Hears of a run that is done, and says the tables that are complete with it and have only
    /// complete ones above them.
    pub(crate) fn hear(&mut self, tried: &Tried) -> String {
        let outcome = match &tried.outcome {
            // Pictures are large, and no table has any.
            CellOutcome::Ran(done) => {
                CellOutcome::Ran(Finished::Figures(Box::new(done.summary().clone())))
            }
            CellOutcome::CannotRun(why) => CellOutcome::CannotRun(why.clone()),
        };
        self.tried.entry(group(&tried.cell)).or_default().push(Tried { outcome, ..*tried });
        let mut text = String::new();
        while let Some(&(next, runs)) = self.to_come.front() {
            let done = self.tried.get(&next).filter(|done| done.len() == runs);
            let Some(done) = done else { break };
            for ranking in self.checked.rankings(done) {
                text += &table::whole(self.checked, &ranking, &self.emphasis);
            }
            self.tried.remove(&next);
            self.to_come.pop_front();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::Mutex;

    use super::*;
    use crate::experiment::run::{Manner, Watch};
    use crate::experiment::{Experiment, Named, Place};

    /// Notes with each table how many runs were done by then.
    struct Notes<'a>(Mutex<Noted<'a>>);

    struct Noted<'a> {
        stream: Stream<'a>,
        done: usize,
        said: Vec<(usize, String)>,
    }

    impl Watch for Notes<'_> {
        fn done(&self, tried: &Tried) {
            let mut notes = self.0.lock().unwrap();
            notes.done += 1;
            let text = notes.stream.hear(tried);
            if !text.is_empty() {
                let done = notes.done;
                notes.said.push((done, text));
            }
        }
    }

    /// Two workloads, three seeds and two budgets: the jobs of the first depend on the seed, and what jobs of
    /// the second are.
    #[test]
    fn a_table_comes_with_the_last_of_its_runs() {
        let load = |text: &str| Named { value: text.parse().unwrap(), place: Place::Default };
        let feed = |text: &str| Named { value: text.parse().unwrap(), place: Place::Default };
        let experiment = Experiment {
            policies: ["easy", "fcfs", "rmap-naive"].map(|name| name.parse().unwrap()).to_vec(),
            budgets: vec![feed("60%"), feed("none")],
            workloads: vec![load("lublin(jobs=20, processors=16)"), load("demo")],
            seeds: vec![1, 2, 3],
            jobs: Some(0..20),
            ..Experiment::default()
        };
        let checked = CheckedExperiment::new(&experiment, &[]).unwrap();
        let mut whole = None;
        for threads in [1, 4] {
            let stream = Stream::of(&checked, str::to_owned);
            let notes = Notes(Mutex::new(Noted { stream, done: 0, said: Vec::new() }));
            let threads = NonZeroUsize::new(threads).unwrap();
            let manner =
                Manner { threads, cache: None, pictures: false, part: None, watch: &notes };
            let results = CheckedExperiment::new(&experiment, &[]).unwrap().run(&manner);
            let cells: Vec<Cell> = results.tried.iter().map(|tried| tried.cell).collect();
            assert_eq!(cells, experiment.cells(), "results are in the order of the experiment");
            let Noted { stream, done, said } = notes.0.into_inner().unwrap();
            assert!(stream.to_come.is_empty() && stream.tried.is_empty());
            assert_eq!(done, cells.len());
            if threads.get() == 1 {
                // Each budget by itself, with 3 policies and 3 seeds.
                let ends: Vec<usize> = said.iter().map(|(done, _)| *done).collect();
                assert_eq!(ends, [9, 18, 27, 36]);
            }
            let text: String = said.into_iter().map(|(_, text)| text).collect();
            let all = checked.rankings(&results.tried);
            let tables = all.iter().map(|ranking| table::whole(&checked, ranking, &str::to_owned));
            assert_eq!(text, tables.collect::<String>());
            assert_eq!(whole.get_or_insert_with(|| text.clone()), &text);
        }
    }
}
