//! Clients on other machines. The story is told in a network of its own, which has an address that is not the loopback's
//! and leads nowhere.

use std::process::Command;

use busbar_needs::needs;

use super::Web;

/// An address for examples, which no machine has.
const ADDRESS: &str = "192.0.2.1";

/// Says that the story is told there.
const IS_THERE: &str = "BUSBAR_WEB_ELSEWHERE";

#[needs(network)]
#[test]
fn from_elsewhere_reading_needs_a_token_too() {
    let script = format!("ip link set lo up && ip address add {ADDRESS}/32 dev lo && exec \"$@\"");
    // Who is not root can be root in a network of their own.
    let apart: &[&str] = match rustix::process::geteuid().is_root() {
        true => &["--net"],
        false => &["--net", "--map-root-user"],
    };
    let told = Command::new("unshare")
        .args(apart)
        .args(["sh", "-c", &script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["web::elsewhere::story", "--exact", "--ignored", "--nocapture"])
        .env(IS_THERE, "1")
        .output()
        .unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(told.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}

#[test]
#[ignore = "run by the test above, in a network of its own"]
fn story() {
    if std::env::var_os(IS_THERE).is_none() {
        return;
    }
    let web = Web::listening("easy", &format!("listen = \"{ADDRESS}:0\"\nplain = true"));
    assert_eq!(web.client.get("/api/v2/status").status, 401);
    assert_eq!(web.client.get("/metrics").status, 401);
    // The page itself holds nothing, and asks for a token.
    assert_eq!(web.client.get("/").status, 200);
    let viewer = web.client.with(&web.token("viewer", &[]));
    assert_eq!(viewer.get("/api/v2/status").status, 200);
}
