//! Tokens: how people and scripts prove to the API who they are.
//!
//! A token is a long random text that is shown once, when it is made. The daemon's state folder holds what is known
//! of it: a hash, from which it cannot be found again, the role, and the user in whose name it acts.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use busbar_trust::{Durability, TrustError, TrustedFolder};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// The file of tokens in the state folder.
const FILE: &str = "tokens.json";

/// The file that is locked while tokens are changed.
const LOCK: &str = "tokens.lock";

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
        found.ok_or_else(|| format!("'{text}' is not a role; write viewer, user or operator"))
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
    /// Its purpose.
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
    /// The file cannot be opened or written, or another user could have changed it.
    #[error(transparent)]
    Folder(#[from] TrustError),
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
    #[error("the system provides no random numbers: {0}")]
    Random(getrandom::Error),
}

/// The tokens in a state folder.
#[derive(Clone, Debug)]
pub struct Tokens {
    folder: TrustedFolder,
}

impl Tokens {
    /// The tokens in a state folder, which may have none yet.
    pub fn in_folder(state: TrustedFolder) -> Self {
        Tokens { folder: state }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }

    /// All tokens, in the order in which they were made.
    pub fn list(&self) -> Result<Vec<Record>, TokenError> {
        match self.folder.existing_file(FILE)? {
            Some(file) => self.read(file),
            None => Ok(Vec::new()),
        }
    }

    fn read(&self, mut file: File) -> Result<Vec<Record>, TokenError> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(self.failed("read"))?;
        let damaged = |source| TokenError::Damaged { path: self.path(), source };
        let contents: Contents = serde_json::from_slice(&bytes).map_err(damaged)?;
        match contents.version {
            VERSION => Ok(contents.tokens),
            version => Err(TokenError::Newer { path: self.path(), version }),
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
        let lock = self.folder.file(LOCK, OFlags::WRONLY)?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| self.failed("lock")(error.into()))?;
        let mut tokens = self.list()?;
        change(&mut tokens)?;
        let text = serde_json::to_vec_pretty(&Contents { version: VERSION, tokens });
        let text = text.map_err(|error| self.failed("write")(error.into()))?;
        Ok(self.folder.replace(FILE, &text, 0o600, Durability::Now)?)
    }

    fn failed(&self, what: &'static str) -> impl Fn(io::Error) -> TokenError + use<> {
        let path = self.path();
        move |source| TokenError::File { what, path: path.clone(), source }
    }
}

/// Finds out whose token a text is. It notices when tokens are made and revoked.
pub(crate) struct Verifier {
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
    pub(crate) fn new(tokens: Tokens) -> Self {
        Verifier { tokens, known: Mutex::default() }
    }

    /// The token with this text, if there is one and it is valid.
    pub(crate) fn verify(&self, text: &str) -> Result<Option<Record>, TokenError> {
        // Hashes are compared, not tokens: how long that takes tells nothing of a token.
        let found = self.known()?.get(&hex(&hash_of(text))).cloned();
        Ok(found.filter(|token| token.is_valid_at(now())))
    }

    fn known(&self) -> Result<Arc<HashMap<String, Record>>, TokenError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = self.tokens.folder.existing_file(FILE)? else { return Ok(Arc::default()) };
        let version = file.metadata().and_then(|found| Ok((found.modified()?, found.len()))).ok();
        if version.is_none() || known.version != version {
            let tokens = self.tokens.read(file)?.into_iter();
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
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn tokens_in(folder: &tempfile::TempDir) -> Tokens {
        Tokens::in_folder(crate::testing::state(folder))
    }

    fn new(role: Role, expires: Option<i64>) -> NewToken {
        NewToken { name: "test".to_owned(), role, user: 7, expires }
    }

    #[test]
    fn a_token_is_known_until_it_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens_in(&folder);
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
        let tokens = tokens_in(&folder);
        let (_, text) = tokens.create(new(Role::User, None)).unwrap();
        let file = folder.path().join(FILE);
        assert!(!fs::read_to_string(&file).unwrap().contains(&text[PREFIX.len()..]));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_token_is_valid_for_as_long_as_was_said() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens_in(&folder);
        let verifier = Verifier::new(tokens.clone());
        let (_, past) = tokens.create(new(Role::User, Some(now() - 1))).unwrap();
        let (_, future) = tokens.create(new(Role::User, Some(now() + 1000))).unwrap();
        assert_eq!(verifier.verify(&past).unwrap(), None);
        assert!(verifier.verify(&future).unwrap().is_some());
    }

    /// Whoever could have written the file would let themselves in.
    #[test]
    fn what_somebody_else_could_have_written_lets_nobody_in() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (tokens, others) = (tokens_in(&folder), tokens_in(&other));
        let verifier = Verifier::new(tokens.clone());
        let (_, text) = others.create(new(Role::Operator, None)).unwrap();
        let (file, forged) = (folder.path().join(FILE), other.path().join(FILE));
        let refused = || {
            for error in [verifier.verify(&text).unwrap_err(), tokens.list().unwrap_err()] {
                assert!(matches!(error, TokenError::Folder(_)), "{error}");
            }
            assert!(tokens.create(new(Role::User, None)).is_err());
        };
        symlink(&forged, &file).unwrap();
        refused();
        fs::remove_file(&file).unwrap();
        fs::hard_link(&forged, &file).unwrap();
        refused();
        fs::remove_file(&file).unwrap();
        fs::copy(&forged, &file).unwrap();
        let allow = |mode| fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        allow(0o666);
        refused();
        allow(0o600);
        if rustix::process::geteuid().is_root() {
            chown(&file, Some(65_533), None).unwrap();
            refused();
            chown(&file, Some(0), None).unwrap();
        }
        assert!(verifier.verify(&text).unwrap().is_some());
    }

    #[test]
    fn a_damaged_file_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens_in(&folder);
        let verifier = Verifier::new(tokens.clone());
        for damaged in ["", "[]", r#"{"version": 2, "tokens": []}"#] {
            fs::write(folder.path().join(FILE), damaged).unwrap();
            assert!(verifier.verify("busbar_x").is_err(), "{damaged}");
            assert!(tokens.create(new(Role::User, None)).is_err(), "{damaged}");
        }
    }
}
