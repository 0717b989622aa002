//! Many runs that know nothing of each other, on all cores.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What becomes of each task, in the order of the tasks, on all cores.
pub(super) fn in_parallel<Task: Sync, Done: Send>(
    tasks: &[Task],
    work: impl Fn(&Task) -> Done + Sync,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Vec<Done> {
    let next = AtomicUsize::new(0);
    let finished = Mutex::new(Vec::new());
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(index) else { return };
            let done = work(task);
            // A worker that panicked took its task with it; the others are sound.
            let mut finished = finished.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            finished.push((index, done));
            progress(finished.len() as u64, tasks.len() as u64);
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        for _ in 1..cores.min(tasks.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    let mut finished = finished.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    finished.sort_by_key(|(index, _)| *index);
    finished.into_iter().map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_done_once_and_keep_their_order() {
        let tasks: Vec<u64> = (0..1000).collect();
        let last = Mutex::new(0);
        let doubled = in_parallel(&tasks, |task| 2 * task, &|done, all| {
            assert_eq!(all, 1000);
            let mut last = last.lock().unwrap();
            assert_eq!(done, *last + 1);
            *last = done;
        });
        assert_eq!(doubled, (0..1000).map(|task| 2 * task).collect::<Vec<_>>());
        assert!(in_parallel(&[0; 0], |task| *task, &|_, _| ()).is_empty());
    }
}
