//! Names as numbers: a log has numbers only.

use std::collections::HashMap;
use std::io::{self, Write};

use busbar_core::rows::quote;

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Who submitted a job.
    User,
    /// The account or the group it was charged to.
    Group,
    /// What it ran, by the name of the job.
    Application,
    /// The queue, or the quality of service.
    Queue,
    /// The part of the machine.
    Partition,
    /// The reservation, which no log has a field for.
    Reservation,
}

impl Kind {
    /// All kinds, in the order of a log's fields.
    pub(crate) const ALL: [Kind; 6] = [
        Kind::User,
        Kind::Group,
        Kind::Application,
        Kind::Queue,
        Kind::Partition,
        Kind::Reservation,
    ];

    /// What a name of this kind is called in a table.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::User => "user",
            Kind::Group => "group",
            Kind::Application => "executable",
            Kind::Queue => "queue",
            Kind::Partition => "partition",
            Kind::Reservation => "reservation",
        }
    }
}

/// Names of one kind, numbered from 1 in the order in which they appear.
#[derive(Clone, Debug, Default)]
struct Names {
    numbers: HashMap<Box<[u8]>, u32>,
    /// The name that was asked for last: records of a user stand together.
    latest: (Vec<u8>, u32),
}

impl Names {
    fn number(&mut self, name: &[u8]) -> u32 {
        if name.is_empty() {
            return 0;
        }
        if self.latest.0 != name {
            let next = self.numbers.len() as u32 + 1;
            let number = match self.numbers.get(name) {
                Some(number) => *number,
                None => *self.numbers.entry(name.into()).or_insert(next),
            };
            self.latest.0.clear();
            self.latest.0.extend_from_slice(name);
            self.latest.1 = number;
        }
        self.latest.1
    }
}

/// The names of an import, with their numbers.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    names: [Names; Kind::ALL.len()],
}

impl NameTable {
    /// The number of a name, given to it now if it is new; 0 for no name.
    pub(super) fn number(&mut self, kind: Kind, name: &[u8]) -> u32 {
        self.names[kind as usize].number(name)
    }

    /// Numbers the names of a kind anew, in the order in which their numbers appear here. Names that do not appear are
    /// forgotten.
    pub(super) fn renumber<'a>(&mut self, kind: Kind, numbers: impl Iterator<Item = &'a mut u32>) {
        let names = &mut self.names[kind as usize];
        // By the old number, the new one; 0 is none yet.
        let mut anew = vec![0u32; names.numbers.len() + 1];
        let mut latest = 0;
        for number in numbers.filter(|number| **number > 0) {
            let new = &mut anew[*number as usize];
            if *new == 0 {
                latest += 1;
                *new = latest;
            }
            *number = *new;
        }
        names.numbers.retain(|_, number| {
            *number = anew[*number as usize];
            *number > 0
        });
        names.latest = Default::default();
    }

    /// How many names there are of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.names[kind as usize].numbers.len()
    }

    /// The names of a kind, in the order of their numbers.
    pub fn of(&self, kind: Kind) -> Vec<String> {
        let mut names: Vec<(&u32, &[u8])> = self.names[kind as usize]
            .numbers
            .iter()
            .map(|(name, number)| (number, &**name))
            .collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Writes what each number stands for: `kind,number,name`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "kind,number,name")?;
        for kind in Kind::ALL {
            for (number, name) in (1..).zip(self.of(kind)) {
                // What a terminal or a table could trip over is made visible.
                let name: String = name.chars().flat_map(visible).collect();
                writeln!(out, "{},{number},{}", kind.word(), quote(&name))?;
            }
        }
        Ok(())
    }
}

fn visible(c: char) -> impl Iterator<Item = char> {
    let is_control = c.is_control();
    let escaped = is_control.then(|| c.escape_debug());
    escaped.into_iter().flatten().chain((!is_control).then_some(c))
}

/// What a job runs, by its name: without folders, and without the numbers that tell one job from the next. Those are
/// what follows a separator and begins with a digit, or digits at the end.
pub(super) fn application(job: &[u8]) -> &[u8] {
    let name = memchr::memrchr(b'/', job).map_or(job, |slash| &job[slash + 1..]);
    let name = name.strip_suffix(b".sh").unwrap_or(name);
    let is_separator =
        |byte: &u8| matches!(byte, b'_' | b'-' | b'.' | b' ' | b'=' | b':' | b'[' | b'(');
    let begins_number = |pair: &[u8]| is_separator(&pair[0]) && pair[1].is_ascii_digit();
    let stem = match name.windows(2).position(begins_number) {
        Some(separator) => &name[..separator],
        None => name,
    };
    let trimmed = |byte: &u8| is_separator(byte) || byte.is_ascii_digit();
    let length = stem.iter().rposition(|byte| !trimmed(byte)).map_or(0, |last| last + 1);
    // A name of nothing but numbers is the name all the same.
    if length == 0 { name } else { &stem[..length] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_as_they_appear() {
        let mut table = NameTable::default();
        let numbers =
            ["bea", "al", "bea", "", "al"].map(|name| table.number(Kind::User, name.as_bytes()));
        assert_eq!(numbers, [1, 2, 1, 0, 2]);
        table.number(Kind::Application, b"a,b\x1b");
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let expected = "kind,number,name\nuser,1,bea\nuser,2,al\nexecutable,1,\"a,b\\u{1b}\"\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn names_can_be_numbered_by_another_order() {
        let mut table = NameTable::default();
        for name in ["bea", "al", "eve"] {
            table.number(Kind::User, name.as_bytes());
        }
        let mut numbers = [3, 0, 1, 3];
        table.renumber(Kind::User, numbers.iter_mut());
        assert_eq!(
            (numbers, table.of(Kind::User)),
            ([1, 0, 2, 1], vec!["eve".to_owned(), "bea".to_owned()])
        );
    }

    #[test]
    fn an_application_is_a_name_without_its_numbers() {
        for (job, expected) in [
            ("lammps", "lammps"),
            ("gromacs_12", "gromacs"),
            ("lmp_1_of_20", "lmp"),
            ("cp2k", "cp2k"),
            ("cp2k_3", "cp2k"),
            ("run0042", "run"),
            ("4711", "4711"),
            ("run-0042.sh", "run"),
            ("wrap.sh", "wrap"),
            ("/home/u/heat_t=300", "heat_t"),
            ("2dflow", "2dflow"),
            ("_7", "_7"),
            ("", ""),
        ] {
            assert_eq!(application(job.as_bytes()), expected.as_bytes(), "{job}");
        }
    }
}
