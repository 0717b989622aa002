//! What was read of a list that Slurm printed, with what could not be read of it.
//!
//! One thing that cannot be read hides no other. A job of which one field is unknown is still a job, and says which
//! ([`Job::unread`]); a record of which not even the name is known is counted here. Nothing that is unknown is taken for
//! zero or for nothing.

use std::collections::BTreeSet;
use std::ops::Deref;

use crate::model::{Job, Licence, Node, Partition, Reservation};
use crate::unread::{UNKNOWN, Unread};

/// What was read, in Slurm's order, and what was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// What was read, also what is not complete.
    pub read: Vec<T>,
    /// What could not be read, of records that are there and of others.
    pub unread: Vec<Unread>,
    /// How many records could not be read at all. What is not among those that were read may be one of them.
    pub lost: u32,
}

/// What a listing consists of.
pub trait Record {
    /// What tells it from others of its kind.
    fn key(&self) -> String;

    /// Whether all of it could be read.
    fn is_whole(&self) -> bool {
        true
    }
}

impl Record for Job {
    fn key(&self) -> String {
        let tasks = self.array.as_ref().map(|array| array.tasks.to_string()).unwrap_or_default();
        format!("{} {tasks}", self.id)
    }

    fn is_whole(&self) -> bool {
        self.unread.is_empty()
    }
}

impl Record for Node {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn is_whole(&self) -> bool {
        !self.state.base.is_empty() && self.cpus != UNKNOWN && self.cpus_in_use != UNKNOWN
    }
}

impl Record for Partition {
    fn key(&self) -> String {
        self.name.clone()
    }
}

impl Record for Licence {
    fn key(&self) -> String {
        format!("{} {}", self.name, self.nodes)
    }
}

impl Record for Reservation {
    fn key(&self) -> String {
        self.name.clone()
    }
}

impl<T> Listing<T> {
    /// Of records, each read by itself.
    pub(crate) fn of<R>(
        records: impl IntoIterator<Item = R>,
        mut read: impl FnMut(R, &mut Vec<Unread>) -> Option<T>,
    ) -> Self {
        let mut listing = Listing::default();
        for record in records {
            match read(record, &mut listing.unread) {
                Some(read) => listing.read.push(read),
                None => listing.lost += 1,
            }
        }
        listing
    }
}

impl<T> Listing<T> {
    /// What was read; what was not goes to the rest of its kind.
    pub fn into_read(self, unread: &mut Vec<Unread>) -> Vec<T> {
        unread.extend(self.unread);
        self.read
    }
}

impl<T: Record> Listing<T> {
    /// This with what could be read in another form: records that are whole there and not here, and those that are not
    /// here at all. If everything could be read there, nothing is left unread.
    pub(crate) fn mended_by(mut self, other: Listing<T>) -> Self {
        let (is_all, is_complete) = (other.unread.is_empty(), other.lost == 0);
        for record in other.read {
            let key = record.key();
            match self.read.iter_mut().find(|own| own.key() == key) {
                Some(own) if !own.is_whole() && record.is_whole() => *own = record,
                Some(_) => (),
                None => self.read.push(record),
            }
        }
        if is_all {
            self.unread.clear();
        }
        if is_complete {
            self.lost = 0;
        }
        self
    }
}

impl<T> Deref for Listing<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.read
    }
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Listing { read: Vec::new(), unread: Vec::new(), lost: 0 }
    }
}

impl<T> From<Vec<T>> for Listing<T> {
    fn from(read: Vec<T>) -> Self {
        Listing { read, ..Listing::default() }
    }
}

impl<T> IntoIterator for Listing<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.read.into_iter()
    }
}

/// Remembers what was reported, so that it is not reported at every look.
#[derive(Debug, Default)]
pub struct Reported(BTreeSet<Unread>);

impl Reported {
    /// What is new since the last look. What has gone away is new when it comes back.
    pub fn news<'a>(&mut self, unread: impl IntoIterator<Item = &'a Unread>) -> Vec<Unread> {
        let now: BTreeSet<Unread> = unread.into_iter().cloned().collect();
        let news = now.difference(&self.0).cloned().collect();
        self.0 = now;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unread_is_reported_once() {
        let mut reported = Reported::default();
        let (first, second) = (Unread::new("job 1", "x"), Unread::new("job 2", "y"));
        assert_eq!(reported.news([&first]), vec![first.clone()]);
        assert_eq!(reported.news([&first, &second]), vec![second.clone()]);
        assert!(reported.news([&second]).is_empty());
        assert_eq!(reported.news([&first]), [first]);
    }

    #[test]
    fn another_form_mends_what_is_not_whole() {
        let node = |name: &str, cpus: u32, base: &str| Node {
            name: name.to_owned(),
            cpus,
            state: crate::model::NodeState { base: base.to_owned(), flags: Vec::new() },
            ..Node::default()
        };
        let found = Listing {
            read: vec![node("n1", 4, "IDLE"), node("n2", UNKNOWN, "IDLE")],
            unread: vec![Unread::new("node n2", "CPUTot"), Unread::new("a node", "no name")],
            lost: 1,
        };
        let other = vec![node("n1", 4, "DOWN"), node("n2", 8, "IDLE"), node("n3", 2, "IDLE")];
        let mended = found.clone().mended_by(other.clone().into());
        assert_eq!(
            mended.read,
            [node("n1", 4, "IDLE"), node("n2", 8, "IDLE"), node("n3", 2, "IDLE")]
        );
        assert_eq!((mended.unread.len(), mended.lost), (0, 0));
        let partly =
            Listing { read: other, unread: vec![Unread::new("a node", "no name")], lost: 1 };
        let mended = found.mended_by(partly);
        assert_eq!((mended.unread.len(), mended.lost), (2, 1));
    }
}
