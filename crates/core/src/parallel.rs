//! Many runs that know nothing of each other, on all cores or on as many as were asked for.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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

/// The same on this many threads. The answer does not depend on how many there are.
pub fn on_threads<Task: Sync, Done: Send>(
    threads: NonZeroUsize,
    tasks: &[Task],
    work: impl Fn(&Task) -> Done + Sync,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Vec<Done> {
    let finished = Mutex::new(tasks.iter().map(|_| None).collect::<Vec<Option<Done>>>());
    let act = |place: usize| {
        let done = work(&tasks[place]);
        // A worker that panicked took its task with it; the others are sound.
        finished.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some(done);
    };
    share_out(threads, tasks.len(), &act, progress);
    let finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    finished.into_iter().flatten().collect()
}

/// Calls a function once for each place. It is the same code for all kinds of tasks, which are compiled one by one.
fn share_out(
    threads: NonZeroUsize,
    places: usize,
    act: &(dyn Fn(usize) + Sync),
    progress: &(dyn Fn(u64, u64) + Sync),
) {
    let next = AtomicUsize::new(0);
    let finished = Mutex::new(0);
    let worker = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= places {
                return;
            }
            act(place);
            let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            *finished += 1;
            progress(*finished, places as u64);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.get().min(places) {
            scope.spawn(worker);
        }
        worker();
    });
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
