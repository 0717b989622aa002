//! Tokens: how people and scripts prove to the API who they are.
//!
//! A token is a long random text that is shown once, when it is made. The daemon's state folder holds what is known
//! of it: a hash, from which it cannot be found again, the role, and the user in whose name it acts.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// The file of tokens in the state folder.
const FILE: &str = "tokens.json";

/// The version of the file's format.
const VERSION: u32 = 1;

/// What every token begins with, so that one that was published by accident is recognised.
const PREFIX: &str = "busbar_";

/// What the bearer of a token may do. A later role may do all that an earlier one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look, at what everybody may see.
    Viewer,
    /// Submit jobs and manage them, as the user of the token.
    User,
    /// Manage all jobs, set the budget and stop the daemon.
    Operator,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Viewer => "viewer",
            Role::User => "user",
            Role::Operator => "operator",
        })
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Role::Viewer, Role::User, Role::Operator];
        let found = known.into_iter().find(|role| role.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is no role; write viewer, user or operator"))
    }
}

/// What is kept of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// A short name, by which it is revoked.
    pub id: String,
    /// What it is for, in its maker's words.
    pub name: String,
    /// What its bearer may do.
    pub role: Role,
    /// The user in whose name its bearer acts.
    pub user: u32,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// Until when it is valid, in seconds since 1970; for ever if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// The SHA-256 hash of the token, in hexadecimal digits.
    hash: String,
}

impl Record {
    /// Whether the token is valid at a time, in seconds since 1970.
    pub fn is_valid_at(&self, now: i64) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

/// What a new token is to be.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// What it is for.
    pub name: String,
    /// What its bearer may do.
    pub role: Role,
    /// The user in whose name its bearer acts.
    pub user: u32,
    /// Until when it is valid, in seconds since 1970.
    pub expires: Option<i64>,
}

/// The file as it is written.
#[derive(Serialize, Deserialize)]
struct Contents {
    version: u32,
    tokens: Vec<Record>,
}

/// Why tokens cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be used.
    #[error("cannot {what} {}", path.display())]
    File {
        /// The operation, to be read after "cannot".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is damaged.
    #[error("{} does not hold tokens; remove it and make new ones", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error that caused it.
        source: serde_json::Error,
    },
    /// The file is of a newer program.
    #[error("{} is of version {version}, and this program knows version {VERSION}; update it", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// There is no such token.
    #[error("there is no token '{0}'; 'busbar token list' shows them")]
    Unknown(String),
    /// The system has no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// The tokens in a state folder.
#[derive(Clone, Debug)]
pub struct Tokens {
    path: PathBuf,
}

impl Tokens {
    /// The tokens in a state folder, which may have none yet.
    pub fn in_folder(state: &Path) -> Self {
        Tokens { path: state.join(FILE) }
    }

    /// All tokens, in the order in which they were made.
    pub fn list(&self) -> Result<Vec<Record>, TokenError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(self.failed("read")(source)),
        };
        let damaged = |source| TokenError::Damaged { path: self.path.clone(), source };
        let contents: Contents = serde_json::from_slice(&bytes).map_err(damaged)?;
        match contents.version {
            VERSION => Ok(contents.tokens),
            version => Err(TokenError::Newer { path: self.path.clone(), version }),
        }
    }

    /// Makes a token. Its text is shown now or never.
    pub fn create(&self, new: NewToken) -> Result<(Record, String), TokenError> {
        let mut random = [0; 36];
        getrandom::fill(&mut random).map_err(TokenError::Random)?;
        let (id, secret) = random.split_at(4);
        let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret));
        let NewToken { name, role, user, expires } = new;
        let (id, hash) = (hex(id), hex(&hash_of(&text)));
        let record = Record { id, name, role, user, created: now(), expires, hash };
        self.change(|tokens| {
            tokens.push(record.clone());
            Ok(())
        })?;
        Ok((record, text))
    }

    /// Revokes a token by its short name.
    pub fn revoke(&self, id: &str) -> Result<Record, TokenError> {
        let mut revoked = None;
        self.change(|tokens| {
            let place = tokens.iter().position(|token| token.id == id);
            let place = place.ok_or_else(|| TokenError::Unknown(id.to_owned()))?;
            revoked = Some(tokens.remove(place));
            Ok(())
        })?;
        revoked.ok_or_else(|| TokenError::Unknown(id.to_owned()))
    }

    /// Changes the file as a whole, so that a reader sees all of a change or nothing.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Record>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        let lock = self.open("tokens.lock")?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| self.failed("lock")(error.into()))?;
        let mut tokens = self.list()?;
        change(&mut tokens)?;
        let text = serde_json::to_vec_pretty(&Contents { version: VERSION, tokens });
        let text = text.map_err(|error| self.failed("write")(error.into()))?;
        let new = self.path.with_file_name("tokens.new");
        let written = self.open("tokens.new")?;
        written.set_len(0).map_err(self.failed("write"))?;
        (&written).write_all(&text).map_err(self.failed("write"))?;
        written.sync_all().map_err(self.failed("write"))?;
        fs::rename(&new, &self.path).map_err(self.failed("write"))
    }

    /// Opens a file beside that of the tokens, which only its owner may read.
    fn open(&self, name: &str) -> Result<File, TokenError> {
        let path = self.path.with_file_name(name);
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        file.map_err(|source| TokenError::File { what: "write", path, source })
    }

    fn failed(&self, what: &'static str) -> impl Fn(io::Error) -> TokenError + use<> {
        let path = self.path.clone();
        move |source| TokenError::File { what, path: path.clone(), source }
    }
}

