//! What a command line says of the job that it submitted: `sbatch --dependency=afterok:17 --nice=5 job.sh`.
//!
//! Only options are looked at, up to the script: what follows belongs to it. Options in the script itself are not part of the
//! line, so what is not said here may be so all the same.

use busbar_core::structure::Needs;

/// What a line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubmitLine {
    /// What has to happen to other jobs first; nothing if it cannot be read.
    pub needs: Needs,
    /// Whether it is held until somebody releases it.
    pub is_held: bool,
    /// Whether it does not start before a time.
    pub has_begin: bool,
    /// How many tasks of its array may run at a time.
    pub at_most: Option<u32>,
    /// By so much its priority is lower.
    pub nice: i32,
    /// The quality of service that it asks for.
    pub qos: Option<String>,
    /// The reservation that it is to run in.
    pub reservation: Option<String>,
}

/// What Slurm takes for `--nice` without a value.
const USUAL_NICE: i32 = 100;

/// Options of one letter that have no value behind them.
const PLAIN: &[u8] = b"HhIksOQvVWXlEZ";

/// Options of many letters that have a value only behind `=`, or none.
const WITHOUT_VALUE: [&str; 24] = [
    "contiguous",
    "disable-status",
    "exclusive",
    "get-user-env",
    "help",
    "hold",
    "ignore-pbs",
    "immediate",
    "label",
    "multi-prog",
    "nice",
    "no-kill",
    "no-requeue",
    "overcommit",
    "oversubscribe",
    "parsable",
    "preserve-env",
    "pty",
    "quiet",
    "reboot",
    "requeue",
    "spread-job",
    "test-only",
    "verbose",
];

impl SubmitLine {
    /// Reads a line.
    pub fn read(line: &str) -> Self {
        let mut said = SubmitLine::default();
        let mut words = Words(line);
        // The program, however it was called.
        words.next();
        while let Some(word) = words.next() {
            if let Some(option) = word.strip_prefix("--") {
                let (name, value) = match option.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None if option.is_empty() => break,
                    None if takes_none(option) => (option, None),
                    None => (option, words.next()),
                };
                said.take(name, value.as_deref());
            } else if let Some(option) = word.strip_prefix('-').filter(|option| option.is_ascii()) {
                let mut letters = option;
                // Letters without a value may stand together: -Hv.
                while let Some(letter) = letters.bytes().next() {
                    letters = &letters[1..];
                    if PLAIN.contains(&letter) {
                        said.take_letter(letter, None);
                        continue;
                    }
                    let value = match letters.is_empty() {
                        true => words.next(),
                        false => Some(letters.strip_prefix('=').unwrap_or(letters).to_owned()),
                    };
                    said.take_letter(letter, value.as_deref());
                    break;
                }
            } else {
                break;
            }
        }
        said
    }

    fn take_letter(&mut self, letter: u8, value: Option<&str>) {
        let name = match letter {
            b'H' => "hold",
            b'a' => "array",
            b'b' => "begin",
            b'd' => "dependency",
            b'q' => "qos",
            _ => return,
        };
        self.take(name, value);
    }

    fn take(&mut self, name: &str, value: Option<&str>) {
        let text = || value.map(str::to_owned);
        match name {
            "hold" => self.is_held = true,
            "begin" => self.has_begin = true,
            "qos" => self.qos = text(),
            "reservation" => self.reservation = text(),
            "nice" => {
                let nice = value.map_or(Ok(USUAL_NICE), str::parse);
                self.nice = nice.unwrap_or(0);
            }
            "dependency" => {
                self.needs = value.and_then(|text| text.parse().ok()).unwrap_or_default()
            }
            "array" => {
                let most = value.and_then(|tasks| tasks.rsplit_once('%'));
                self.at_most =
                    most.and_then(|(_, most)| most.parse().ok()).filter(|most| *most > 0);
            }
            _ => {}
        }
    }
}

/// Whether an option has no value in the word behind it. It may be written in short, as far as it is clear.
fn takes_none(option: &str) -> bool {
    WITHOUT_VALUE.iter().any(|known| option.len() > 2 && known.starts_with(option))
        || option == "wait"
}

/// The words of a line as a shell takes them, without what only a shell can know.
struct Words<'a>(&'a str);

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.0 = self.0.trim_start();
        if self.0.is_empty() {
            return None;
        }
        let (mut word, mut quote, mut escaped) = (String::new(), None, false);
        let mut end = self.0.len();
        for (place, letter) in self.0.char_indices() {
            match (quote, letter) {
                _ if escaped => {
                    word.push(letter);
                    escaped = false;
                }
                (Some('\''), letter) if letter != '\'' => word.push(letter),
                (_, '\\') => escaped = true,
                (Some(open), letter) if open == letter => quote = None,
                (Some(_), letter) => word.push(letter),
                (None, '\'' | '"') => quote = Some(letter),
                (None, letter) if letter.is_whitespace() => {
                    end = place;
                    break;
                }
                (None, letter) => word.push(letter),
            }
        }
        self.0 = &self.0[end..];
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_up_to_the_script() {
        let said = SubmitLine::read(
            "sbatch -N 2 --dependency=afterok:17:18?afterany:19 --array=0-99%4 -H --nice=-5 -q high \
             --exclusive job.sh --hold --nice=7 --qos=low",
        );
        assert_eq!(said.needs.to_string(), "afterok:17?afterok:18?afterany:19");
        assert_eq!((said.at_most, said.is_held, said.nice), (Some(4), true, -5));
        assert_eq!(said.qos.as_deref(), Some("high"));
        let short = SubmitLine::read("/usr/bin/sbatch -d singleton -a1-9%2 -Hv -b now+1hour x");
        assert_eq!((short.needs.to_string().as_str(), short.at_most), ("singleton", Some(2)));
        assert!(short.is_held && short.has_begin);
        // A value in the word behind, and one that is no value.
        let apart = SubmitLine::read("sbatch --dependency afterany:4 --nice --reservation maint x");
        assert_eq!((apart.needs.to_string().as_str(), apart.nice), ("afterany:4", 100));
        assert_eq!(apart.reservation.as_deref(), Some("maint"));
        let script = SubmitLine::read("sbatch job.sh --dependency=afterok:1");
        assert_eq!(script, SubmitLine::default());
    }

    #[test]
    fn quotes_are_those_of_a_shell() {
        let said = SubmitLine::read(
            r#"sbatch --job-name "a --hold b" --comment='it'\''s' --wrap "x; --hold" --nice=3"#,
        );
        assert_eq!((said.is_held, said.nice), (false, 3));
        for odd in
            ["", "sbatch", "sbatch -", "sbatch --", "sbatch \"", "sbatch -d", "sbatch -é --hold"]
        {
            SubmitLine::read(odd);
        }
        assert!(!SubmitLine::read("sbatch -é --hold").is_held);
    }
}
