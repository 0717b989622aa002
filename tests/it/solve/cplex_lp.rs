//! A reader of CPLEX's LP format, as far as linear programs with integers need it. It was written from the
//! description of the format and knows nothing of what writes such files.

use std::collections::{BTreeMap, BTreeSet};

/// A linear program as a file of this format says it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Read {
    /// Whether the objective is to be as large as possible.
    pub(super) maximize: bool,
    /// The objective: what each variable counts.
    pub(super) objective: Terms,
    /// The constraints by their names, in the order of the file.
    pub(super) rows: Vec<(String, Row)>,
    /// The variables that are 0 or 1.
    pub(super) binary: BTreeSet<String>,
}

/// What variables are multiplied by.
pub(super) type Terms = BTreeMap<String, f64>;

/// A constraint.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) terms: Terms,
    /// One of `<`, `=` and `>`; the first and the last of them allow equality.
    pub(super) relation: char,
    pub(super) right: f64,
}

impl Read {
    /// All variables: those of the objective, of constraints and of lists.
    pub(super) fn variables(&self) -> BTreeSet<&String> {
        let rows = self.rows.iter().flat_map(|(_, row)| row.terms.keys());
        self.objective.keys().chain(rows).chain(&self.binary).collect()
    }
}

/// The parts of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Section {
    Maximize,
    Minimize,
    Constraints,
    Binary,
    End,
}

/// The words that begin a part; capital letters make no difference.
const HEADINGS: [(&str, Section); 14] = [
    ("maximize", Section::Maximize),
    ("maximum", Section::Maximize),
    ("max", Section::Maximize),
    ("minimize", Section::Minimize),
    ("minimum", Section::Minimize),
    ("min", Section::Minimize),
    ("subject to", Section::Constraints),
    ("such that", Section::Constraints),
    ("st", Section::Constraints),
    ("s.t.", Section::Constraints),
    ("binary", Section::Binary),
    ("binaries", Section::Binary),
    ("bin", Section::Binary),
    ("end", Section::End),
];

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Number(f64),
    Sign(f64),
    Colon,
    Relation(char),
}

/// Reads a file; what is not of the format is an error with the line.
pub(super) fn read(text: &str) -> Result<Read, String> {
    let mut sections: Vec<(Section, Vec<Token>)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: String| format!("line {}: {why}: {line:?}", number + 1);
        if line.len() > 560 {
            return Err(wrong("more than 560 characters".to_owned()));
        }
        // What follows a backslash is a comment.
        let said = line.split('\\').next().unwrap_or_default().trim();
        let heading = HEADINGS.iter().find(|(word, _)| said.eq_ignore_ascii_case(word));
        match (heading, sections.last_mut()) {
            _ if said.is_empty() => {}
            (_, Some((Section::End, _))) => return Err(wrong("after the end".to_owned())),
            (Some((_, section)), _) => sections.push((*section, Vec::new())),
            (None, None) => return Err(wrong("before the objective".to_owned())),
            (None, Some((_, tokens))) => tokens.extend(tokenize(said).map_err(wrong)?),
        }
    }
    let mut read = Read::default();
    let kinds: Vec<Section> = sections.iter().map(|(section, _)| *section).collect();
    if !matches!(kinds[..], [Section::Maximize | Section::Minimize, Section::Constraints, ..])
        || kinds.last() != Some(&Section::End)
    {
        return Err(format!("an objective, constraints and an end are needed, not {kinds:?}"));
    }
    for (section, tokens) in sections {
        match section {
            Section::Maximize | Section::Minimize => {
                read.maximize = section == Section::Maximize;
                let (_, rest) = named(&tokens);
                let (terms, rest) = terms(rest)?;
                if !rest.is_empty() {
                    return Err(format!("the objective goes on with {:?}", rest[0]));
                }
                read.objective = terms;
            }
            Section::Constraints => read.rows = rows(&tokens)?,
            Section::Binary => {
                for token in tokens {
                    let Token::Name(name) = token else {
                        return Err(format!("{token:?} in a list of names"));
                    };
                    read.binary.insert(name);
                }
            }
            Section::End => {}
        }
    }
    Ok(read)
}

