//! The parameters of an external policy, as text that round-trips: `external(python3 mine.py, limit=5s)`.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::call::{Call, CallError};
use crate::freedom::{Freedom, Freedoms};
use crate::policy::{PolicyError, Published};
use crate::units::{Length, Span};

/// The name before the parentheses.
pub(in crate::policy) const NAME: &str = "external";

/// The parameters that may follow the program.
const PARAMETERS: [&str; 3] = ["limit", "wants", "believes"];

/// What a program can be told and can decide. The protocol has no words for single nodes, and nodes are switched
/// off by a rule of the simulation, not by policies.
const POSSIBLE: Freedoms = Freedoms::of(&[
    Freedom::Caps,
    Freedom::Sizes,
    Freedom::Recaps,
    Freedom::Resizes,
    Freedom::Drops,
]);

/// How long all commands of a process may be together, in bytes. They are kept for good, so that their number must
/// have a bound; this one is above what a sweep over thousands of arguments needs.
const MOST_KEPT: usize = 16 << 20;

/// The longest time limit: whoever needs longer for one answer does not need a limit.
const LONGEST_LIMIT: Span = Span::from_secs(24 * 3600);

/// An external policy with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalSpec {
    /// The program and its arguments, with blanks between them. Every text is kept once for the whole life of the
    /// process, so that a specification can be copied like that of any other policy; a daemon therefore
    /// [reads](crate::policy::PolicySpec::for_daemon) none of them.
    pub command: &'static str,
    /// How long the program may take for one answer.
    pub limit: Span,
    /// What the program would do to jobs if it may. By default it starts jobs under caps, since power is what
    /// budgets are about.
    pub wants: Freedoms,
    /// What the program is told of jobs, unless given otherwise.
    pub believes: Published,
}

impl ExternalSpec {
    /// The program with the usual parameters. The words of the command are separated by blanks.
    ///
    /// # Errors
    ///
    /// If the command is empty, cannot be written as the text of a policy, or is one too many.
    pub fn new(command: &str) -> Result<Self, PolicyError> {
        let wrong = |why| PolicyError::Program { text: command.to_owned(), why };
        let words: Vec<&str> = command.split_whitespace().collect();
        if words.is_empty() {
            return Err(wrong("the program is missing"));
        }
        if command.contains(['\'', '"', ',']) || !has_pairs(command) {
            return Err(wrong(
                "the command is split at spaces without a shell, so it cannot contain quotes, commas or \
                unbalanced parentheses; put it into a script",
            ));
        }
        Ok(ExternalSpec {
            command: KEPT.keep(&words.join(" "))?,
            limit: Span::from_secs(10),
            wants: Freedoms::of(&[Freedom::Caps]),
            believes: Published::Clock,
        })
    }

    /// Reads what stands between the parentheses: the program, and then its parameters.
    pub(in crate::policy) fn from_inside(inside: &str) -> Result<Self, PolicyError> {
        let items = Call::split_list(inside);
        let (command, parameters) = items.split_first().unwrap_or((&"", &[]));
        let is_parameter = |text: &str| {
            let key = text.split_once('=').map(|(key, _)| key.trim());
            key.is_some_and(|key| PARAMETERS.contains(&key))
        };
        if is_parameter(command) {
            let why = "the program is missing; it comes before the parameters";
            return Err(PolicyError::Program { text: inside.to_owned(), why });
        }
        let spec = ExternalSpec::new(command)?;
        let call: Call =
            format!("{NAME}({})", parameters.join(",")).parse().map_err(PolicyError::Call)?;
        spec.with_parameters(&call).map_err(PolicyError::Call)
    }

    fn with_parameters(mut self, call: &Call) -> Result<Self, CallError> {
        for (key, value) in call.parameters(&PARAMETERS)? {
            let wrong =
                |why| CallError::Value { name: call.name.clone(), key: key.to_owned(), why };
            match key.as_str() {
                "limit" => {
                    let Length(limit) = call.value(key, value)?;
                    if limit == Span::ZERO || limit > LONGEST_LIMIT {
                        let why = format!("'{value}': write at least 1ms and at most 1d");
                        return Err(wrong(why));
                    }
                    self.limit = limit;
                }
                "wants" => {
                    // Commas separate parameters.
                    let wants: Freedoms = call.value(key, &value.replace('+', ","))?;
                    if !(wants - POSSIBLE).is_empty() {
                        let why = format!(
                            "'{value}': a program cannot use {}; write none, or some of {} with '+' between them",
                            joined(wants - POSSIBLE),
                            joined(POSSIBLE)
                        );
                        return Err(wrong(why));
                    }
                    self.wants = wants;
                }
                _ => self.believes = call.value(key, value)?,
            }
        }
        Ok(self)
    }

    /// The program, and the parameters that differ from the usual ones.
    pub(in crate::policy) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![self.command.to_owned()];
        // The command was checked when it was first read.
        if let Ok(usual) = ExternalSpec::new(self.command) {
            if self.limit != usual.limit {
                arguments.push(format!("limit={}", Length(self.limit)));
            }
            if self.wants != usual.wants {
                arguments.push(format!("wants={}", joined(self.wants)));
            }
            if self.believes != usual.believes {
                arguments.push(format!("believes={}", self.believes));
            }
        }
        arguments
    }

    /// Whether the program may change jobs that run.
    pub(super) fn adjusts(&self) -> bool {
        self.wants.has(Freedom::Recaps) || self.wants.has(Freedom::Resizes)
    }
}

