//! The connections, and which of them are closed when there are too many.
//!
//! A newcomer is never kept waiting, since nobody knows yet who it is: somebody else goes. Those who have shown a token
//! have places of their own, and streams and requests have a share each, so that newcomers have theirs ([`Limits`]). Among the others, as among those, one of the largest group goes, where a
//! group is an address or a token: so a flood displaces its own connections. Of these one goes that is doing
//! nothing, then a stream of events, whose reader can ask again, and only then one whose request is being answered;
//! and among equals the one that has been so for longest.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::group::Group;
use crate::limits::{Limits, Share};

/// All places.
pub(crate) struct Places {
    limits: Limits,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// The connections, by the order in which they came.
    taken: BTreeMap<u64, Taken>,
    /// Counts what happens.
    moment: u64,
}

struct Taken {
    group: Group,
    /// Requests that are being answered, and streams of events.
    requests: u32,
    streams: u32,
    /// The moment of the last change.
    since: u64,
    closing: Arc<Notify>,
}

/// What a connection does, in the order of how much is lost if it goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    Nothing,
    Streaming,
    Answering,
}

impl Taken {
    fn doing(&self) -> Doing {
        match (self.streams, self.requests) {
            (0, 0) => Doing::Nothing,
            (0, _) => Doing::Answering,
            // A stream is the answer to a request.
            _ => Doing::Streaming,
        }
    }
}

impl Table {
    /// Lets connections of a kind go until there are no more than so many; never the one that wants the place.
    fn shorten(&mut self, most: usize, spared: u64, is_meant: impl Fn(&Taken) -> bool) {
        loop {
            let meant = || self.taken.iter().filter(|(_, taken)| is_meant(taken));
            if meant().count() <= most {
                return;
            }
            let mut sizes: HashMap<&Group, usize> = HashMap::new();
            meant().for_each(|(_, taken)| *sizes.entry(&taken.group).or_default() += 1);
            let others = meant().filter(|(id, _)| **id != spared);
            let first = others.min_by_key(|(_, taken)| {
                (std::cmp::Reverse(sizes[&taken.group]), taken.doing(), taken.since)
            });
            let Some((id, _)) = first else { return };
            let id = *id;
            if let Some(taken) = self.taken.remove(&id) {
                taken.closing.notify_one();
            }
        }
    }

    /// Holds one kind of clients to its share.
    fn hold_to(&mut self, share: Share, is_known: bool, spared: u64) {
        let is_meant = |taken: &Taken| taken.group.is_known() == is_known;
        for (most, doing) in [(share.streams, Doing::Streaming), (share.requests, Doing::Answering)]
        {
            self.shorten(most, spared, |taken| is_meant(taken) && taken.doing() == doing);
        }
        self.shorten(share.connections, spared, is_meant);
    }
}

impl Places {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Places { limits, table: Mutex::default() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection that comes from an address.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Seat {
        let closing = Arc::new(Notify::new());
        let mut table = self.table();
        table.moment += 1;
        let id = table.moment;
        let group = Group::at(address);
        let taken =
            Taken { group, requests: 0, streams: 0, since: id, closing: Arc::clone(&closing) };
        table.taken.insert(id, taken);
        table.hold_to(self.limits.strangers(), false, id);
        drop(table);
        Seat(Arc::new(Held { places: Arc::clone(self), id, closing }))
    }

    /// Changes a connection, unless it is to go, and holds its kind to its share.
    fn change(&self, id: u64, change: impl FnOnce(&mut Taken)) {
        let mut table = self.table();
        table.moment += 1;
        let now = table.moment;
        let Some(taken) = table.taken.get_mut(&id) else { return };
        change(taken);
        taken.since = now;
        let is_known = taken.group.is_known();
        let share = if is_known { self.limits.known() } else { self.limits.strangers() };
        table.hold_to(share, is_known, id);
    }
}

/// The place of a connection, which is free again when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Seat(Arc<Held>);

struct Held {
    places: Arc<Places>,
    id: u64,
    closing: Arc<Notify>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.places.table().taken.remove(&self.id);
    }
}

impl Seat {
    /// Waits until the connection has to go.
    pub(crate) async fn is_displaced(&self) {
        self.0.closing.notified().await;
    }

    /// It is known now who is connected.
    pub(crate) fn recognise(&self, group: Group) {
        self.0.places.change(self.0.id, |taken| taken.group = group);
    }

    /// A request is answered until the guard is dropped.
    pub(crate) fn request(&self) -> Busy {
        self.busy(|taken| &mut taken.requests)
    }

    /// Events are sent until the guard is dropped.
    pub(crate) fn stream(&self) -> Busy {
        self.busy(|taken| &mut taken.streams)
    }

    fn busy(&self, count: fn(&mut Taken) -> &mut u32) -> Busy {
        self.0.places.change(self.0.id, |taken| *count(taken) += 1);
        Busy { seat: self.clone(), count }
    }
}

