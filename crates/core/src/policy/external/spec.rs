//! The parameters of an external policy, as text that round-trips: `external(python3 mine.py, limit=5s)`.

use std::sync::Arc;

use crate::call::{Argument, Call, CallError};
use crate::freedom::{Freedom, Freedoms};
use crate::policy::external::External;
use crate::policy::kind::with_parameters;
use crate::policy::{BuildContext, Parameter, Policy, PolicyError, PolicyKind, Published};
use crate::units::{Length, Span};

/// The name before the parentheses.
const NAME: &str = "external";

/// What a program can be told and can decide. The protocol has no words for single nodes, and nodes are switched
/// off by a rule of the simulation, not by policies.
const POSSIBLE: Freedoms = Freedoms::of(&[
    Freedom::Caps,
    Freedom::Sizes,
    Freedom::Recaps,
    Freedom::Resizes,
    Freedom::Drops,
]);

/// The longest time limit: whoever needs longer for one answer does not need a limit.
const LONGEST_LIMIT: Span = Span::from_secs(24 * 3600);

/// An external policy with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalSpec {
    /// The program and its arguments, with blanks between them.
    pub command: Arc<str>,
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
    /// If the command is empty, or cannot be written as the text of a policy.
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
        Ok(ExternalSpec::usually(&words.join(" ")))
    }

    /// A place for one whose program is still to be named.
    pub(in crate::policy) fn without_program() -> Self {
        ExternalSpec::usually("PROGRAM")
    }

    fn usually(command: &str) -> Self {
        ExternalSpec {
            command: command.into(),
            limit: Span::from_secs(10),
            wants: Freedoms::of(&[Freedom::Caps]),
            believes: Published::Clock,
        }
    }

    fn set_limit(&mut self, written: &Argument<'_>) -> Result<(), CallError> {
        let Length(limit) = written.value()?;
        if limit == Span::ZERO || limit > LONGEST_LIMIT {
            let why = format!("'{}': write at least 1ms and at most 1d", written.text);
            return Err(written.wrong(why));
        }
        self.limit = limit;
        Ok(())
    }

    fn set_wants(&mut self, written: &Argument<'_>) -> Result<(), CallError> {
        // Commas separate parameters.
        let commas = written.text.replace('+', ",");
        let wants: Freedoms = written.with_text(&commas).value()?;
        if !(wants - POSSIBLE).is_empty() {
            return Err(written.wrong(format!(
                "'{}': a program cannot use {}; write none, or some of {} with '+' between them",
                written.text,
                joined(wants - POSSIBLE),
                joined(POSSIBLE)
            )));
        }
        self.wants = wants;
        Ok(())
    }

    /// Whether the program may change jobs that run.
    pub(super) fn adjusts(&self) -> bool {
        self.wants.has(Freedom::Recaps) || self.wants.has(Freedom::Resizes)
    }
}

impl PolicyKind for ExternalSpec {
    fn name(&self) -> &str {
        NAME
    }

    fn about(&self) -> &str {
        "a program of yours, in any language; in simulations only"
    }

    fn usual(&self) -> Self {
        ExternalSpec::usually(&self.command)
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        vec![
            Parameter::new("limit", |spec: &Self| Length(spec.limit).to_string(), Self::set_limit),
            Parameter::new("wants", |spec| joined(spec.wants), Self::set_wants),
            Parameter::of("believes", |spec| &mut spec.believes),
        ]
    }

    fn operand(&self) -> Option<&str> {
        Some(&self.command)
    }

    /// The program is not of the form `key=value`, as parameters are.
    fn read(&self, text: &str) -> Result<Self, PolicyError> {
        let text = text.trim();
        let (_, rest) = text.split_once('(').unwrap_or((text, ")"));
        let inside = rest.strip_suffix(')').ok_or_else(|| {
            let why = "the closing ')' is missing";
            PolicyError::Call(CallError::Form { text: text.to_owned(), why })
        })?;
        let items = Call::split_list(inside);
        let (command, parameters) = items.split_first().unwrap_or((&"", &[]));
        let names = self.parameters();
        let is_parameter = |text: &str| {
            let key = text.split_once('=').map(|(key, _)| key.trim());
            key.is_some_and(|key| names.iter().any(|parameter| parameter.name == key))
        };
        if is_parameter(command) {
            let why = "the program is missing; it comes before the parameters";
            return Err(PolicyError::Program { text: inside.to_owned(), why });
        }
        let spec = ExternalSpec::new(command)?;
        let call: Call =
            format!("{NAME}({})", parameters.join(",")).parse().map_err(PolicyError::Call)?;
        with_parameters(spec, &call).map_err(PolicyError::Call)
    }

    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        Box::new(External::new(self.clone(), context))
    }

    fn wants(&self) -> Freedoms {
        self.wants
    }

    fn believes(&self, _: Freedoms) -> Published {
        self.believes
    }

    /// The text names a file, and who knows what is in it the next time.
    fn is_fixed(&self) -> bool {
        false
    }

    fn is_for_simulations(&self) -> bool {
        true
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

#[cfg(test)]
mod tests {
    use crate::policy::{PolicyError, PolicySpec};

    /// A daemon reads what anybody on its machine sends.
    #[test]
    fn a_daemon_refuses_it() {
        let refused = |text: &str| PolicySpec::for_daemon(text).unwrap_err();
        assert_eq!(refused("external(./said by a stranger)"), PolicyError::Simulated);
        assert_eq!(refused(" external (./said by a stranger, limit=3s)"), PolicyError::Simulated);
        assert_eq!(PolicySpec::for_daemon("easy"), Ok(PolicySpec::easy()));
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
            assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
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
