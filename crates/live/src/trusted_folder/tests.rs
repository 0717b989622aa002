//! What is relied on and what is not, with real folders.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;

/// Somebody who is neither root nor whoever runs this.
const SOMEBODY: u32 = 65_533;

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

#[test]
fn a_new_folder_is_as_it_was_asked_for() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a/b/state");
    let state = TrustedFolder::of(&path, 0o711).unwrap();
    assert_eq!(mode(&path), 0o711);
    assert_eq!(state.path(), path.canonicalize().unwrap());
    // One that is there keeps what it has.
    allow(&path, 0o755);
    let state = TrustedFolder::of(&path.join("../state/."), 0o700).unwrap();
    assert_eq!((mode(&path), state.path()), (0o755, &*path.canonicalize().unwrap()));
    let jobs = state.folder("jobs", 0o711).unwrap();
    assert_eq!(mode(jobs.path()), 0o711);
    let file = state.file("lock", OFlags::RDWR).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn what_others_can_write_to_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("above/state");
    TrustedFolder::of(&path, 0o700).unwrap();
    for open in [0o777, 0o722, 0o770, 0o1777] {
        allow(&path, open);
        let error = TrustedFolder::of(&path, 0o700).unwrap_err();
        assert!(matches!(error, TrustError::Writable { mode, .. } if mode == open), "{error}");
        let said = error.to_string();
        assert!(said.contains(&format!("chmod go-w {}", path.display())), "{said}");
        assert_eq!(mode(&path), open, "it is not touched");
    }
    allow(&path, 0o700);
    // Whoever can write to a folder above can put another one in its place, but for a sticky one.
    let above = outside.path().join("above");
    allow(&above, 0o777);
    let error = TrustedFolder::of(&path, 0o700).unwrap_err();
    assert!(matches!(&error, TrustError::WritableAbove { path, .. } if *path == above), "{error}");
    assert!(TrustedFolder::of(&above.join("new"), 0o700).is_err());
    assert!(!above.join("new").exists(), "nothing is made there");
    allow(&above, 0o1777);
    TrustedFolder::of(&path, 0o700).unwrap();
    TrustedFolder::around(&above, 0o755).unwrap();
    allow(&above, 0o777);
    assert!(TrustedFolder::around(&above, 0o755).is_err());
    allow(&above, 0o755);
    // And files.
    let state = TrustedFolder::of(&path, 0o700).unwrap();
    fs::write(path.join("log"), "as it was").unwrap();
    allow(&path.join("log"), 0o666);
    let error = state.file("log", OFlags::WRONLY | OFlags::TRUNC).unwrap_err();
    assert!(matches!(error, TrustError::Writable { .. }), "{error}");
    assert_eq!(fs::read_to_string(path.join("log")).unwrap(), "as it was");
}

#[test]
fn links_within_are_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("target");
    fs::write(&target, "as it was").unwrap();
    allow(&target, 0o600);
    let folder = outside.path().join("folder");
    fs::create_dir(&folder).unwrap();
    allow(&folder, 0o750);
    let state = TrustedFolder::of(&outside.path().join("state"), 0o700).unwrap();
    symlink(&target, state.path().join("lock")).unwrap();
    symlink(outside.path().join("nowhere"), state.path().join("log")).unwrap();
    symlink(&folder, state.path().join("jobs")).unwrap();
    let is_link = |error: TrustError| matches!(error, TrustError::Link { .. });
    assert!(is_link(state.file("lock", OFlags::RDWR | OFlags::TRUNC).unwrap_err()));
    assert!(is_link(state.file("log", OFlags::WRONLY).unwrap_err()));
    assert!(is_link(state.folder("jobs", 0o711).unwrap_err()));
    assert!(is_link(state.check_all().unwrap_err()));
    assert_eq!(fs::read_to_string(&target).unwrap(), "as it was");
    assert!(!outside.path().join("nowhere").exists());
    assert_eq!(mode(&folder), 0o750);
    // Another name of a file is as bad.
    fs::remove_file(state.path().join("lock")).unwrap();
    fs::hard_link(&target, state.path().join("lock")).unwrap();
    let error = state.file("lock", OFlags::RDWR).unwrap_err();
    assert!(matches!(error, TrustError::HardLink { .. }), "{error}");
}

#[test]
fn links_on_the_way_are_followed_as_the_kernel_does() {
    let outside = tempfile::tempdir().unwrap();
    let real = outside.path().join("real/state");
    let real = TrustedFolder::of(&real, 0o700).unwrap().path().to_owned();
    symlink(real.parent().unwrap(), outside.path().join("absolute")).unwrap();
    symlink("absolute/../real", outside.path().join("relative")).unwrap();
    symlink("relative/state", outside.path().join("state")).unwrap();
    for way in ["absolute/state", "relative/state", "state", "state/../state"] {
        let found = TrustedFolder::of(&outside.path().join(way), 0o700).unwrap();
        assert_eq!(found.path(), real, "{way}");
    }
    symlink("ring", outside.path().join("ring")).unwrap();
    let error = TrustedFolder::of(&outside.path().join("ring"), 0o700).unwrap_err();
    assert!(matches!(error, TrustError::File { .. }), "{error}");
    fs::write(outside.path().join("file"), "").unwrap();
    for no_folder in ["file", "file/below"] {
        let error = TrustedFolder::of(&outside.path().join(no_folder), 0o700).unwrap_err();
        assert!(matches!(error, TrustError::File { .. }), "{error}");
    }
}

#[test]
fn what_is_somebody_elses_is_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give something to somebody else");
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    allow(outside.path(), 0o755);
    let above = outside.path().join("above");
    let path = above.join("state");
    let state = TrustedFolder::of(&path, 0o700).unwrap();
    fs::write(path.join("busbar.db"), "").unwrap();
    let give = |path: &Path| chown(path, Some(SOMEBODY), None).unwrap();
    let take = |path: &Path| chown(path, Some(0), None).unwrap();
    give(&path.join("busbar.db"));
    let error = state.check("busbar.db").unwrap_err();
    assert!(matches!(error, TrustError::Owner { owner: SOMEBODY, user: 0, .. }), "{error}");
    take(&path.join("busbar.db"));
    give(&path);
    let said = TrustedFolder::of(&path, 0o700).unwrap_err().to_string();
    assert!(said.contains(&format!("chown -R 0 {}", path.display())), "{said}");
    take(&path);
    give(&above);
    let error = TrustedFolder::of(&path, 0o700).unwrap_err();
    assert!(matches!(error, TrustError::OwnerAbove { owner: SOMEBODY, .. }), "{error}");
    take(&above);
    // A link that somebody else has put into /tmp.
    allow(outside.path(), 0o1777);
    let link = outside.path().join("link");
    symlink(&path, &link).unwrap();
    TrustedFolder::of(&link, 0o700).unwrap();
    std::os::unix::fs::lchown(&link, Some(SOMEBODY), None).unwrap();
    let error = TrustedFolder::of(&link, 0o700).unwrap_err();
    assert!(matches!(error, TrustError::OwnerAbove { .. }), "{error}");
}
