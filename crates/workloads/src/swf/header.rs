//! The comments a log opens with.

/// The key of the comment that names the file in which jobs have their power.
pub const POWER_KEY: &str = "BusbarPower";

/// The most bytes that opening comments may take together.
pub(super) const LARGEST_HEADER: usize = 4 << 20;

/// What each of them takes beside its text.
pub(super) const COMMENT: usize = 32;

/// What a log's opening comments say about it: `; Key: value` lines before the first record.
///
/// Headers are written by people, so nothing in them is an error: a value that cannot be
/// understood is as good as none. Of a number followed by remarks (`128 (4 of them for login)`)
/// the number is taken, of several the first; a key given twice counts where it first makes sense.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The version of the standard.
    pub version: Option<String>,
    /// Make and model of the machine.
    pub computer: Option<String>,
    /// Where it stands.
    pub installation: Option<String>,
    /// Whom to thank for the log.
    pub acknowledge: Option<String>,
    /// Processors of the machine.
    pub max_procs: Option<u32>,
    /// Nodes of the machine.
    pub max_nodes: Option<u32>,
    /// Jobs in the log.
    pub max_jobs: Option<u64>,
    /// Records in the log.
    pub max_records: Option<u64>,
    /// When the log's clock starts, in Unix time.
    pub unix_start_time: Option<i64>,
    /// The time zone, by name.
    pub time_zone: Option<String>,
    /// The file beside the log in which jobs have their [power](crate::power).
    pub power_file: Option<String>,
    /// The names of partitions, by their numbers.
    pub partitions: Vec<(u32, String)>,
    /// The names of queues, by their numbers.
    pub queues: Vec<(u32, String)>,
    /// Every opening comment as it stands, without its mark: a copy of the log keeps them, since
    /// some archives ask for that.
    pub comments: Vec<String>,
}

impl Header {
    /// Takes an opening comment.
    pub(super) fn take(&mut self, comment: &[u8]) {
        let comment = String::from_utf8_lossy(comment);
        let comment = comment.strip_prefix(' ').unwrap_or(&comment).trim_end();
        if let Some((key, value)) = comment.split_once(':') {
            self.set(key.trim(), value.trim());
        }
        self.comments.push(comment.to_owned());
    }

    fn set(&mut self, key: &str, value: &str) {
        let is = |name: &str| key.eq_ignore_ascii_case(name);
        if is("Version") {
            keep_text(&mut self.version, value);
        } else if is("Computer") {
            keep_text(&mut self.computer, value);
        } else if is("Installation") {
            keep_text(&mut self.installation, value);
        } else if is("Acknowledge") {
            keep_text(&mut self.acknowledge, value);
        } else if is("MaxProcs") {
            keep_count(&mut self.max_procs, value);
        } else if is("MaxNodes") {
            keep_count(&mut self.max_nodes, value);
        } else if is("MaxJobs") {
            keep_count(&mut self.max_jobs, value);
        } else if is("MaxRecords") {
            keep_count(&mut self.max_records, value);
        } else if is("UnixStartTime") {
            self.unix_start_time = self.unix_start_time.or_else(|| leading_integer(value));
        } else if is("TimeZoneString") {
            keep_text(&mut self.time_zone, value);
        } else if is("Partition") {
            self.partitions.extend(numbered_name(value));
        } else if is("Queue") {
            self.queues.extend(numbered_name(value));
        } else if is(POWER_KEY) {
            keep_text(&mut self.power_file, value);
        }
    }

    /// Processors of a machine whose largest job has this many. A node may have several of them,
    /// so the number of nodes stands in only where no job speaks against it.
    pub fn processors(&self, largest_job: u32) -> Option<u32> {
        self.max_procs.or(self.max_nodes.filter(|nodes| *nodes >= largest_job))
    }
}

fn keep_text(kept: &mut Option<String>, value: &str) {
    if kept.is_none() && !value.is_empty() {
        *kept = Some(value.to_owned());
    }
}

/// A number above zero and the name that follows it; what follows that are remarks.
fn numbered_name(value: &str) -> Option<(u32, String)> {
    let mut words = value.split_whitespace();
    let number = words.next()?.parse().ok().filter(|number| *number > 0)?;
    Some((number, words.next()?.to_owned()))
}

/// Counts are above zero: logs write 0 or −1 for 'not known'.
fn keep_count<T: TryFrom<i64>>(kept: &mut Option<T>, value: &str) {
    if kept.is_none() {
        let count = leading_integer(value).filter(|&count| count > 0);
        *kept = count.and_then(|count| T::try_from(count).ok());
    }
}

/// The number a value opens with. What sticks to it may be punctuation, but nothing that would
/// change the number: `1,024` is rather not understood than taken for 1.
fn leading_integer(value: &str) -> Option<i64> {
    let word = value.split(|c: char| c.is_whitespace() || c == '(').next()?;
    word.trim_end_matches([',', ';', '.']).parse().ok()
}
