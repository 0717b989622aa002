//! What is relied on and what is not, with real folders.

use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;

use busbar_needs::needs;
use rustix::io::Errno;

use super::*;

/// Somebody who is neither root nor whoever runs this.
const SOMEBODY: u32 = 65_533;

const SETTING: Setting = Setting("'state = …'");

fn of(path: &Path, mode: u32) -> Result<TrustedFolder, TrustError> {
    TrustedFolder::of(path, mode, SETTING)
}

fn around(path: &Path) -> Result<TrustedFolder, TrustError> {
    TrustedFolder::around(path, 0o755, SETTING)
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

/// What was under somebody else's control stays so, whatever its owner and its permissions are made.
#[track_caller]
fn assert_advises_a_new_folder(error: &TrustError) {
    let said = error.to_string();
    assert!(said.contains("name a new folder with 'state = …'"), "{said}");
    assert!(!said.contains("chown") && !said.contains("chmod"), "{said}");
}

#[test]
fn a_new_folder_is_as_it_was_asked_for() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a/b/state");
    let state = of(&path, 0o711).unwrap();
    assert_eq!(mode(&path), 0o711);
    assert_eq!(state.path(), path.canonicalize().unwrap());
    // One that is there keeps what it has.
    allow(&path, 0o755);
    let state = of(&path.join("../state/."), 0o700).unwrap();
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
    of(&path, 0o700).unwrap();
    for open in [0o777, 0o722, 0o702, 0o1777] {
        allow(&path, open);
        let error = of(&path, 0o700).unwrap_err();
        assert!(matches!(error, TrustError::Writable { mode, .. } if mode == open), "{error}");
        assert_advises_a_new_folder(&error);
        assert_eq!(mode(&path), open, "it is not touched");
    }
    allow(&path, 0o700);
    // Whoever can write to a folder above can put another one in its place, but for a sticky one.
    let above = outside.path().join("above");
    allow(&above, 0o777);
    let error = of(&path, 0o700).unwrap_err();
    assert!(matches!(&error, TrustError::WritableAbove { path, .. } if *path == above), "{error}");
    assert!(of(&above.join("new"), 0o700).is_err());
    assert!(!above.join("new").exists(), "nothing is made there");
    allow(&above, 0o1777);
    of(&path, 0o700).unwrap();
    around(&above).unwrap();
    allow(&above, 0o777);
    assert!(around(&above).is_err());
    allow(&above, 0o755);
    // And files.
    let state = of(&path, 0o700).unwrap();
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
    let state = of(&outside.path().join("state"), 0o700).unwrap();
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
    fs::remove_file(state.path().join("log")).unwrap();
    fs::remove_file(state.path().join("jobs")).unwrap();
    for error in [state.existing_file("lock").unwrap_err(), state.check_all().unwrap_err()] {
        assert!(matches!(error, TrustError::HardLink { .. }), "{error}");
        assert_advises_a_new_folder(&error);
    }
}

/// A file is replaced as a whole, and what lies in the way is not followed.
#[test]
fn files_are_read_and_replaced_in_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("target");
    fs::write(&target, "as it was").unwrap();
    let state = of(&outside.path().join("state"), 0o700).unwrap();
    assert!(state.existing_file("file").unwrap().is_none());
    symlink(&target, state.path().join("file.new")).unwrap();
    for (text, durability) in [("one", Durability::Now), ("two", Durability::Later)] {
        state.replace("file", text.as_bytes(), 0o600, durability).unwrap();
        let mut read = String::new();
        state.existing_file("file").unwrap().unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
    }
    assert_eq!(mode(&state.path().join("file")), 0o600);
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1, "nothing else is left");
    assert_eq!(fs::read_to_string(&target).unwrap(), "as it was");
    fs::remove_file(state.path().join("file")).unwrap();
    symlink(&target, state.path().join("file")).unwrap();
    let error = state.existing_file("file").unwrap_err();
    assert!(matches!(error, TrustError::Link { .. }), "{error}");
}

