//! Results kept on disk, found again by what they were made of.
//!
//! The name of an entry is a hash over everything that a result depends on: the program itself, the
//! jobs, the machine, the models, the policy, the budget, the seed. So an experiment that was
//! interrupted goes on where it stopped, and no entry has to be removed because something changed.
//! An entry is written beside its place and moved there, and it begins with a hash of its content and
//! its name: one that is damaged, or another's, is not trusted but worked out again. So any number of processes may share a
//! folder, also over a network: whoever comes last replaces an entry by an equal one, and nobody sees a part of one.

use std::fmt::Write as _;
use std::fs;
use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A folder of results.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    program: String,
}

/// What a result depends on, as a hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(String);

impl Cache {
    /// The results in a folder that were made by this program: results of another one, an older
    /// version say, are not found.
    pub(crate) fn new(folder: PathBuf, program: impl Into<String>) -> Self {
        Cache { folder, program: program.into() }
    }

    /// The name of a result that depends on all this, and on the program.
    pub(crate) fn key(&self, parts: &[&dyn Hashed]) -> Key {
        let mut content = Content::default();
        content.add(&[&self.program]);
        content.add(parts);
        Key(content.hex())
    }

    /// The result of this name, if it is there and whole.
    pub(crate) fn find<T: for<'a> Deserialize<'a>>(&self, key: &Key) -> Option<T> {
        let entry = fs::read_to_string(self.path(key)).ok()?;
        let (seal, content) = entry.split_once('\n')?;
        if seal != seal_of(key, content) {
            return None;
        }
        serde_json::from_str(content).ok()
    }

    /// Keeps a result.
    pub(crate) fn keep<T: Serialize>(&self, key: &Key, result: &T) -> io::Result<()> {
        // Others may write the same entry at the same time: threads, and programs on this machine or on another one that
        // shares the folder. A process number is not unique among machines, so the name is a random one.
        let path = self.path(key);
        let beside =
            path.with_extension(format!("{:016x}.unfinished", RandomState::new().hash_one(key)));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let content = serde_json::to_string(result)?;
        let written = fs::write(&beside, format!("{}\n{content}", seal_of(key, &content)))
            .and_then(|()| fs::rename(&beside, &path));
        if written.is_err() {
            // What is left of it helps nobody; that it cannot be removed changes nothing.
            let _ = fs::remove_file(&beside);
        }
        written
    }

    /// In a folder by the first letters, as a folder of very many files is slow to list.
    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(&key.0[..2]).join(format!("{}.json", key.0))
    }
}

/// A hash of an entry and of its name: under another name it is worth nothing.
fn seal_of(key: &Key, text: &str) -> String {
    let mut content = Content::default();
    content.add(&[&key.0, &text]);
    content.hex()
}

/// What can be a part of a key. Every type that can be hashed is.
pub(crate) trait Hashed {
    /// Adds the value to a key's content.
    fn hash_into(&self, content: &mut Content);
}

impl<T: Hash + ?Sized> Hashed for T {
    fn hash_into(&self, content: &mut Content) {
        self.hash(content);
    }
}

/// Content on its way to a hash. It takes whatever can be hashed, so that large lists need not be
/// written as text first.
#[derive(Default)]
pub(crate) struct Content(Sha256);

impl Content {
    /// Adds values, in their order.
    pub(crate) fn add(&mut self, parts: &[&dyn Hashed]) {
        parts.iter().for_each(|part| part.hash_into(self));
    }

    /// The hash of all that was added, in hexadecimal digits.
    pub(crate) fn hex(self) -> String {
        self.0.finalize().iter().fold(String::new(), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl Hasher for Content {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.0.clone().finalize();
        u64::from_le_bytes(std::array::from_fn(|place| hash[place]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the standard, FIPS 180-4: the hash of nothing.
    #[test]
    fn the_hash_is_the_standard_one() {
        assert_eq!(
            Content::default().hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn names_differ_where_content_does() {
        let cache = |program| Cache::new("nowhere".into(), program);
        let key = cache("1").key(&[&"ab", &1]);
        assert_eq!(key, cache("1").key(&[&"ab", &1]));
        assert_ne!(key, cache("2").key(&[&"ab", &1]));
        assert_ne!(key, cache("1").key(&[&"a", &"b1"]));
        assert_ne!(key, cache("1").key(&[&1, &"ab"]));
        let list = |items: &[u32]| {
            let mut content = Content::default();
            content.add(&[&items]);
            content.hex()
        };
        assert_ne!(list(&[1, 2]), list(&[2, 1]));
        assert_eq!(list(&[1, 2]), list(&[1, 2]));
    }

    /// Many who write and read the same entries at the same time, as several shards do that share a folder.
    #[test]
    fn many_may_write_the_same_entries_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        let long: Vec<u64> = (0..20_000).collect();
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    // Each is a program of its own, as far as the cache can tell.
                    let cache = Cache::new(folder.path().to_owned(), "1");
                    for number in 0..20u32 {
                        let key = cache.key(&[&number]);
                        let found: Option<Vec<u64>> = cache.find(&key);
                        assert!(found.is_none_or(|found| found == long), "a part of an entry");
                        cache.keep(&key, &long).unwrap();
                        assert_eq!(cache.find::<Vec<u64>>(&key).as_ref(), Some(&long));
                    }
                });
            }
        });
        let files = fs::read_dir(folder.path()).unwrap().flat_map(|part| {
            fs::read_dir(part.unwrap().path()).unwrap().map(|file| file.unwrap().file_name())
        });
        let names: Vec<_> = files.collect();
        assert_eq!(names.len(), 20, "nothing is left beside them: {names:?}");
    }

    #[test]
    fn what_was_kept_is_found_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), "1");
        let key = cache.key(&[&"a"]);
        assert_eq!(cache.find::<f64>(&key), None);
        // A third has no end in binary: it must come back to the last bit.
        let result = vec![1.0 / 3.0, 1e300, 0.1 + 0.2];
        cache.keep(&key, &result).unwrap();
        assert_eq!(cache.find(&key), Some(result.clone()));
        let files: Vec<_> = fs::read_dir(cache.path(&key).parent().unwrap()).unwrap().collect();
        assert_eq!(files.len(), 1, "nothing is left beside it");
        let other = cache.key(&[&"b"]);
        fs::create_dir_all(cache.path(&other).parent().unwrap()).unwrap();
        fs::copy(cache.path(&key), cache.path(&other)).unwrap();
        assert_eq!(cache.find::<Vec<f64>>(&other), None, "an entry under another name");

        let whole = fs::read_to_string(cache.path(&key)).unwrap();
        let cut = &whole[..whole.len() - 1];
        let changed = whole.replacen("0.3", "0.4", 1);
        for damaged in ["", "no seal", cut, &changed] {
            assert_ne!(damaged, whole);
            fs::write(cache.path(&key), damaged).unwrap();
            assert_eq!(cache.find::<Vec<f64>>(&key), None, "{damaged}");
        }
        cache.keep(&key, &result).unwrap();
        assert_eq!(cache.find(&key), Some(result));
    }
}
