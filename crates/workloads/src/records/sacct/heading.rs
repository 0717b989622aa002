//! The heading of what `sacct` prints: which column stands where.

use super::super::error::Defect;

/// The columns that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Column {
    JobId,
    JobIdRaw,
    User,
    Account,
    Group,
    Partition,
    Qos,
    State,
    Submit,
    Eligible,
    Start,
    End,
    Elapsed,
    ElapsedRaw,
    Timelimit,
    TimelimitRaw,
    NNodes,
    AllocNodes,
    NodeList,
    NCpus,
    AllocCpus,
    ReqCpus,
    AllocTres,
    ReqTres,
    ConsumedEnergy,
    ConsumedEnergyRaw,
    JobName,
    Reservation,
    SubmitLine,
    /// How many tasks of its array may run at a time. Only JSON has it.
    ArrayLimit,
}

/// How many columns are used.
pub(super) const COLUMNS: usize = NAMES.len();

/// What `sacct` calls them.
const NAMES: [(&str, Column); 30] = [
    ("JobID", Column::JobId),
    ("JobIDRaw", Column::JobIdRaw),
    ("User", Column::User),
    ("Account", Column::Account),
    ("Group", Column::Group),
    ("Partition", Column::Partition),
    ("QOS", Column::Qos),
    ("State", Column::State),
    ("Submit", Column::Submit),
    ("Eligible", Column::Eligible),
    ("Start", Column::Start),
    ("End", Column::End),
    ("Elapsed", Column::Elapsed),
    ("ElapsedRaw", Column::ElapsedRaw),
    ("Timelimit", Column::Timelimit),
    ("TimelimitRaw", Column::TimelimitRaw),
    ("NNodes", Column::NNodes),
    ("AllocNodes", Column::AllocNodes),
    ("NodeList", Column::NodeList),
    ("NCPUS", Column::NCpus),
    ("AllocCPUS", Column::AllocCpus),
    ("ReqCPUS", Column::ReqCpus),
    ("AllocTRES", Column::AllocTres),
    ("ReqTRES", Column::ReqTres),
    ("ConsumedEnergy", Column::ConsumedEnergy),
    ("ConsumedEnergyRaw", Column::ConsumedEnergyRaw),
    ("JobName", Column::JobName),
    ("Reservation", Column::Reservation),
    ("SubmitLine", Column::SubmitLine),
    ("ArrayTaskLimit", Column::ArrayLimit),
];

/// What there is no doing without: one of each row.
const NEEDED: [(&str, &[Column]); 4] = [
    ("JobIDRaw", &[Column::JobIdRaw, Column::JobId]),
    ("Submit", &[Column::Submit, Column::Eligible]),
    ("Start", &[Column::Start]),
    ("End", &[Column::End, Column::Elapsed, Column::ElapsedRaw]),
];

const SIZES: [Column; 7] = [
    Column::NCpus,
    Column::AllocCpus,
    Column::ReqCpus,
    Column::AllocTres,
    Column::ReqTres,
    Column::NNodes,
    Column::AllocNodes,
];

/// How records can be dumped so that nothing is missing.
const COMMAND: &str = "dump with 'sacct -a -D -P -o JobIDRaw,JobID,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,ElapsedRaw,\
Timelimit,NNodes,AllocCPUS,AllocTRES,NodeList,Reservation,ConsumedEnergyRaw,JobName,SubmitLine'";

/// Which column stands where.
#[derive(Clone, Debug)]
pub(in super::super) struct Heading {
    separator: u8,
    /// By place: the column, if it is used.
    columns: Vec<Option<Column>>,
}

impl Heading {
    /// The heading that a line is, if it is one: a column for the job is among its fields.
    pub(in super::super) fn read(line: &[u8]) -> Option<Self> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let separator =
            *b"|,;\t".iter().find(|separator| memchr::memchr(**separator, line).is_some())?;
        let columns: Vec<Option<Column>> =
            line.split(|byte| *byte == separator).map(column).collect();
        let has = |wanted| columns.contains(&Some(wanted));
        let is_heading = has(Column::JobId) || has(Column::JobIdRaw);
        is_heading.then_some(Heading { separator, columns })
    }

    /// Whether runs can be made of what stands below; if not, what is missing.
    pub(super) fn check(&self) -> Result<(), String> {
        let has =
            |columns: &[Column]| columns.iter().any(|column| self.columns.contains(&Some(*column)));
        let missing = NEEDED.iter().find(|(_, columns)| !has(columns)).map(|(name, _)| *name);
        match missing.or((!has(&SIZES)).then_some("AllocCPUS")) {
            None => Ok(()),
            Some(name) => Err(format!("there is no column {name}; {COMMAND}")),
        }
    }

    /// The fields of a line that are used, by their columns.
    #[inline]
    pub(super) fn split<'a>(&self, line: &'a [u8]) -> Result<[&'a [u8]; COLUMNS], Defect> {
        let mut fields: [&[u8]; COLUMNS] = [b""; COLUMNS];
        let (mut begin, mut place) = (0, 0);
        let mut put = |place: usize, field: &'a [u8]| {
            if let Some(Some(column)) = self.columns.get(place) {
                fields[*column as usize] = field;
            }
        };
        for end in memchr::memchr_iter(self.separator, line) {
            put(place, &line[begin..end]);
            (begin, place) = (end + 1, place + 1);
        }
        put(place, &line[begin..]);
        let (found, expected) = (place + 1, self.columns.len());
        if found == expected { Ok(fields) } else { Err(Defect::Fields { found, expected }) }
    }
}

fn column(name: &[u8]) -> Option<Column> {
    let named = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
    named.map(|(_, column)| *column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_wherever_they_stand() {
        let heading = Heading::read(b"State|jobid|Comment|Start|").unwrap();
        let fields = heading.split(b"COMPLETED|17|hello|2024|").unwrap();
        assert_eq!(fields[Column::JobId as usize], b"17");
        assert_eq!(fields[Column::Start as usize], b"2024");
        assert_eq!(fields[Column::End as usize], b"");
        let cut = heading.split(b"COMPLETED|17|hel");
        assert_eq!(cut, Err(Defect::Fields { found: 3, expected: 5 }));
        assert!(Heading::read(b"State,jobid").is_some());
        assert!(Heading::read(b"17|COMPLETED").is_none());
        // The places of columns are those of their names.
        assert!(NAMES.iter().enumerate().all(|(place, (_, column))| *column as usize == place));
    }

    #[test]
    fn a_heading_says_what_it_lacks() {
        let lacks = |line: &[u8]| Heading::read(line).unwrap().check().unwrap_err();
        assert!(lacks(b"JobID|Start|End|NCPUS").contains("no column Submit"));
        assert!(lacks(b"JobID|Submit|End|NCPUS").contains("no column Start"));
        assert!(lacks(b"JobID|Submit|Start|End").contains("no column AllocCPUS"));
        assert!(Heading::read(b"JobID|Submit|Start|Elapsed|NNodes").unwrap().check().is_ok());
    }
}