fn tokenize(mut text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else { return Ok(tokens) };
        let (token, length) = match first {
            '+' => (Token::Sign(1.0), 1),
            '-' => (Token::Sign(-1.0), 1),
            ':' => (Token::Colon, 1),
            '<' | '>' | '=' => {
                let length = text.chars().take_while(|c| "<>=".contains(*c)).count();
                let strict = text[..length].chars().find(|c| *c != '=').unwrap_or('=');
                (Token::Relation(strict), length)
            }
            '0'..='9' | '.' => number(text)?,
            // A name must not begin with a digit, a period, or an e that could be an exponent.
            letter if is_of_names(letter) => {
                let length = text.chars().take_while(|c| is_of_names(*c)).count();
                let name = &text[..length];
                let exponent = name.strip_prefix(['e', 'E']).and_then(|rest| rest.chars().next());
                if exponent.is_some_and(|next| next.is_ascii_digit()) || length > 255 {
                    return Err(format!("'{name}' is no name"));
                }
                (Token::Name(name.to_owned()), length)
            }
            other => return Err(format!("'{other}' is of no name, number or sign")),
        };
        tokens.push(token);
        text = &text[length..];
    }
}

/// A number at the beginning of a text, and its length.
fn number(text: &str) -> Result<(Token, usize), String> {
    let digits = |from: usize| text[from..].chars().take_while(char::is_ascii_digit).count();
    let mut length = digits(0);
    if text[length..].starts_with('.') {
        length += 1 + digits(length + 1);
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        length += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    let value =
        text[..length].parse().map_err(|_| format!("'{}' is no number", &text[..length]))?;
    Ok((Token::Number(value), length))
}

fn is_of_names(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "!\"#$%&(),.;?@_`'{}~".contains(letter)
}

/// The name before a colon, and what follows.
fn named(tokens: &[Token]) -> (Option<&str>, &[Token]) {
    match tokens {
        [Token::Name(name), Token::Colon, rest @ ..] => (Some(name), rest),
        _ => (None, tokens),
    }
}

/// The terms up to the first token that belongs to none.
fn terms(mut tokens: &[Token]) -> Result<(Terms, &[Token]), String> {
    let mut terms = Terms::new();
    loop {
        let (factor, name, rest) = match tokens {
            [Token::Sign(sign), Token::Number(number), Token::Name(name), rest @ ..] => {
                (sign * number, name, rest)
            }
            [Token::Sign(sign), Token::Name(name), rest @ ..] => (*sign, name, rest),
            [Token::Number(number), Token::Name(name), rest @ ..] => (*number, name, rest),
            [Token::Name(name), rest @ ..] => (1.0, name, rest),
            rest => return Ok((terms, rest)),
        };
        if terms.insert(name.clone(), factor).is_some() {
            return Err(format!("{name} twice"));
        }
        tokens = rest;
    }
}

fn rows(mut tokens: &[Token]) -> Result<Vec<(String, Row)>, String> {
    let mut rows: Vec<(String, Row)> = Vec::new();
    while !tokens.is_empty() {
        let (name, rest) = named(tokens);
        let name = name.map_or_else(|| format!("c{}", rows.len() + 1), str::to_owned);
        let (terms, rest) = terms(rest)?;
        let (relation, right, rest) = match rest {
            [Token::Relation(relation), Token::Number(right), rest @ ..] => {
                (relation, *right, rest)
            }
            [Token::Relation(relation), Token::Sign(sign), Token::Number(right), rest @ ..] => {
                (relation, sign * right, rest)
            }
            _ => return Err(format!("{name} has no right side")),
        };
        if terms.is_empty() {
            return Err(format!("{name} has no variable"));
        }
        if rows.iter().any(|(known, _)| *known == name) {
            return Err(format!("two constraints are called {name}"));
        }
        rows.push((name, Row { terms, relation: *relation, right }));
        tokens = rest;
    }
    Ok(rows)
}

#[test]
fn reads_what_the_format_allows() {
    let text = "\\ a comment\nMAX\n 3 x + y \\ more\n - 2.5e1 z\nst\n low: -x + 0.5 y >= -4\n x + z =< 7\nBin\n x y\nEnd\n";
    let read = read(text).unwrap();
    let terms = |list: &[(&str, f64)]| -> Terms {
        list.iter().map(|(name, factor)| ((*name).to_owned(), *factor)).collect()
    };
    assert!(read.maximize);
    assert_eq!(read.objective, terms(&[("x", 3.0), ("y", 1.0), ("z", -25.0)]));
    let low = Row { terms: terms(&[("x", -1.0), ("y", 0.5)]), relation: '>', right: -4.0 };
    let second = Row { terms: terms(&[("x", 1.0), ("z", 1.0)]), relation: '<', right: 7.0 };
    assert_eq!(read.rows, [("low".to_owned(), low), ("c2".to_owned(), second)]);
    assert_eq!(read.binary.len(), 2);
}

#[test]
fn refuses_what_the_format_does_not_allow() {
    let wrong =
        ["", "Max\n x\nEnd", "Max\n x\nRunContext To\n x <= 1\nEnd", "Max\n x\nst\n <= 1\nEnd"];
    for text in wrong {
        assert!(read(text).is_err(), "{text:?}");
    }
}
