//! Clients that have not authenticated yet, and which of them are disconnected when there are too many.
//!
//! Anybody can open connections, as fast as the system allows. A newcomer is never refused for that, since it may be
//! the controller: somebody else goes. It is chosen so that a flood displaces its own connections: one of the largest
//! crowd, where a crowd is an address, or a user of this node. The controller may be in the same crowd, on the same
//! machine as the flood. So of these the one goes that has got least far with showing who it is, and among equals
//! the oldest.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// How many clients may be about to show who they are. They cost little, and a client that is about to answer must
/// outlast those who come meanwhile; more would leave too few of the 1024 files that a process usually has.
pub(super) const MOST: usize = 256;

/// How many are let in before those who are there are served again: a fraction of [`MOST`], so that everybody is
/// served a few times before it can be displaced.
pub(super) const AT_ONCE: usize = 64;

/// Those who count as one when places are short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Crowd {
    /// The users of this node who may not use the agent, all together.
    Outsiders,
    /// A user of this node who may use the agent.
    User(u32),
    /// An address, or a network of IPv6 that one machine usually has to itself.
    Address(IpAddr),
}

impl Crowd {
    /// Those who come from an address.
    pub(super) fn at(address: IpAddr) -> Self {
        Crowd::Address(match address {
            IpAddr::V6(ip) if ip.to_ipv4_mapped().is_none() => {
                let network = u128::from(ip) & (u128::MAX << 64);
                Ipv6Addr::from(network).into()
            }
            other => other.to_canonical(),
        })
    }
}

/// How far a client has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// It has said nothing that makes sense.
    Silent,
    /// It has begun a handshake.
    Begun,
    /// The kernel or its certificate tells who it is.
    Known,
}

/// The number of the one who goes, of these in the order in which they came.
pub(super) fn displaced(
    strangers: impl Iterator<Item = (usize, Crowd, Progress)> + Clone,
) -> Option<usize> {
    let mut sizes: BTreeMap<Crowd, usize> = BTreeMap::new();
    strangers.clone().for_each(|(_, crowd, _)| *sizes.entry(crowd).or_default() += 1);
    let largest = sizes.values().copied().max()?;
    let crowded = strangers.filter(|(_, crowd, _)| sizes.get(crowd) == Some(&largest));
    // Of equals `min_by_key` takes the first.
    crowded.min_by_key(|(_, _, progress)| *progress).map(|(place, ..)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes(strangers: &[(Crowd, Progress)]) -> Option<usize> {
        let numbered = strangers.iter().enumerate();
        displaced(numbered.map(|(place, (crowd, progress))| (place, *crowd, *progress)))
    }

    #[test]
    fn a_flood_displaces_its_own() {
        let [here, there] = ["127.0.0.1", "10.0.0.7"].map(|ip| Crowd::at(ip.parse().unwrap()));
        assert_eq!(goes(&[]), None);
        // Others are safe from it, however little they have done.
        let flood = [(here, Progress::Silent), (there, Progress::Known), (there, Progress::Begun)];
        assert_eq!(goes(&flood), Some(2));
        let root = Crowd::User(0);
        let flood = [(root, Progress::Known), (Crowd::Outsiders, Progress::Silent)];
        assert_eq!(goes(&[flood[0], flood[1], flood[1]]), Some(1));
        // Of its own crowd the one goes that has got least far, and then the oldest.
        let (silent, begun) = ((here, Progress::Silent), (here, Progress::Begun));
        assert_eq!(goes(&[begun, silent, silent, begun]), Some(1));
        assert_eq!(goes(&[begun, (here, Progress::Known), begun]), Some(0));
    }

    #[test]
    fn a_machine_is_one_crowd_whatever_its_address() {
        let crowd = |ip: &str| Crowd::at(ip.parse().unwrap());
        assert_eq!(crowd("2001:db8::1"), crowd("2001:db8::ffff:2"));
        assert_ne!(crowd("2001:db8::1"), crowd("2001:db8:0:1::1"));
        assert_eq!(crowd("::ffff:10.0.0.7"), crowd("10.0.0.7"));
        assert_ne!(crowd("10.0.0.7"), crowd("10.0.0.8"));
    }
}
