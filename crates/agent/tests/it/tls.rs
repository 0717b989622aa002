//! Agents and controllers on different machines: only keys of the same site count, each for its side.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use busbar_agent::client::{Address, Client, ClientError};
use busbar_agent::config::TcpSpec;
use busbar_agent::fleet::{AgentId, Options, Report, Target};
use busbar_agent::keys;
use busbar_agent::tls::KeyFiles;
use busbar_agent::wire::{Answer, Caps, RefusalKind, Request};

use crate::fleet::{start, wait_for};
use crate::node::{Node, PATIENCE, watts};

/// A node that listens for other machines, with keys from this folder.
fn node(name: &str, folder: &Path) -> Node {
    Node::with(name, |config| {
        let address = "127.0.0.1:0".parse().unwrap();
        config.tcp = Some(TcpSpec { address, keys: keys::files(folder, name) });
    })
}

fn connect(node: &Node, keys: &KeyFiles, control: bool) -> Result<Client, ClientError> {
    let address = Address::Tcp(node.config.tcp.as_ref().unwrap().address.to_string());
    let keys = keys.client()?;
    Client::connect(&address, &node.config.node, Some(&keys), "test", control, PATIENCE)
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_controller_sets_caps_over_the_network_and_an_observer_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let made = keys::make(folder.path(), &names(&["n1"]), 30).unwrap();
    assert!(made.is_new_authority);
    assert_eq!(made.certificates.len(), 3);
    for key in ["authority.key", "controller.key", "observer.key", "n1.key"] {
        let mode = folder.path().join(key).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{key}");
    }
    let node = node("n1", folder.path());
    let mut client = connect(&node, &keys::files(folder.path(), "controller"), true).unwrap();
    let set = Request::Set(Caps::Node { cap: watts(120) });
    let Answer::Set(report) = client.ask(set).unwrap() else { panic!() };
    assert!(report.is_confirmed());
    let observer = keys::files(folder.path(), "observer");
    assert!(connect(&node, &observer, false).unwrap().ask(Request::Read).is_ok());
    let Err(ClientError::Refused(refusal)) = connect(&node, &observer, true) else { panic!() };
    assert_eq!(refusal.kind, RefusalKind::Forbidden);
}

#[test]
fn keys_of_a_node_another_site_or_another_node_do_not_count() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    keys::make(folder.path(), &names(&["n1", "n2"]), 30).unwrap();
    keys::make(other.path(), &names(&["n1"]), 30).unwrap();
    let node = node("n1", folder.path());
    // A stolen key of a node sets no caps elsewhere: it is not even taken as a client's.
    let error = connect(&node, &keys::files(folder.path(), "n2"), true).unwrap_err();
    assert!(error.to_string().contains("for the other side of a connection"), "{error}");
    // Another site's controller does not know this node's authority, and is not known to it.
    let error = connect(&node, &keys::files(other.path(), "controller"), true).unwrap_err();
    assert!(error.to_string().contains("another authority signed it"), "{error}");
    let mixed = KeyFiles {
        authority: keys::files(folder.path(), "n1").authority,
        ..keys::files(other.path(), "controller")
    };
    let error = mixed.client().unwrap_err();
    assert!(error.to_string().contains("another authority signed it"), "{error}");
    // An agent does not start with the certificate of another node.
    let error = keys::files(folder.path(), "n2");
    let mut config = node.config.clone();
    config.state = folder.path().join("state");
    config.tcp = Some(TcpSpec { address: "127.0.0.1:0".parse().unwrap(), keys: error });
    let error = busbar_agent::server::Server::start(config).err().unwrap();
    assert!(error.to_string().contains("the name of another node"), "{error}");
    assert_eq!(node.limits(), [100, 100]);
}

#[test]
fn expired_keys_are_refused_with_the_date() {
    let folder = tempfile::tempdir().unwrap();
    keys::make(folder.path(), &names(&["n1"]), 30).unwrap();
    let node = node("n1", folder.path());
    // A controller's certificate that ends now. Its own side says so first.
    let expired = tempfile::tempdir().unwrap();
    for file in ["authority.pem", "authority.key"] {
        std::fs::copy(folder.path().join(file), expired.path().join(file)).unwrap();
    }
    keys::make(expired.path(), &names(&["n1"]), 0).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    let error = keys::files(expired.path(), "controller").client().unwrap_err();
    assert!(error.to_string().contains("it expired on 20"), "{error}");
    assert!(error.to_string().contains("busbar agent keys"), "{error}");
    let mut config = node.config.clone();
    config.state = expired.path().join("state");
    config.tcp = Some(TcpSpec {
        address: "127.0.0.1:0".parse().unwrap(),
        keys: keys::files(expired.path(), "n1"),
    });
    let error = busbar_agent::server::Server::start(config).err().unwrap();
    assert!(error.to_string().contains("it expired on 20"), "{error}");
}

