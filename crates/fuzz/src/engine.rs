//! Damages examples, runs a target with them, and keeps what was answered in a new way.

use std::any::Any;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::time::{ClockId, clock_gettime};

/// What is fed to one parser, or to a few that read the same kind of text.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Examples to begin with.
    pub examples: fn() -> Vec<Vec<u8>>,
    /// Runs the parser, and says what came of it: any text, of which digits and names do not count.
    pub run: fn(&Place, &[u8]) -> String,
}

/// Where a target may put files.
pub struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        // In memory, where there is such a place: a file is written for each run.
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        Place(folder.expect("a folder for files can be made"))
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and returns its path.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a file can be written");
        path
    }
}

/// What came of many runs.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// How many runs there were.
    pub runs: u64,
    /// How many different answers there were.
    pub answers: usize,
    /// The longest time of a processor that a run took, in milliseconds, and its input.
    pub slowest: (u64, Vec<u8>),
    /// What went wrong first: why, and the input.
    pub fault: Option<(String, Vec<u8>)>,
}

/// A run that takes longer than this, in milliseconds of a processor, is a fault: inputs have at most [`LONGEST`] bytes.
const TOO_SLOW: u64 = 10_000;

/// How long inputs get.
const LONGEST: usize = 16 << 10;

/// How many inputs are kept beside the examples.
const MOST_KEPT: usize = 4000;

/// Runs a target as long as `goes_on` says so, which is asked with the number of runs so far. The same seed gives the same
/// inputs. `before` sees each input before it is run.
pub fn run(
    target: &Target,
    seed: u64,
    mut goes_on: impl FnMut(u64) -> bool,
    mut before: impl FnMut(&[u8]),
) -> Found {
    let place = Place::new();
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut kept: Vec<Vec<u8>> = (target.examples)();
    assert!(!kept.is_empty(), "{} has no example", target.name);
    kept.iter_mut().for_each(|example| example.truncate(LONGEST));
    let words = words(&kept);
    let (mut found, mut answers) = (Found::default(), HashSet::new());
    let examples = kept.len();
    // First the examples as they are.
    let mut next = 0;
    while goes_on(found.runs) {
        let input = match kept.get(next).filter(|_| next < examples) {
            Some(example) => example.clone(),
            None => damaged(&kept, &words, &mut random),
        };
        next += 1;
        before(&input);
        let begun = own_time();
        let answer = catch_unwind(AssertUnwindSafe(|| (target.run)(&place, &input)));
        let took = own_time() - begun;
        found.runs += 1;
        if took > found.slowest.0 {
            found.slowest = (took, input.clone());
        }
        let fault = match &answer {
            Err(panic) => Some(format!("it panics: {}", message(panic.as_ref()))),
            Ok(_) if took > TOO_SLOW => Some(format!("it takes {took} ms")),
            Ok(_) => None,
        };
        if let Some(why) = fault {
            found.fault = Some((why, input));
            break;
        }
        let is_new = answer.is_ok_and(|answer| answers.insert(shape(&answer)));
        if is_new && next > examples {
            match kept.len() < examples + MOST_KEPT {
                true => kept.push(input),
                false => {
                    let place = random.random_range(examples..kept.len());
                    kept[place] = input;
                }
            }
        }
    }
    found.answers = answers.len();
    found
}