/// A pipe would stop whoever opens it, and a folder is no file. A socket is meant for others.
#[test]
fn what_is_neither_a_file_nor_a_folder() {
    let outside = tempfile::tempdir().unwrap();
    let state = of(&outside.path().join("state"), 0o700).unwrap();
    let _socket = UnixListener::bind(state.path().join("socket")).unwrap();
    allow(&state.path().join("socket"), 0o666);
    state.folder("jobs", 0o711).unwrap();
    state.check_all().unwrap();
    for name in ["socket", "jobs"] {
        let error = state.existing_file(name).unwrap_err();
        assert!(matches!(error, TrustError::Kind { .. }), "{error}");
        let error = state.file(name, OFlags::WRONLY).unwrap_err();
        assert!(matches!(error, TrustError::Kind { .. }), "{error}");
    }
    rustix::fs::mknodat(
        CWD,
        state.path().join("pipe"),
        rustix::fs::FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    let pipe = |error: TrustError| matches!(error, TrustError::Kind { what: "a pipe", .. });
    assert!(pipe(state.check_all().unwrap_err()));
    assert!(pipe(state.existing_file("pipe").unwrap_err()));
}

/// Files in a folder that others cannot enter may have any permissions, as the umask makes them.
#[test]
fn subfolders_are_looked_into() {
    let outside = tempfile::tempdir().unwrap();
    let state = of(&outside.path().join("state"), 0o700).unwrap();
    let inner = state.folder("1.1", 0o700).unwrap();
    let file = inner.path().join("ticket");
    fs::write(&file, "").unwrap();
    allow(&file, 0o666);
    state.check_with_subfolders().unwrap();
    allow(inner.path(), 0o711);
    let error = state.check_with_subfolders().unwrap_err();
    assert!(matches!(&error, TrustError::Writable { path, .. } if path.ends_with("1.1/ticket")));
    allow(inner.path(), 0o700);
    fs::remove_file(&file).unwrap();
    symlink("/dev/null", &file).unwrap();
    let error = state.check_with_subfolders().unwrap_err();
    assert!(matches!(error, TrustError::Link { .. }), "{error}");
    state.check_all().unwrap();
}

#[test]
fn what_must_exist_is_not_made() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("none/state");
    let error = TrustedFolder::existing(&path, SETTING).unwrap_err();
    assert!(error.to_string().contains("cannot find"), "{error}");
    assert!(!outside.path().join("none").exists());
    of(&path, 0o700).unwrap();
    TrustedFolder::existing(&path, SETTING).unwrap();
}

#[test]
fn links_on_the_way_are_followed_as_the_kernel_does() {
    let outside = tempfile::tempdir().unwrap();
    let real = outside.path().join("real/state");
    let real = of(&real, 0o700).unwrap().path().to_owned();
    symlink(real.parent().unwrap(), outside.path().join("absolute")).unwrap();
    symlink("absolute/../real", outside.path().join("relative")).unwrap();
    symlink("relative/state", outside.path().join("state")).unwrap();
    for way in ["absolute/state", "relative/state", "state", "state/../state"] {
        let found = of(&outside.path().join(way), 0o700).unwrap();
        assert_eq!(found.path(), real, "{way}");
    }
    symlink("ring", outside.path().join("ring")).unwrap();
    let error = of(&outside.path().join("ring"), 0o700).unwrap_err();
    assert!(matches!(error, TrustError::File { .. }), "{error}");
    fs::write(outside.path().join("file"), "").unwrap();
    for no_folder in ["file", "file/below"] {
        let error = of(&outside.path().join(no_folder), 0o700).unwrap_err();
        assert!(matches!(error, TrustError::File { .. }), "{error}");
    }
}

