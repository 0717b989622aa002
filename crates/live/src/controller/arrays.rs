//! Arrays of which elements are not over, and how many of them may run at once.
//!
//! An element gets into the queue only if fewer than so many are there or run; the others wait here, in
//! order, for a place. So a policy never sees more of them than may run, and need not know of arrays. Who
//! has a place follows from the jobs, and is worked out again when a daemon begins.

use std::collections::{BTreeMap, BTreeSet};

use super::Controller;
use crate::array::Element;
use crate::job::{Entry, Phase};

/// Arrays by their numbers.
#[derive(Default)]
pub(super) struct Arrays(BTreeMap<u64, Array>);

struct Array {
    /// How many may have a place; all of them if that is not said.
    places: usize,
    /// Elements that are not over.
    present: BTreeSet<u64>,
    /// Those that wait in the queue, or run.
    placed: BTreeSet<u64>,
    /// Those that could be in the queue if there were a place.
    next: BTreeSet<u64>,
}

impl Arrays {
    /// The arrays of these jobs. Whoever runs has a place.
    pub(super) fn of<'a>(jobs: impl Iterator<Item = &'a Entry>) -> Self {
        let mut arrays = Arrays::default();
        for entry in jobs {
            arrays.add(entry);
            if let Some(element) = entry.array
                && matches!(entry.phase, Phase::Running(_))
                && let Some(array) = arrays.0.get_mut(&element.array)
            {
                array.placed.insert(entry.number);
            }
        }
        arrays
    }

    /// Adds a job, which may be no element.
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

    /// Elements of an array that are not over; none if there is no such array, or it is over.
    pub(super) fn present(&self, array: u64) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.0.get(&array).into_iter().flat_map(|array| array.present.iter().copied())
    }

    /// Whether this is the number of an array that is not over.
    pub(super) fn contains(&self, array: u64) -> bool {
        self.0.contains_key(&array)
    }

    /// Gives a job a place in the queue, if there is one. Who is no element needs none.
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

    /// An element needs no place for now.
    pub(super) fn leave(&mut self, element: Element, number: u64) {
        if let Some(array) = self.0.get_mut(&element.array) {
            array.placed.remove(&number);
            array.next.remove(&number);
        }
    }

    /// An element is over.
    pub(super) fn remove(&mut self, element: Element, number: u64) {
        self.leave(element, number);
        if let Some(array) = self.0.get_mut(&element.array) {
            array.present.remove(&number);
            if array.present.is_empty() {
                self.0.remove(&element.array);
            }
        }
    }

    /// Who gets a place that is free.
    fn promoted(&mut self, array: u64) -> Option<u64> {
        let array = self.0.get_mut(&array)?;
        if array.placed.len() < array.places { array.next.pop_first() } else { None }
    }
}

impl Controller {
    /// A job that waits or runs leaves its place to the next element of its array, if it is of one.
    pub(super) fn leave_place(&mut self, number: u64) {
        let element = self.jobs.get(&number).and_then(|entry| entry.array);
        if let Some(element) = element {
            self.arrays.leave(element, number);
            self.fill_places(element.array);
        }
    }

    /// Elements get into the queue as long as there are places.
    pub(super) fn fill_places(&mut self, array: u64) {
        while let Some(number) = self.arrays.promoted(array) {
            self.line_up(number);
        }
    }

    /// Whether a job waits because as many of its array run as may.
    pub fn waits_for_place(&self, entry: &Entry) -> bool {
        entry.array.is_some_and(|element| self.arrays.waits(element, entry.number))
    }

    /// Elements of an array that are not over.
    pub fn elements(&self, array: u64) -> impl Iterator<Item = &Entry> {
        self.arrays.present(array).filter_map(|number| self.jobs.get(&number))
    }

    /// Whether this is the number of a job or an array that is not over.
    pub(crate) fn is_present(&self, number: u64) -> bool {
        self.jobs.contains_key(&number) || self.arrays.contains(number)
    }
}
