//! Many runs that know nothing of each other, on all cores or on as many as were asked for.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As many threads as there are cores.
pub fn all_cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// What becomes of each task, in the order of the tasks, on all cores.
pub fn in_parallel<Task: Sync, Done: Send>(
    tasks: &[Task],
    work: impl Fn(&Task) -> Done + Sync,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Vec<Done> {
    on_threads(all_cores(), tasks, work, progress)
}

/// The same on so many threads. The answer does not depend on how many there are.
pub fn on_threads<Task: Sync, Done: Send>(
    threads: NonZeroUsize,
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
        for _ in 1..threads.get().min(tasks.len()) {
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
        let progress = |done, all| {
            assert_eq!(all, 1000);
            let mut last = last.lock().unwrap();
            assert_eq!(done, *last + 1);
            *last = done;
        };
        for threads in [1, 2, 7] {
            *last.lock().unwrap() = 0;
            let threads = NonZeroUsize::new(threads).unwrap();
            let doubled = on_threads(threads, &tasks, |task| 2 * task, &progress);
            assert_eq!(doubled, (0..1000).map(|task| 2 * task).collect::<Vec<_>>());
        }
        assert!(in_parallel(&[0; 0], |task| *task, &|_, _| ()).is_empty());
    }
}
