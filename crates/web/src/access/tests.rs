//! How much others may ask. They are let through so slowly that questions in a row always come faster, on any machine.

use axum::http::HeaderValue;

use super::*;
use crate::token::NewToken;

const LISTEN: &str = "192.0.2.1:443";
const OTHER: &str = "192.0.2.2:50000";
const THIRD: &str = "192.0.2.3:50000";
const HERE: &str = "127.0.0.1:50000";

/// Many more than anybody may ask at once.
const MANY: usize = 1_000_000;

fn access() -> Access {
    // No tokens were made there.
    let folder = tempfile::tempdir().unwrap();
    access_with(Tokens::in_folder(crate::testing::state(&folder)))
}

fn access_with(tokens: Tokens) -> Access {
    Access::new(true, Vec::new(), LISTEN.parse().unwrap(), tokens)
}

fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
}

/// Whether it is to be tried again later.
fn is_busy(error: &ApiError) -> bool {
    format!("{error:?}").contains("Busy")
}

#[test]
fn whoever_asks_without_end_is_slowed_down_and_others_are_not() {
    let (access, headers) = (access(), headers(header::HOST, LISTEN));
    let ask = |peer: &str| access.check(peer.parse().unwrap(), &headers, &Uri::from_static("/"));
    let refused = (0..MANY).find_map(|_| ask(OTHER).err()).expect("they are all let through");
    assert!(is_busy(&refused), "{refused:?}");
    assert!(ask(THIRD).is_ok());
    assert!((0..2 * REQUESTS.1).all(|_| ask(HERE).is_ok()), "not this machine's own");
}

#[test]
fn whoever_guesses_tokens_has_to_wait() {
    let (access, headers) = (access(), headers(header::AUTHORIZATION, "Bearer busbar_wrong"));
    let guess = |peer: &str| access.caller(peer.parse().unwrap(), &headers).unwrap_err();
    assert!((0..MANY).any(|_| is_busy(&guess(OTHER))), "they may guess on");
    assert!(!is_busy(&guess(THIRD)));
}

#[test]
fn a_machine_with_many_addresses_is_limited_as_one() {
    let at = |host: usize| format!("[2001:db8::{:x}:{:x}]:50000", host >> 16, host & 0xffff);
    let (access, host) = (access(), headers(header::HOST, LISTEN));
    let ask = |peer: String| access.check(peer.parse().unwrap(), &host, &Uri::from_static("/"));
    assert!((1..MANY).any(|host| ask(at(host)).is_err()), "they are all let through");
    let wrong = headers(header::AUTHORIZATION, "Bearer busbar_wrong");
    let guess = |peer: String| access.caller(peer.parse().unwrap(), &wrong).unwrap_err();
    assert!((1..MANY).any(|host| is_busy(&guess(at(host)))), "they may guess on");
}

#[test]
fn tokens_without_a_name_are_not_one() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = Tokens::in_folder(crate::testing::state(&folder));
    let new = NewToken { name: String::new(), role: Role::Viewer, user: 7, expires: None };
    let texts = [(); 2].map(|()| tokens.create(new.clone()).unwrap().1);
    let access = access_with(tokens);
    let [a, b] = texts.map(|text| {
        let headers = headers(header::AUTHORIZATION, &format!("Bearer {text}"));
        access.caller(HERE.parse().unwrap(), &headers).unwrap()
    });
    assert_ne!(a.group, b.group);
    assert!(a.group.is_known() && b.group.is_known());
}