/// Finds out whose token a text is. It notices when tokens are made and revoked.
pub struct Verifier {
    tokens: Tokens,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// When the file was written, and its size.
    version: Option<(SystemTime, u64)>,
    by_hash: Arc<HashMap<String, Record>>,
}

impl Verifier {
    /// A verifier of the tokens in a state folder.
    pub fn new(tokens: Tokens) -> Self {
        Verifier { tokens, known: Mutex::default() }
    }

    /// The token with this text, if there is one and it is valid.
    pub fn verify(&self, text: &str) -> Result<Option<Record>, TokenError> {
        // Hashes are compared, not tokens: how long that takes tells nothing of a token.
        let found = self.known()?.get(&hex(&hash_of(text))).cloned();
        Ok(found.filter(|token| token.is_valid_at(now())))
    }

    fn known(&self) -> Result<Arc<HashMap<String, Record>>, TokenError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let version = fs::metadata(&self.tokens.path);
        let version = version.and_then(|found| Ok((found.modified()?, found.len()))).ok();
        if version.is_none() || known.version != version {
            let tokens = self.tokens.list()?.into_iter();
            known.by_hash = Arc::new(tokens.map(|token| (token.hash.clone(), token)).collect());
            known.version = version;
        }
        Ok(Arc::clone(&known.by_hash))
    }
}

fn hash_of(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The time by the wall clock, in seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn new(role: Role, expires: Option<i64>) -> NewToken {
        NewToken { name: "test".to_owned(), role, user: 7, expires }
    }

    #[test]
    fn a_token_is_known_until_it_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::in_folder(folder.path());
        let verifier = Verifier::new(tokens.clone());
        assert_eq!(verifier.verify("busbar_x").unwrap(), None);
        let (record, text) = tokens.create(new(Role::Operator, None)).unwrap();
        let (other, _) = tokens.create(new(Role::Viewer, None)).unwrap();
        assert_eq!(verifier.verify(&text).unwrap(), Some(record.clone()));
        assert_eq!(verifier.verify(&text[1..]).unwrap(), None);
        assert_eq!(tokens.revoke(&record.id).unwrap(), record);
        assert_eq!(verifier.verify(&text).unwrap(), None);
        assert_eq!(tokens.list().unwrap(), [other]);
        assert!(matches!(tokens.revoke(&record.id), Err(TokenError::Unknown(_))));
    }

    #[test]
    fn the_file_holds_no_token_and_is_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::in_folder(folder.path());
        let (_, text) = tokens.create(new(Role::User, None)).unwrap();
        let file = folder.path().join(FILE);
        assert!(!fs::read_to_string(&file).unwrap().contains(&text[PREFIX.len()..]));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_token_is_valid_for_as_long_as_was_said() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::in_folder(folder.path());
        let verifier = Verifier::new(tokens.clone());
        let (_, past) = tokens.create(new(Role::User, Some(now() - 1))).unwrap();
        let (_, future) = tokens.create(new(Role::User, Some(now() + 1000))).unwrap();
        assert_eq!(verifier.verify(&past).unwrap(), None);
        assert!(verifier.verify(&future).unwrap().is_some());
    }

    #[test]
    fn a_damaged_file_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::in_folder(folder.path());
        let verifier = Verifier::new(tokens.clone());
        for damaged in ["", "[]", r#"{"version": 2, "tokens": []}"#] {
            fs::write(folder.path().join(FILE), damaged).unwrap();
            assert!(verifier.verify("busbar_x").is_err(), "{damaged}");
            assert!(tokens.create(new(Role::User, None)).is_err(), "{damaged}");
        }
    }
}
