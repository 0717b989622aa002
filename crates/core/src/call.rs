//! Calls as text: `name(key=value, key=value)`, the way policies and generators are named.

use std::fmt::Display;
use std::str::FromStr;

use crate::spelling::hint;

/// A name with parameters, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What stands before the parenthesis.
    pub name: String,
    /// Keys and values in the order written.
    pub arguments: Vec<(String, String)>,
}

/// One argument of a call, to be read.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    call: &'a Call,
    key: &'a str,
    /// The value as it was written.
    pub(crate) text: &'a str,
}

impl Argument<'_> {
    /// Its key.
    pub(crate) fn key(&self) -> &str {
        self.key
    }

    /// The same with another value.
    pub(crate) fn with_text<'b>(&'b self, text: &'b str) -> Argument<'b> {
        Argument { text, ..*self }
    }

    /// Its value; see [`Call::value`].
    pub fn value<T: FromStr<Err: Display>>(&self) -> Result<T, CallError> {
        self.call.value(self.key, self.text)
    }

    /// Its value as a number; see [`Call::number`].
    pub fn number<T: FromStr<Err: Display>>(&self) -> Result<T, CallError> {
        self.call.number(self.key, self.text)
    }

    /// Its value as a switch; see [`Call::switch`].
    pub(crate) fn switch(&self) -> Result<bool, CallError> {
        self.call.switch(self.key, self.text)
    }

    /// That it cannot be used, and why.
    pub fn wrong(&self, why: String) -> CallError {
        self.call.wrong(self.key, why)
    }
}

/// Why text is not a call, or not one with these parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The text does not have the form of a call.
    #[error("'{text}': {why}; write name or name(key=value, key=value)")]
    Form {
        /// The text as written.
        text: String,
        /// The reason.
        why: &'static str,
    },
    /// There is no such parameter.
    #[error("'{name}' has no parameter '{key}'{hint} it takes {valid}")]
    UnknownParameter {
        /// The name before the parentheses.
        name: String,
        /// The text as written.
        key: String,
        /// What may have been meant, in words.
        hint: String,
        /// What could have been.
        valid: String,
    },
    /// A parameter is given twice.
    #[error("'{name}' is given '{key}' twice; keep one")]
    Repeated {
        /// The name before the parentheses.
        name: String,
        /// The parameter.
        key: String,
    },
    /// A value cannot be used.
    #[error("'{name}', parameter '{key}': {why}")]
    Value {
        /// The name before the parentheses.
        name: String,
        /// The parameter.
        key: String,
        /// What is wrong with its value.
        why: String,
    },
}

impl FromStr for Call {
    type Err = CallError;

    fn from_str(text: &str) -> Result<Self, CallError> {
        let text = text.trim();
        let wrong = |why| CallError::Form { text: text.to_owned(), why };
        let (name, arguments) = match text.split_once('(') {
            None => (text, ""),
            Some((name, rest)) => {
                let inside = rest.strip_suffix(')').ok_or(wrong("the closing ')' is missing"))?;
                (name.trim_end(), inside)
            }
        };
        if name.is_empty() {
            return Err(wrong("the name is missing"));
        }
        let mut call = Call { name: name.to_owned(), arguments: Vec::new() };
        if !arguments.trim().is_empty() {
            for argument in arguments.split(',') {
                let (key, value) =
                    argument.split_once('=').ok_or(wrong("a parameter has no '=value'"))?;
                let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
                if call.arguments.iter().any(|(known, _)| *known == key) {
                    return Err(CallError::Repeated { name: call.name, key });
                }
                call.arguments.push((key, value));
            }
        }
        Ok(call)
    }
}

impl Call {
    /// The arguments, if all of them are among the `valid` parameters.
    pub fn parameters(&self, valid: &[&str]) -> Result<&[(String, String)], CallError> {
        match self.arguments.iter().find(|(key, _)| !valid.contains(&key.as_str())) {
            None => Ok(&self.arguments),
            Some((key, _)) => Err(CallError::UnknownParameter {
                name: self.name.clone(),
                key: key.clone(),
                hint: hint(key, valid.iter().copied()),
                valid: if valid.is_empty() { "none".to_owned() } else { valid.join(", ") },
            }),
        }
    }

    /// One of the arguments, to be read.
    pub(crate) fn argument<'a>(&'a self, key: &'a str, text: &'a str) -> Argument<'a> {
        Argument { call: self, key, text }
    }

    /// That a value cannot be used, and why.
    pub fn wrong(&self, key: &str, why: String) -> CallError {
        CallError::Value { name: self.name.clone(), key: key.to_owned(), why }
    }

    /// The items of a list: what stands between commas, but for those within parentheses.
    pub fn split_list(text: &str) -> Vec<&str> {
        let mut depth = 0i32;
        let items = text.split(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth <= 0
        });
        items.map(str::trim).collect()
    }

    /// Reads a number written in plain digits, or says what is wrong with it.
    pub fn number<T: FromStr<Err: Display>>(&self, key: &str, value: &str) -> Result<T, CallError> {
        self.value(key, value).map_err(|error| match error {
            CallError::Value { name, key, why } => {
                CallError::Value { name, key, why: why + "; write a number in plain digits" }
            }
            other => other,
        })
    }

    /// Reads one value, or says what is wrong with it.
    pub fn value<T: FromStr<Err: Display>>(&self, key: &str, value: &str) -> Result<T, CallError> {
        value.parse().map_err(|error: T::Err| CallError::Value {
            name: self.name.clone(),
            key: key.to_owned(),
            why: format!("'{value}': {error}"),
        })
    }

    /// Reads a switch, which is on or off.
    pub(crate) fn switch(&self, key: &str, value: &str) -> Result<bool, CallError> {
        match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(CallError::Value {
                name: self.name.clone(),
                key: key.to_owned(),
                why: format!("'{value}': write on or off"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read() {
        let call: Call = " lublin( jobs=100 , load = 0.85 ) ".parse().unwrap();
        assert_eq!(call.name, "lublin");
        let owned = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(call.arguments, [owned("jobs", "100"), owned("load", "0.85")]);
        assert_eq!(call.value::<u32>("jobs", "100"), Ok(100));
        assert_eq!("easy".parse::<Call>().unwrap().arguments, []);
    }

    #[test]
    fn lists_are_split_outside_of_calls() {
        let items = Call::split_list("easy, pb-guided(lower=1%, upper=2%),parm()");
        assert_eq!(items, ["easy", "pb-guided(lower=1%, upper=2%)", "parm()"]);
        assert_eq!(Call::split_list("60%"), ["60%"]);
        assert_eq!(Call::split_list("a,,b"), ["a", "", "b"]);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| text.parse::<Call>().unwrap_err().to_string();
        assert!(error("a(b").contains("closing ')'"));
        assert!(error("(b=1)").contains("name is missing"));
        assert!(error("a(b)").contains("no '=value'"));
        assert!(error("a(b=1,b=2)").contains("'b' twice"));
        let call: Call = "a(b=x)".parse().unwrap();
        assert_eq!(
            call.value::<u32>("b", "x").unwrap_err().to_string(),
            "'a', parameter 'b': 'x': invalid digit found in string"
        );
        assert!(call.parameters(&["c", "d"]).unwrap_err().to_string().ends_with("it takes c, d"));
    }
}
