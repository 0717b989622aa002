//! Job arrays that are not over, and the limit on how many elements run at once.
//!
//! An element is queued only if fewer elements than the limit are queued or running; the others wait
//! here, in order, for a place. So a policy never sees more elements than may run, and need not know
//! about arrays. Which element has a place follows from the jobs, and is determined again when a daemon
//! starts.

use std::collections::{BTreeMap, BTreeSet};

use super::Controller;
use crate::job::{Element, Entry};

/// Arrays by number.
#[derive(Default)]
pub(super) struct Arrays(BTreeMap<u64, Array>);

struct Array {
    /// The number of elements that may be queued or running.
    places: usize,
    /// Elements that are not over.
    present: BTreeSet<u64>,
    /// Elements that are queued or running.
    placed: BTreeSet<u64>,
    /// Elements that wait for a place.
    next: BTreeSet<u64>,
}

impl Arrays {
    /// The arrays of these jobs. Running elements have a place.
    pub(super) fn of<'a>(jobs: impl Iterator<Item = &'a Entry>) -> Self {
        let mut arrays = Arrays::default();
        for entry in jobs {
            arrays.add(entry);
            if let Some(element) = entry.array
                && entry.run().is_some()
                && let Some(array) = arrays.0.get_mut(&element.array)
            {
                array.placed.insert(entry.number);
            }
        }
        arrays
    }

    /// Adds a job; jobs that are no elements are ignored.
    pub(super) fn add(&mut self, entry: &Entry) {
        let Some(element) = entry.array else { return };
        let array = self.0.entry(element.array).or_insert_with(|| Array {
            places: element.at_once.map_or(usize::MAX, |most| most as usize),
            present: BTreeSet::new(),
            placed: BTreeSet::new(),
            next: BTreeSet::new(),
        });
        array.present.insert(entry.number);
    }

    /// Elements of an array that are not over; none if the number is not that of an array.
    pub(super) fn present(&self, array: u64) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.0.get(&array).into_iter().flat_map(|array| array.present.iter().copied())
    }

    /// Whether this is the number of an array that is not over.
    pub(super) fn contains(&self, array: u64) -> bool {
        self.0.contains_key(&array)
    }

    /// Takes a place in the queue for a job, if there is one. Jobs that are no elements need none.
    pub(super) fn place(&mut self, element: Option<Element>, number: u64) -> bool {
        let Some(array) = element.and_then(|element| self.0.get_mut(&element.array)) else {
            return true;
        };
        let has_place = array.placed.contains(&number) || array.placed.len() < array.places;
        array.next.remove(&number);
        if has_place { &mut array.placed } else { &mut array.next }.insert(number);
        has_place
    }

    /// Whether an element waits for a place.
    pub(super) fn waits(&self, element: Element, number: u64) -> bool {
        self.0.get(&element.array).is_some_and(|array| array.next.contains(&number))
    }

    /// Gives up the place of an element.
    pub(super) fn leave(&mut self, element: Element, number: u64) {
        if let Some(array) = self.0.get_mut(&element.array) {
            array.placed.remove(&number);
            array.next.remove(&number);
        }
    }

    /// Removes an element that is over.
    pub(super) fn remove(&mut self, element: Element, number: u64) {
        self.leave(element, number);
        if let Some(array) = self.0.get_mut(&element.array) {
            array.present.remove(&number);
            if array.present.is_empty() {
                self.0.remove(&element.array);
            }
        }
    }

    /// The next element, if a place is free.
    fn promoted(&mut self, array: u64) -> Option<u64> {
        let array = self.0.get_mut(&array)?;
        if array.placed.len() < array.places { array.next.pop_first() } else { None }
    }
}

impl Controller {
    /// Gives the place of a job to the next element of its array, if it is an element.
    pub(super) fn leave_place(&mut self, number: u64) {
        let element = self.jobs.get(&number).and_then(|entry| entry.array);
        if let Some(element) = element {
            self.arrays.leave(element, number);
            self.fill_places(element.array);
        }
    }

    /// Queues elements of an array as long as there are places.
    pub(super) fn fill_places(&mut self, array: u64) {
        while let Some(number) = self.arrays.promoted(array) {
            self.enqueue(number);
        }
    }

    /// Whether a job waits because the limit of its array is reached.
    pub(crate) fn waits_for_place(&self, entry: &Entry) -> bool {
        entry.array.is_some_and(|element| self.arrays.waits(element, entry.number))
    }

    /// Elements of an array that are not over.
    pub(crate) fn elements(&self, array: u64) -> impl Iterator<Item = &Entry> {
        self.arrays.present(array).filter_map(|number| self.jobs.get(&number))
    }

    /// Whether this is the number of a job or an array that is not over.
    pub(crate) fn is_present(&self, number: u64) -> bool {
        self.jobs.contains_key(&number) || self.arrays.contains(number)
    }
}