/// As in a parameter, where commas have another meaning.
fn joined(freedoms: Freedoms) -> String {
    freedoms.to_string().replace(',', "+")
}

/// Whether each parenthesis has its other half, so that the text can stand in a list of policies.
fn has_pairs(text: &str) -> bool {
    let mut open = 0;
    for sign in text.chars() {
        match sign {
            '(' => open += 1,
            ')' if open == 0 => return false,
            ')' => open -= 1,
            _ => (),
        }
    }
    open == 0
}

/// Texts that are kept for good, each once.
struct Kept(Mutex<Texts>);

/// The texts, and their length together.
struct Texts {
    all: BTreeSet<&'static str>,
    bytes: usize,
}

static KEPT: Kept = Kept::new();

impl Kept {
    const fn new() -> Self {
        Kept(Mutex::new(Texts { all: BTreeSet::new(), bytes: 0 }))
    }

    /// The same text for as long as the process lives.
    fn keep(&self, text: &str) -> Result<&'static str, PolicyError> {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = texts.all.get(text) {
            return Ok(known);
        }
        if texts.bytes + text.len() > MOST_KEPT {
            return Err(PolicyError::TooMany { most: MOST_KEPT });
        }
        let new: &'static str = Box::leak(text.to_owned().into_boxed_str());
        texts.all.insert(new);
        texts.bytes += new.len();
        Ok(new)
    }

    #[cfg(test)]
    fn has(&self, text: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.contains(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Kept, MOST_KEPT};
    use crate::policy::{PolicyError, PolicySpec};

    /// A daemon reads what anybody on its machine sends.
    #[test]
    fn nothing_is_kept_of_what_a_daemon_refuses() {
        let refused = |text: &str| PolicySpec::for_daemon(text).unwrap_err();
        assert_eq!(refused("external(./said by a stranger)"), PolicyError::Simulated);
        assert_eq!(refused(" external (./said by a stranger, limit=3s)"), PolicyError::Simulated);
        assert!(!KEPT.has("./said by a stranger"));
        assert_eq!(PolicySpec::for_daemon("easy"), Ok(PolicySpec::EASY));
        // In a simulation its user says it.
        "external(./said by its user)".parse::<PolicySpec>().unwrap();
        assert!(KEPT.has("./said by its user"));
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let kept = Kept::new();
        let texts = ["a", "b"].map(|letter| letter.repeat(MOST_KEPT / 2));
        for text in &texts {
            assert_eq!(kept.keep(text), Ok(text.as_str()));
        }
        assert_eq!(kept.keep("c"), Err(PolicyError::TooMany { most: MOST_KEPT }));
        assert_eq!(kept.keep(&texts[0]), Ok(texts[0].as_str()), "what is known stays so");
    }

    #[test]
    fn texts_round_trip() {
        for text in [
            "external(./mine)",
            "external(python3 mine.py)",
            "external(python3 -u /a b/c=d.py)",
            "external(./mine, limit=200ms)",
            "external(./mine, limit=5min, wants=none, believes=rated)",
            "external(./mine, wants=caps+sizes+recaps+resizes+drops, believes=pass)",
            "external(./mine(1), believes=fitted-clock)",
        ] {
            let spec: PolicySpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
            assert_eq!(spec.to_string().parse(), Ok(spec));
            assert_eq!(spec.name(), "external");
            assert!(!spec.is_fixed(), "nobody knows what the program does next time");
        }
        let spelled: PolicySpec =
            " external (  ./mine   x , limit = 10s, wants=caps ) ".parse().unwrap();
        assert_eq!(spelled.to_string(), "external(./mine x)");
    }

    #[test]
    fn mistakes_are_named() {
        for (wrong, why) in [
            ("external", "the program is missing; write external(./mine)"),
            ("external()", "the program is missing; write external(./mine)"),
            ("external(limit=3s)", "it comes before the parameters"),
            ("external(./mine", "the closing ')' is missing"),
            ("external(./mine, limt=3s)", "did you mean 'limit'? it takes limit, wants, believes"),
            ("external(./mine, limit=0s)", "at least 1ms"),
            ("external(./mine, limit=2d)", "at most 1d"),
            ("external(./mine, limit=3)", "such as 500ms"),
            (
                "external(./mine, wants=nodes)",
                "a program cannot use nodes; write none, or some of caps+",
            ),
            ("external(./mine, wants=cap)", "did you mean 'caps'?"),
            (
                "external(./mine, believes=all)",
                "write rated, clock, fitted-clock, measured, regression or pass",
            ),
            ("external(./mine, limit=3s, limit=4s)", "'limit' twice"),
            ("external(./mine 'a b')", "put it into a script"),
            ("external(./mine, x)", "a parameter has no '=value'"),
        ] {
            let error = wrong.parse::<PolicySpec>().unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
