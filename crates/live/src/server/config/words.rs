//! Types for the values in a configuration file.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::str::FromStr;

use jiff::civil::Time;
use serde::de::{self, Deserialize, Deserializer};

use super::Web;
use busbar_core::calendar::parse_clock_face;
use busbar_slurm::hosts::HostList;

/// A value that is written as text in quotes. A bare number is refused, since its unit would not be
/// clear.
pub(super) struct Text<T>(pub(super) T);

impl<'de, T> Deserialize<'de> for Text<T>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);
        impl<T> de::Visitor<'_> for Visitor<T>
        where
            T: FromStr,
            T::Err: fmt::Display,
        {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text in quotes, such as \"easy\", \"80%\", \"22:00\" or \"30s\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<T>, E> {
                text.parse().map(Text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor(PhantomData))
    }
}

/// A name or a number.
pub(super) struct Name(pub(super) String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a name in quotes")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Name, E> {
                match number {
                    0.. => Ok(Name(number.to_string())),
                    _ => Err(E::custom(format!("{number} is below zero"))),
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Name, E> {
                Ok(Name(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Where to listen: an address with a port, or `none`.
pub(super) struct ListenAt(pub(super) Option<SocketAddr>);

impl FromStr for ListenAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(ListenAt(None)),
            text => text.parse().map(|at| ListenAt(Some(at))).map_err(|_| {
                format!("'{text}': write an address with a port, such as {}, or none", Web::USUAL)
            }),
        }
    }
}

/// A time of the day.
pub(super) struct ClockFace(pub(super) Time);

impl FromStr for ClockFace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_clock_face(text).map(ClockFace)
    }
}

/// Nodes as Slurm writes them: `n[1-8],gpu01`.
pub(super) struct Hosts(pub(super) Vec<String>);

impl FromStr for Hosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hosts: HostList = text.parse().map_err(|why| format!("'{text}': {why}"))?;
        match hosts.is_empty() {
            true => Err("the list is empty; leave the key out for all nodes".to_owned()),
            false => Ok(Hosts(hosts.names().to_vec())),
        }
    }
}

/// Processors as `taskset` writes them: `0-3,8`.
pub(super) struct CpuList(pub(super) Vec<u32>);

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// The largest number of processors in Linux.
        const MOST: u32 = 8192;
        let wrong =
            || format!("'{text}' is not a list of processors; write for example 0, 0-3 or 0-3,8");
        let mut cpus = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let [first, last] = [first, last].map(|end| end.trim().parse::<u32>().ok());
            let (first, last) = first.zip(last).ok_or_else(wrong)?;
            if first > last || last >= MOST {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(CpuList(cpus))
    }
}