#[test]
fn a_certificate_that_ends_soon_is_worth_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    keys::make(folder.path(), &names(&["n1"]), 10).unwrap();
    let place = tempfile::tempdir().unwrap();
    let mut config = crate::node::emulated(place.path(), "n1");
    let address = "127.0.0.1:0".parse().unwrap();
    config.tcp = Some(TcpSpec { address, keys: keys::files(folder.path(), "n1") });
    let server = busbar_agent::server::Server::start(config).unwrap();
    assert!(server.warnings()[0].contains("ends within 30 days"), "{:?}", server.warnings());
}

#[test]
fn a_key_that_others_can_read_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    keys::make(folder.path(), &[], 30).unwrap();
    let files = keys::files(folder.path(), "controller");
    std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o640)).unwrap();
    let error = files.client().unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
    let authority = folder.path().join("authority.key");
    std::fs::set_permissions(&authority, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = keys::make(folder.path(), &names(&["n1"]), 30).unwrap_err();
    assert!(error.to_string().contains(&format!("chmod 600 {}", authority.display())), "{error}");
    assert!(!folder.path().join("n1.key").exists(), "nothing is signed with it");
    if rustix::process::geteuid().is_root() {
        std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&files.key, Some(65_533), None).unwrap();
        let error = files.client().unwrap_err();
        assert!(error.to_string().contains("belongs to user 65533"), "{error}");
    }
}

#[test]
fn nodes_are_added_with_the_authority_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    keys::make(folder.path(), &names(&["n1"]), 30).unwrap();
    let before = std::fs::read(folder.path().join("controller.pem")).unwrap();
    let made = keys::make(folder.path(), &names(&["n2"]), 30).unwrap();
    assert!(!made.is_new_authority);
    assert_eq!(made.certificates, [folder.path().join("n2.pem")]);
    assert_eq!(std::fs::read(folder.path().join("controller.pem")).unwrap(), before);
    let node = node("n2", folder.path());
    assert!(connect(&node, &keys::files(folder.path(), "controller"), true).is_ok());
    // Half an authority is no authority.
    std::fs::remove_file(folder.path().join("authority.key")).unwrap();
    let error = keys::make(folder.path(), &names(&["n3"]), 30).unwrap_err();
    assert!(error.to_string().contains("is missing"), "{error}");
    let error = keys::make(folder.path(), &names(&["a node"]), 30).unwrap_err();
    assert!(error.to_string().contains("cannot be the name of a node"), "{error}");
}

