//! Which clients share a limit: for connections, for requests, and for the turns of forecasts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::token::Record;

/// Those who count as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Group {
    /// Those at an address who have shown no token.
    Address(IpAddr),
    /// The bearers of a token, by its id: its name is for people, and many have none.
    Token(String),
}

impl Group {
    /// Whoever is at an address.
    pub(crate) fn at(address: IpAddr) -> Self {
        Group::Address(match address.to_canonical() {
            // Whoever is on this machine can choose among these addresses.
            ip if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
            // A machine usually has a network of IPv6 to itself.
            IpAddr::V6(ip) => Ipv6Addr::from(u128::from(ip) & (u128::MAX << 64)).into(),
            ip => ip,
        })
    }

    /// Whoever has shown a token.
    pub(crate) fn with(token: &Record) -> Self {
        Group::Token(token.id.clone())
    }

    /// Whether they have shown a token.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self, Group::Token(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_one_whatever_address_it_chooses() {
        let group = |text: &str| Group::at(text.parse().unwrap());
        assert_eq!(group("127.0.0.1"), group("127.9.9.9"));
        assert_eq!(group("127.0.0.1"), group("::1"));
        assert_eq!(group("10.0.0.8"), group("::ffff:10.0.0.8"));
        assert_eq!(group("2001:db8::1"), group("2001:db8::ffff:1"));
        assert_ne!(group("2001:db8::1"), group("2001:db8:0:1::1"));
        assert_ne!(group("10.0.0.8"), group("10.0.0.9"));
    }
}
