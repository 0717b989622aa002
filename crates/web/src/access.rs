//! Authentication and authorisation of requests.
//!
//! Programs on this machine may read without a token if the site allows it; they see what every user may see.
//! Everything else needs a token. Browsers must call the page by a name of its own, so that no other page can make them
//! ask (DNS rebinding), and they send tokens only because the page tells them to, never by themselves as they do
//! with cookies.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

use axum::http::{HeaderMap, Uri, header};
use busbar_live::job::Requester;
use busbar_live::server::users;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::error::{ApiError, ErrorKind};
use crate::group::Group;
use crate::token::{Record, Role, Tokens, Verifier};

/// How many requests a second another machine may send, in the long run and at once.
const REQUESTS: (u32, u32) = (100, 400);

/// How many wrong tokens a minute another machine may try.
const WRONG_TOKENS: u32 = 20;

/// Who makes a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// As whom the daemon is asked, which is all that it goes by.
    pub who: Requester,
    /// What the token is called, if they have one.
    pub token: Option<String>,
    /// With whom they count as one.
    pub group: Group,
}

impl Caller {
    /// Somebody on this machine without a token, who sees what everybody may see.
    pub(crate) fn nobody() -> Self {
        let group = Group::at(Ipv4Addr::LOCALHOST.into());
        Caller { who: Requester::Anybody, token: None, group }
    }

    /// The bearer of a token. This is where a role becomes rights: a viewer is nobody in particular, a user has a user's
    /// rights even if the token is root's, and only an operator's token gives what its user has as an operator.
    fn with(token: &Record) -> Result<Self, ApiError> {
        let known = || {
            users::owner(token.user).ok_or_else(|| {
                let message =
                    format!("the token's user {} no longer exists on this machine", token.user);
                ApiError::new(ErrorKind::Forbidden, message)
            })
        };
        let who = match token.role {
            Role::Viewer => Requester::Anybody,
            Role::User => Requester::Ordinary(known()?),
            Role::Operator => Requester::Full(known()?),
        };
        Ok(Caller { who, token: Some(token.name.clone()), group: Group::with(token) })
    }

    /// The role that they act in.
    pub(crate) fn role(&self) -> Role {
        match self.who {
            Requester::Anybody => Role::Viewer,
            Requester::Ordinary(_) => Role::User,
            Requester::Full(_) => Role::Operator,
        }
    }
}

/// Lets callers in, or not.
pub(crate) struct Access {
    open: bool,
    hosts: Vec<String>,
    verifier: Verifier,
    requests: DefaultKeyedRateLimiter<Group>,
    wrong: DefaultKeyedRateLimiter<Group>,
}

const fn count(number: u32) -> NonZeroU32 {
    match NonZeroU32::new(number) {
        Some(number) => number,
        None => NonZeroU32::MIN,
    }
}

impl Access {
    /// The rules of a server that listens at an address.
    pub(crate) fn new(open: bool, hosts: Vec<String>, listen: SocketAddr, tokens: Tokens) -> Self {
        let loopback = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let own = match listen.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let (rate, burst) = REQUESTS;
        Access {
            open,
            hosts: hosts.into_iter().chain(loopback).chain([own]).collect(),
            verifier: Verifier::new(tokens),
            requests: RateLimiter::keyed(Quota::per_second(count(rate)).allow_burst(count(burst))),
            wrong: RateLimiter::keyed(Quota::per_minute(count(WRONG_TOKENS))),
        }
    }

    /// Refuses requests by a wrong name, and too many of them from another machine.
    pub(crate) fn check(
        &self,
        peer: SocketAddr,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<(), ApiError> {
        let named = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let named = uri.host().or(named.map(without_port)).unwrap_or_default();
        if !self.hosts.iter().any(|host| host.eq_ignore_ascii_case(named)) {
            let message = format!(
                "this daemon is not called '{named}'; add the name to web.hosts in its configuration"
            );
            return Err(ApiError::new(ErrorKind::Forbidden, message));
        }
        if !peer.ip().is_loopback() && self.requests.check_key(&Group::at(peer.ip())).is_err() {
            return Err(ApiError::new(ErrorKind::Busy, "too many requests; slow down"));
        }
        Ok(())
    }

    /// Forgets addresses that have not asked for a while.
    pub(crate) fn forget_the_past(&self) {
        self.requests.retain_recent();
        self.wrong.retain_recent();
    }

    /// Who makes a request from there.
    pub(crate) fn caller(&self, peer: SocketAddr, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let is_here = peer.ip().is_loopback();
        let Some(given) = headers.get(header::AUTHORIZATION) else {
            return match is_here && self.open {
                true => Ok(Caller::nobody()),
                false => Err(unauthorised("this needs a token")),
            };
        };
        let bearer = given.to_str().ok().and_then(|text| text.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, text)) = bearer else {
            return Err(unauthorised("the header 'Authorization' is not 'Bearer TOKEN'"));
        };
        match self.verifier.verify(text.trim()) {
            Ok(Some(token)) => Caller::with(&token),
            Ok(None) if !is_here && self.wrong.check_key(&Group::at(peer.ip())).is_err() => {
                Err(ApiError::new(ErrorKind::Busy, "too many wrong tokens; wait a minute"))
            }
            Ok(None) => Err(unauthorised("the token is invalid or expired")),
            Err(error) => {
                tracing::error!(%error, "tokens cannot be read; all requests with a token are refused");
                Err(unauthorised("the daemon cannot read its tokens; see its log"))
            }
        }
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// A refusal of somebody who has not shown who they are.
pub(crate) fn unauthorised(why: &str) -> ApiError {
    let message = format!("{why}; 'busbar token create' makes one");
    ApiError::new(ErrorKind::Unauthorised, message)
}

#[cfg(test)]
mod tests;
