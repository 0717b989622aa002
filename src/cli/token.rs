//! `busbar token`: manages access to the web page and its API.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::live::words::local_time;
use super::{print, warn};
use crate::live::server::config::{Config, Length};
use crate::live::server::serve::state_folder;
use crate::live::server::users;
use crate::report::{Side, columns};
use crate::web::token::{NewToken, Record, Role, Tokens, now};

/// Make, list and revoke tokens for the web page and its API
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

/// Make a token, and print it: it is shown only once
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar token create --role operator --name control-room
  busbar token create --role user --user alice --expires 30d
  curl -H \"Authorization: Bearer $TOKEN\" -X PUT -H 'Content-Type: application/json' \\
       -d '{\"limit\": \"80%\"}' http://127.0.0.1:7411/api/v2/budget")]
pub(super) struct Create {
    /// Rights: viewer (read only), user (submit and manage jobs of --user), operator (everything)
    #[arg(long, value_name = "ROLE")]
    role: Role,

    /// Description of its purpose
    #[arg(long, value_name = "TEXT", default_value = "")]
    name: String,

    /// The user that it acts as, by name or number [default: you; required for the role user]
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Lifetime, such as 12h or 90d [default: until it is revoked]
    #[arg(long, value_name = "TIME")]
    expires: Option<Length>,

    #[command(flatten)]
    place: Place,
}

/// List the tokens, without their secret texts
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    place: Place,
}

/// Revoke a token immediately
#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// The token's id, as 'busbar token list' shows it
    id: String,

    #[command(flatten)]
    place: Place,
}

/// The daemon, and the form of the answer.
#[derive(Debug, Args)]
#[group(skip)]
struct Place {
    /// Configuration file of the daemon [default: see busbar config show]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The daemon's state folder [default: that of the configuration]
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Place {
    fn tokens(&self) -> anyhow::Result<Tokens> {
        let state = match &self.state {
            Some(state) => std::path::absolute(state).context("cannot use the state folder")?,
            None => Config::find(self.config.as_deref())?.state,
        };
        Ok(Tokens::in_folder(state_folder(&state)?))
    }
}

/// A token as it is listed.
#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    name: &'a str,
    role: Role,
    user: u32,
    /// Seconds since 1970, as below.
    #[serde(rename = "created_s")]
    created: i64,
    #[serde(rename = "expires_s")]
    expires: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

impl<'a> Shown<'a> {
    fn of(record: &'a Record, token: Option<&'a str>) -> Self {
        let Record { id, name, role, user, created, expires, .. } = record;
        Shown { id, name, role: *role, user: *user, created: *created, expires: *expires, token }
    }
}

pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Create(create) => make(create),
        Command::List(list) => show(list),
        Command::Revoke(revoke) => {
            let record = revoke.place.tokens()?.revoke(&revoke.id)?;
            match revoke.place.json {
                true => print_json(&Shown::of(&record, None)),
                false => print(&format!("revoked {} ({})\n", record.id, record.role)),
            }
        }
    }
}

fn make(create: &Create) -> anyhow::Result<()> {
    let user = match &create.user {
        None if create.role == Role::User => {
            bail!("a token with the role user needs --user NAME")
        }
        None => rustix::process::geteuid().as_raw(),
        Some(name) => {
            let number = name.parse().ok().or_else(|| users::number_of(name));
            let number = number.filter(|number| users::owner(*number).is_some());
            number.ok_or_else(|| anyhow!("--user {name}: there is no such user on this machine"))?
        }
    };
    if create.name.chars().any(char::is_control) {
        bail!("--name contains control characters; leave them out");
    }
    let expires = create.expires.map(|Length(span)| now() + (span.millis() / 1000) as i64);
    let new = NewToken { name: create.name.clone(), role: create.role, user, expires };
    let (record, token) = create.place.tokens()?.create(new)?;
    if create.place.json {
        return print_json(&Shown::of(&record, Some(&token)));
    }
    print(&format!("{token}\n"))?;
    warn(&format!("this is the only time that the token is shown; its id is {}", record.id));
    Ok(())
}

fn show(list: &List) -> anyhow::Result<()> {
    let records = list.place.tokens()?.list()?;
    if list.place.json {
        let shown: Vec<Shown<'_>> = records.iter().map(|record| Shown::of(record, None)).collect();
        return print_json(&shown);
    }
    if records.is_empty() {
        return print("there are no tokens; 'busbar token create' makes one\n");
    }
    let row = |record: &Record| {
        let user = users::name_of(record.user).unwrap_or_else(|| record.user.to_string());
        let until = match record.expires {
            None => "until revoked".to_owned(),
            Some(_) if !record.is_valid_at(now()) => "expired".to_owned(),
            Some(expires) => format!("until {}", local_time(expires)),
        };
        vec![record.id.clone(), record.role.to_string(), user, until, record.name.clone()]
    };
    let headings = ["ID", "ROLE", "USER", "VALID", "NAME"].map(|name| (name, Side::Left));
    print(&columns(&headings, &records.iter().map(row).collect::<Vec<_>>()))
}

fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string(value)? + "\n"))
}
