//! Which job a record is about.

/// Which job it is: its number, and which part of it where one number stands for several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id(pub(super) u64);

impl Id {
    /// The job of a number.
    pub(super) fn plain(number: u32) -> Self {
        Id(u64::from(number) << 32)
    }

    /// A task of an array, or a component of a job that has several.
    pub(super) fn part(number: u32, part: u32) -> Self {
        // Parts are counted from 0, which is not the whole.
        Id(u64::from(number) << 32 | (u64::from(part) + 1))
    }

    /// The number, if it stands for this job alone.
    pub(super) fn number(self) -> Option<u32> {
        let (number, part) = self.number_and_part();
        part.is_none().then_some(number)
    }

    /// The number, and which part of the job it is, if it is one.
    pub(super) fn number_and_part(self) -> (u32, Option<u32>) {
        ((self.0 >> 32) as u32, (self.0 as u32).checked_sub(1))
    }
}