#[needs(root)]
#[test]
fn what_is_somebody_elses_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    allow(outside.path(), 0o755);
    let above = outside.path().join("above");
    let path = above.join("state");
    let state = of(&path, 0o700).unwrap();
    fs::write(path.join("busbar.db"), "").unwrap();
    let give = |path: &Path| chown(path, Some(SOMEBODY), None).unwrap();
    let take = |path: &Path| chown(path, Some(0), None).unwrap();
    give(&path.join("busbar.db"));
    let error = state.check("busbar.db").unwrap_err();
    assert!(matches!(error, TrustError::Owner { owner: SOMEBODY, user: 0, .. }), "{error}");
    take(&path.join("busbar.db"));
    give(&path);
    assert_advises_a_new_folder(&of(&path, 0o700).unwrap_err());
    take(&path);
    give(&above);
    let error = of(&path, 0o700).unwrap_err();
    assert!(matches!(error, TrustError::OwnerAbove { owner: SOMEBODY, .. }), "{error}");
    take(&above);
    // A link that somebody else has put into /tmp.
    allow(outside.path(), 0o1777);
    let link = outside.path().join("link");
    symlink(&path, &link).unwrap();
    of(&link, 0o700).unwrap();
    std::os::unix::fs::lchown(&link, Some(SOMEBODY), None).unwrap();
    let error = of(&link, 0o700).unwrap_err();
    assert!(matches!(error, TrustError::OwnerAbove { .. }), "{error}");
}

/// With a umask of 002, on a system where each user has a group.
#[test]
fn a_group_without_others_may_write() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("above/state");
    let state = of(&path, 0o700).unwrap();
    let file = path.join("log");
    fs::write(&file, "").unwrap();
    let found = path.metadata().unwrap();
    let is_alone = crate::groups::has_only(found.gid(), found.uid());
    let places = [(path.parent().unwrap(), 0o775), (&*path, 0o775), (&*file, 0o664)];
    for (place, open) in places {
        allow(place, open);
    }
    let checked = of(&path, 0o700).and_then(|state| state.check_all());
    if !is_alone {
        return assert!(checked.is_err(), "others are in group {}", found.gid());
    }
    checked.unwrap();
    // With an access control list the permissions of the group are those of somebody else.
    for (place, open) in places {
        if let Err(error) = let_somebody_write(place) {
            // Not all file systems have them.
            return assert_eq!(Errno::from_io_error(&error), Some(Errno::NOTSUP));
        }
        assert_eq!(mode(place) & 0o022, 0o020, "it looks as before");
        let error = of(&path, 0o700).and_then(|state| state.check_all()).unwrap_err();
        let (TrustError::Writable { path: named, .. }
        | TrustError::WritableAbove { path: named, .. }) = &error
        else {
            panic!("{error}");
        };
        assert_eq!(named, place);
        rustix::fs::removexattr(place, ACCESS_LIST).unwrap();
        allow(place, open);
    }
    state.check_all().unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&file, None, Some(SOMEBODY)).unwrap();
        let error = state.check_all().unwrap_err();
        assert!(matches!(error, TrustError::Writable { .. }), "{error}");
    }
}

const ACCESS_LIST: &str = "system.posix_acl_access";

/// What `setfacl -m u:65533:rwx` does, in the kernel's format: version 2, then a tag, permissions and an ID for each entry.
fn let_somebody_write(path: &Path) -> io::Result<()> {
    const NO_ID: u32 = u32::MAX;
    let (all, some) = (7, mode(path) as u16 & 7);
    let mut list = 2_u32.to_le_bytes().to_vec();
    // The owner, somebody, the group, the mask and the others.
    for (tag, allowed, id) in [
        (1, all, NO_ID),
        (2, all, SOMEBODY),
        (4, 5, NO_ID),
        (0x10, all, NO_ID),
        (0x20, some, NO_ID),
    ] {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(allowed));
        list.extend(u32::to_le_bytes(id));
    }
    Ok(rustix::fs::setxattr(path, ACCESS_LIST, &list, rustix::fs::XattrFlags::empty())?)
}
