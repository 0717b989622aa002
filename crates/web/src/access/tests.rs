//! How much others may ask. They are let through so slowly that questions in a row always come faster, on any machine.

use axum::http::HeaderValue;

use super::*;

const LISTEN: &str = "192.0.2.1:443";
const OTHER: &str = "192.0.2.2:50000";
const THIRD: &str = "192.0.2.3:50000";
const HERE: &str = "127.0.0.1:50000";

/// Many more than anybody may ask at once.
const MANY: usize = 1_000_000;

fn access() -> Access {
    // No tokens were made there.
    let folder = tempfile::tempdir().unwrap();
    let tokens = Tokens::in_folder(crate::testing::state(&folder));
    Access::new(true, Vec::new(), LISTEN.parse().unwrap(), tokens)
}

fn headers(name: header::HeaderName, value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
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