#[test]
fn a_fleet_speaks_tls_and_hears_why_not() {
    let folder = tempfile::tempdir().unwrap();
    keys::make(folder.path(), &names(&["n1"]), 30).unwrap();
    let node = node("n1", folder.path());
    let place = node.config.tcp.as_ref().unwrap().address.to_string();
    let client = keys::files(folder.path(), "controller").client().unwrap();
    let options = Options { keys: Some(Arc::clone(&client)), ..crate::fleet::options("test") };
    let targets = vec![
        Target { node: "n1".to_owned(), address: Address::Tcp(place.clone()) },
        Target { node: "n2".to_owned(), address: Address::Tcp(place.clone()) },
        Target { node: "n3".to_owned(), address: Address::Tcp("127.0.0.1:1".to_owned()) },
        Target { node: "n1".to_owned(), address: Address::Unix(node.socket()) },
    ];
    let (fleet, reports) = start(targets, options);
    let (mut up, mut down) = (0, Vec::new());
    while up < 2 || down.len() < 2 {
        wait_for(&reports, |report| {
            match report {
                Report::Up { .. } => up += 1,
                Report::Down { agent, reason } => down.push((agent, reason)),
                _ => (),
            }
            Some(())
        });
    }
    down.sort();
    assert!(down[0].1.contains("the name of another node"), "{down:?}");
    assert!(down[1].1.contains("cannot connect"), "{down:?}");
    fleet.ask(AgentId(0), Request::Read, PATIENCE);
    wait_for(&reports, |report| {
        matches!(report, Report::Answered { answer: Answer::Sample(_), .. }).then_some(())
    });
    // Plain text on the port of TLS gets nothing.
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(place).unwrap();
    stream.write_all(b"{\"id\":0,\"request\":\"inventory\"}\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("n1"));
}

#[test]
fn a_second_controller_is_refused_for_as_long_as_the_lease_lasts() {
    let folder = tempfile::tempdir().unwrap();
    keys::make(folder.path(), &names(&["n1"]), 30).unwrap();
    let node = node("n1", folder.path());
    let mut here = node.connect(true).unwrap();
    here.ask(Request::Set(Caps::Node { cap: watts(120) })).unwrap();
    let place = node.config.tcp.as_ref().unwrap().address.to_string();
    let client = keys::files(folder.path(), "controller").client().unwrap();
    let options = Options { keys: Some(client), ..crate::fleet::options("other") };
    let targets = vec![Target { node: "n1".to_owned(), address: Address::Tcp(place) }];
    let (fleet, reports) = start(targets, options);
    let _fleet = fleet;
    let reason = wait_for(&reports, |report| match report {
        Report::Down { reason, .. } => Some(reason),
        other => panic!("{other:?}"),
    });
    assert!(reason.contains("another controller holds the lease: user "), "{reason}");
    // It goes on trying, and is there when the node is free.
    here.ask(Request::Release).unwrap();
    wait_for(&reports, |report| matches!(report, Report::Up { .. }).then_some(()));
}

/// Two daemons with copies of one key.
#[test]
fn controllers_with_one_key_do_not_fight() {
    let folder = tempfile::tempdir().unwrap();
    keys::make(folder.path(), &names(&["n1"]), 30).unwrap();
    let node = node("n1", folder.path());
    let place = node.config.tcp.as_ref().unwrap().address.to_string();
    let client = keys::files(folder.path(), "controller").client().unwrap();
    let begin = |instance: &str| {
        let options = Options {
            keys: Some(Arc::clone(&client)),
            instance: instance.parse().ok(),
            ..Options::controller("busbar")
        };
        let target = Target { node: "n1".to_owned(), address: Address::Tcp(place.clone()) };
        start(vec![target], options)
    };
    let is_up = |report| matches!(report, Report::Up { .. }).then_some(());
    let is_set = |report| match report {
        Report::Answered { answer: Answer::Set(report), .. } => Some(report.is_confirmed()),
        Report::Answered { answer, .. } => panic!("{answer:?}"),
        Report::Failed { reason, .. } | Report::Down { reason, .. } => panic!("{reason}"),
        _ => None,
    };
    let set = |cap| Request::Set(Caps::Node { cap: watts(cap) });
    let (second, heard) = begin("two");
    wait_for(&heard, is_up);
    let (first, reports) = begin("one");
    wait_for(&reports, is_up);
    first.ask(AgentId(0), set(120), PATIENCE);
    assert!(wait_for(&reports, is_set));
    // The second one was there before, and hears that it has no lease when it renews it.
    second.renew(Duration::from_secs(10), PATIENCE);
    let reason = wait_for(&heard, |report| match report {
        Report::Unleased { reason, .. } => Some(reason),
        _ => None,
    });
    assert!(reason.contains("busbar-controller, instance one, since 20"), "{reason}");
    let down = wait_for(&heard, |report| match report {
        Report::Down { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(down, reason);
    // The first one has not noticed anything, and starts again without having to wait.
    first.ask(AgentId(0), set(140), PATIENCE);
    assert!(wait_for(&reports, is_set));
    drop(first);
    let (first, reports) = begin("one");
    wait_for(&reports, |report| match report {
        Report::Up { .. } => Some(()),
        other => panic!("{other:?}"),
    });
    first.ask(AgentId(0), set(160), PATIENCE);
    assert!(wait_for(&reports, is_set));
    assert_eq!(node.limits(), [80, 80]);
}

/// Nodes would be given the authority that somebody else has put there.
#[test]
fn an_authority_that_somebody_else_has_put_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    keys::make(folder.path(), &names(&["n1"]), 30).unwrap();
    let make = || keys::make(folder.path(), &names(&["n2"]), 30).map_err(|error| error.to_string());
    for name in ["authority.pem", "authority.key", "controller.pem"] {
        let (path, moved) = (folder.path().join(name), folder.path().join("moved"));
        std::fs::rename(&path, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &path).unwrap();
        let said = make().unwrap_err();
        assert!(said.contains("is a symbolic link"), "{name}: {said}");
        std::fs::rename(&moved, &path).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65_533), None).unwrap();
            let said = make().unwrap_err();
            assert!(said.contains("belongs to user 65533"), "{name}: {said}");
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
    }
    make().unwrap();
}
