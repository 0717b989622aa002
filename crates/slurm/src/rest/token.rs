//! The tokens by which slurmrestd knows who asks: read from a file again and again, or made by `scontrol token`.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::http::Token;
use crate::calls::Act;
use crate::commands::Commands;
use crate::error::SlurmError;

/// How long a token that is made here is good. It is renewed when half of that is over.
const LIFESPAN: Duration = Duration::from_secs(3600);

/// So long before its end a token counts as worn out: what is asked with it takes time.
const MARGIN: u64 = 10;

/// Who asks, and where the proof comes from.
#[derive(Debug)]
pub struct Credentials {
    user: String,
    file: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// A token that was made here, and when.
    made: Option<(String, Instant)>,
    /// A token of the file that was refused.
    refused: Option<String>,
}

impl std::fmt::Debug for State {
    /// Shows no token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("State")
    }
}

impl Credentials {
    /// A user with a token in a file, which others renew. When it is worn out, or if there is no file, tokens are made by
    /// `scontrol token`, which root and SlurmUser may do.
    pub fn new(user: &str, file: Option<PathBuf>) -> Self {
        Credentials { user: user.to_owned(), file, state: Mutex::default() }
    }

    /// A token that is good now.
    pub(super) fn token(&self, commands: &Commands) -> Result<Token, SlurmError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let token = |token: String| Token { user: self.user.clone(), token };
        let of_file = self.file.as_ref().map(|file| {
            let text = fs::read_to_string(file);
            let program = file.display().to_string();
            text.map(|text| bare(&text)).map_err(|source| SlurmError::Program { program, source })
        });
        if let Some(Ok(text)) = &of_file
            && state.refused.as_ref() != Some(text)
            && ends(text).is_none_or(|end| now() + MARGIN < end)
        {
            return Ok(token(text.clone()));
        }
        if let Some((text, since)) = &state.made
            && since.elapsed() < LIFESPAN / 2
        {
            return Ok(token(text.clone()));
        }
        match commands.programs().make(&Act::Token(&self.user, LIFESPAN).call()) {
            Ok(printed) => {
                let text = bare(&printed);
                state.made = Some((text.clone(), Instant::now()));
                Ok(token(text))
            }
            Err(made) => match of_file {
                None => Err(made),
                Some(Err(unread)) => Err(unread),
                Some(Ok(_)) => Err(SlurmError::Denied {
                    what: format!("the token of {}", self.user),
                    text: format!("it has expired, and a new one cannot be made: {made}"),
                }),
            },
        }
    }

    /// A token was refused: it is not used again.
    pub(super) fn refused(&self, token: &Token) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.made {
            Some((made, _)) if *made == token.token => state.made = None,
            _ => state.refused = Some(token.token.clone()),
        }
    }
}

/// The token in what `scontrol token` prints, or in a file that holds it alone.
fn bare(text: &str) -> String {
    let text = text.trim();
    text.strip_prefix("SLURM_JWT=").unwrap_or(text).to_owned()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// When a token ends, in seconds since 1970, if it says so. Versions differ in how they refuse one that has ended, so it is
/// looked at before.
fn ends(token: &str) -> Option<u64> {
    let claims: serde_json::Value =
        serde_json::from_slice(&unpack(token.split('.').nth(1)?)?).ok()?;
    claims.get("exp")?.as_u64()
}

/// Bytes from base64 as URLs have it.
fn unpack(text: &str) -> Option<Vec<u8>> {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for sign in text.trim_end_matches('=').bytes() {
        let value = SIGNS.iter().position(|other| *other == sign)?;
        (bits, count) = (bits << 6 | value as u32, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::program::Programs;

    /// A token that ends at a time: `{"exp":TIME}` between dots, where the signs of three bytes are four.
    fn ending(at: u64) -> String {
        const SIGNS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let claims = format!("{{\"exp\":{at}}}");
        let mut text = String::new();
        for three in claims.as_bytes().chunks(3) {
            let bits =
                (0..3).fold(0u32, |bits, at| bits << 8 | u32::from(*three.get(at).unwrap_or(&0)));
            let signs =
                (0..=three.len()).map(|at| SIGNS[(bits >> (18 - 6 * at) & 63) as usize] as char);
            text.extend(signs);
        }
        format!("e30.{text}.x")
    }

    #[test]
    fn a_token_is_read_again_and_made_when_it_is_worn_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let scontrol = folder.path().join("scontrol");
        fs::write(&scontrol, "#!/bin/sh\necho \"SLURM_JWT=made-$2\"\n").unwrap();
        fs::set_permissions(&scontrol, fs::Permissions::from_mode(0o755)).unwrap();
        let commands = Commands::new(Programs::default().in_folder(folder.path()));
        let credentials = Credentials::new("ann", Some(file.clone()));
        let token = || credentials.token(&commands).unwrap().token;
        assert_eq!(token(), "made-username=ann", "there is no file yet");
        let good = ending(now() + 1000);
        fs::write(&file, format!("SLURM_JWT={good}\n")).unwrap();
        assert_eq!(token(), good);
        let another = ending(now() + 2000);
        fs::write(&file, &another).unwrap();
        assert_eq!(token(), another, "it was renewed by somebody else");
        fs::write(&file, ending(now() + 1)).unwrap();
        assert_eq!(token(), "made-username=ann", "it ends in a moment");
        fs::write(&file, "opaque").unwrap();
        assert_eq!(token(), "opaque");
        credentials.refused(&Token { user: "ann".to_owned(), token: "opaque".to_owned() });
        assert_eq!(token(), "made-username=ann");
        fs::write(&file, &good).unwrap();
        assert_eq!(token(), good);
        // Who may not make tokens needs a good one.
        fs::write(&file, ending(1)).unwrap();
        fs::write(&scontrol, "#!/bin/sh\necho 'permission denied' >&2\nexit 1\n").unwrap();
        let alone = Credentials::new("ann", Some(file));
        let error = alone.token(&commands).unwrap_err();
        assert!(
            error.to_string().contains("it has expired, and a new one cannot be made"),
            "{error}"
        );
        assert!(!format!("{alone:?}").contains("exp"));
    }
}