/// The time of a processor that this thread has had, in milliseconds.
fn own_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// What is the same of answers that differ in numbers, and in what they quote.
fn shape(answer: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut is_quoted = false;
    for byte in answer.bytes().take(400) {
        is_quoted ^= byte == b'\'';
        if !is_quoted && !byte.is_ascii_digit() {
            byte.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// The words of the examples.
fn words(examples: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-%".contains(byte);
    let all = examples.iter().flat_map(|example| example.split(move |byte| !is_part(byte)));
    let mut words: Vec<Vec<u8>> =
        all.filter(|word| (1..40).contains(&word.len())).map(<[u8]>::to_vec).collect();
    words.sort();
    words.dedup();
    words
}

/// What parsers may stumble over.
const PITFALLS: &[&[u8]] = &[
    b"0",
    b"-1",
    b"1",
    b"255",
    b"256",
    b"65535",
    b"65536",
    b"2147483647",
    b"2147483648",
    b"4294967295",
    b"4294967296",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"340282366920938463463374607431768211456",
    b"1e308",
    b"1e309",
    b"-1e309",
    b"NaN",
    b"inf",
    b"-0.0",
    b"0.1",
    b"1e-320",
    b".",
    b"",
    b"\"",
    b"'",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"[",
    b"]",
    b"{",
    b"}",
    b"(",
    b")",
    b",",
    b";",
    b":",
    b"=",
    b"|",
    b"#",
    b"..",
    b"-",
    b"+",
    b"%",
    b"\t",
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"\0",
    b"\x7f",
    b"\xff",
    b"\xc3\x28",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\xc2\xa0",
    b"null",
    b"true",
    b"1970-01-01",
    b"9999-12-31",
    b"-9999-01-01",
    b"23:59:60",
    b"24:00",
    b"Europe/Stockholm",
    b"[[[[[[[[[[[[[[[[",
    b"{\"a\":{\"a\":{\"a\":{\"a\":",
];

/// One of the inputs, damaged in a few ways.
fn damaged(kept: &[Vec<u8>], words: &[Vec<u8>], random: &mut impl Rng) -> Vec<u8> {
    let mut input = kept[random.random_range(0..kept.len())].clone();
    for _ in 0..random.random_range(1..=6) {
        damage(&mut input, kept, words, random);
    }
    input.truncate(LONGEST);
    input
}

/// A part of something: where it begins and ends.
fn part(length: usize, random: &mut impl Rng) -> (usize, usize) {
    let begin = random.random_range(0..=length);
    let most = (length - begin).min(1 << random.random_range(0..12));
    (begin, begin + random.random_range(0..=most))
}

fn damage(input: &mut Vec<u8>, kept: &[Vec<u8>], words: &[Vec<u8>], random: &mut impl Rng) {
    let (begin, end) = part(input.len(), random);
    match random.random_range(0..12) {
        0 if !input.is_empty() => {
            let place = random.random_range(0..input.len());
            input[place] ^= 1 << random.random_range(0..8);
        }
        1 if !input.is_empty() => {
            let place = random.random_range(0..input.len());
            input[place] = random.random_range(0..=255);
        }
        2 => _ = input.drain(begin..end),
        3 => {
            let again = input[begin..end].to_vec();
            input.splice(begin..begin, again);
        }
        4 => {
            let pitfall = PITFALLS[random.random_range(0..PITFALLS.len())];
            input.splice(begin..begin, pitfall.iter().copied());
        }
        5 | 6 => replace_number(input, random),
        7 | 8 if !words.is_empty() => {
            let word = &words[random.random_range(0..words.len())];
            let (begin, end) = word_at(input, begin);
            input.splice(begin..end, word.iter().copied());
        }
        9 => {
            let other = &kept[random.random_range(0..kept.len())];
            let (from, until) = part(other.len(), random);
            input.splice(begin..end, other[from..until].iter().copied());
        }
        10 => swap_lines(input, random),
        _ => input.truncate(begin),
    }
    // Lines that are doubled again and again.
    input.truncate(4 * LONGEST);
}

/// The word at a place.
fn word_at(input: &[u8], place: usize) -> (usize, usize) {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-%".contains(byte);
    let begin = input[..place].iter().rposition(|byte| !is_part(byte)).map_or(0, |last| last + 1);
    let end = input[place..]
        .iter()
        .position(|byte| !is_part(byte))
        .map_or(input.len(), |length| place + length);
    (begin, end)
}

/// Another number in place of one.
fn replace_number(input: &mut Vec<u8>, random: &mut impl Rng) {
    let place = random.random_range(0..=input.len());
    let Some(begin) = input[place..].iter().position(u8::is_ascii_digit).map(|first| place + first)
    else {
        return;
    };
    let is_part = |byte: &u8| byte.is_ascii_digit();
    let end = input[begin..]
        .iter()
        .position(|byte| !is_part(byte))
        .map_or(input.len(), |length| begin + length);
    let number: Vec<u8> = match random.random_range(0..3) {
        0 => PITFALLS[random.random_range(0..20)].to_vec(),
        1 => random.random_range(0..1000_u32).to_string().into_bytes(),
        _ => (random.random::<u64>() >> random.random_range(0..64)).to_string().into_bytes(),
    };
    input.splice(begin..end, number);
}

fn swap_lines(input: &mut Vec<u8>, random: &mut impl Rng) {
    let mut lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.len() > 1 {
        let (one, other) =
            (random.random_range(0..lines.len()), random.random_range(0..lines.len()));
        lines.swap(one, other);
        *input = lines.concat();
    }
}

/// What a target makes of one input, which may panic.
pub fn once(target: &Target, input: &[u8]) -> String {
    (target.run)(&Place::new(), input)
}