/// A connection that does something, until this is dropped.
pub(crate) struct Busy {
    seat: Seat,
    count: fn(&mut Taken) -> &mut u32,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let count = self.count;
        self.seat.0.places.change(self.seat.0.id, |taken| *count(taken) -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two places for those with a token, of eight; two streams and two requests among the six others.
    fn places() -> Arc<Places> {
        Places::new(Limits { connections: 8, ..Limits::default() })
    }

    fn is_there(seat: &Seat) -> bool {
        seat.0.places.table().taken.contains_key(&seat.0.id)
    }

    fn token(id: &str) -> Group {
        Group::Token(id.to_owned())
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_newcomer_displaces_who_does_nothing_for_longest() {
        let places = places();
        let seats: Vec<Seat> = (0..6).map(|_| places.take(ip("127.0.0.1"))).collect();
        let _stream = seats[0].stream();
        let _request = seats[1].request();
        drop(seats[2].request());
        let newcomers: Vec<Seat> = (0..4).map(|_| places.take(ip("127.0.0.1"))).collect();
        // The one that has asked before stays longest of those who do nothing.
        assert_eq!(
            seats.iter().map(is_there).collect::<Vec<_>>(),
            [true, true, false, false, false, false]
        );
        assert!(newcomers.iter().all(is_there));
        // Never does the newcomer go.
        let alone = Places::new(Limits { connections: 2, ..Limits::default() });
        let _stream = alone.take(ip("127.0.0.1")).stream();
        let last = alone.take(ip("127.0.0.1"));
        assert!(is_there(&last));
    }

    #[test]
    fn a_flood_leaves_other_addresses_alone() {
        let places = places();
        let other = places.take(ip("10.0.0.8"));
        let flood: Vec<Seat> =
            (0..100).map(|host| places.take(ip(&format!("2001:db8::{host}")))).collect();
        assert!(is_there(&other));
        assert_eq!(flood.iter().filter(|seat| is_there(seat)).count(), 5);
    }

    #[test]
    fn who_has_shown_a_token_is_not_displaced_by_others() {
        let places = places();
        let known: Vec<Seat> = (0..2).map(|_| places.take(ip("127.0.0.1"))).collect();
        known.iter().for_each(|seat| seat.recognise(token("operator")));
        let strangers: Vec<Seat> = (0..20).map(|_| places.take(ip("127.0.0.1"))).collect();
        assert!(known.iter().all(is_there));
        assert_eq!(strangers.iter().filter(|seat| is_there(seat)).count(), 6);
        // Nor do many with one token displace another token.
        let other = places.take(ip("127.0.0.1"));
        other.recognise(token("viewer"));
        assert_eq!(known.iter().map(is_there).collect::<Vec<_>>(), [false, true]);
        let third = places.take(ip("127.0.0.1"));
        third.recognise(token("operator"));
        assert!(!is_there(&known[1]) && is_there(&other));
    }

    #[test]
    fn streams_and_requests_have_fewer_places_and_give_them_back() {
        let places = places();
        let seats: Vec<Seat> = (0..4).map(|_| places.take(ip("127.0.0.1"))).collect();
        let streams: Vec<Busy> = seats.iter().map(Seat::stream).collect();
        assert_eq!(seats.iter().map(is_there).collect::<Vec<_>>(), [false, false, true, true]);
        // So have requests, beside which a newcomer is not alone.
        let asking: Vec<Seat> = (0..4).map(|_| places.take(ip("127.0.0.1"))).collect();
        let requests: Vec<Busy> = asking.iter().map(Seat::request).collect();
        assert_eq!(asking.iter().map(is_there).collect::<Vec<_>>(), [false, false, true, true]);
        let newcomers: Vec<Seat> = (0..2).map(|_| places.take(ip("127.0.0.1"))).collect();
        assert!(newcomers.iter().chain(&seats[2..]).chain(&asking[2..]).all(is_there));
        drop((streams, requests, newcomers, asking, seats));
        assert!(places.table().taken.is_empty());
    }

    #[test]
    fn a_stream_goes_before_a_request() {
        let places = places();
        let seats: Vec<Seat> = (0..3).map(|_| places.take(ip("127.0.0.1"))).collect();
        let _request = seats[0].request();
        let _stream = seats[1].stream();
        seats.iter().for_each(|seat| seat.recognise(token("operator")));
        assert_eq!(seats.iter().map(is_there).collect::<Vec<_>>(), [true, false, true]);
    }

    #[tokio::test]
    async fn who_has_to_go_is_told() {
        let places = Places::new(Limits { connections: 2, ..Limits::default() });
        let first = places.take(ip("127.0.0.1"));
        let _second = places.take(ip("127.0.0.1"));
        first.is_displaced().await;
    }
}
