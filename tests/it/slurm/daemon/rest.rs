//! A daemon that speaks to slurmrestd.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use busbar::slurm::rest::Address;
use busbar_needs::needs;

use super::served::{Served, jobs};
use crate::slurm::other_slurm;

/// The daemon reads jobs through slurmrestd: `squeue` is not there. Its token runs out meanwhile, and it makes others.
#[needs(slurm, slurmrestd)]
#[test]
fn a_daemon_works_by_slurmrestd_with_tokens_that_run_out() {
    let mut served = Served::idle(4, "steer", "share", &["--rest"]);
    let place = served.running.place();
    let Some(Address::Tcp(address)) = served.running.lab.rest_address() else {
        panic!("no slurmrestd")
    };
    let programs = place.join("programs");
    fs::create_dir(&programs).unwrap();
    let mut folders: Vec<PathBuf> = ["/usr/bin", "/usr/local/bin"].map(PathBuf::from).into();
    if let Some(other) = other_slurm() {
        // Where another Slurm is, the lab has written down.
        folders = vec![other.join("bin")];
        served.configure(&format!("programs = \"{}\"\n", folders[0].display()), "");
    }
    for program in ["scontrol", "scancel"] {
        let mut found = folders.iter().map(|folder| folder.join(program));
        symlink(found.find(|path| path.exists()).unwrap(), programs.join(program)).unwrap();
    }
    let lab = served.running.lab.programs();
    let token = |seconds: u32| {
        let lifespan = format!("lifespan={seconds}");
        lab.run("scontrol", &["token", "username=root", &lifespan]).unwrap().out
    };
    // It counts as worn out from the beginning.
    fs::write(place.join("token"), token(1)).unwrap();
    let rest = format!(
        "conf = \"slurm.conf\"\nprograms = \"programs\"\nrest = \"http://{address}\"\nrest_token = \"token\""
    );
    served.configure("conf = \"slurm.conf\"", &rest);
    served.begin();
    let numbers = served.submit(&jobs(4, 3));
    served.wait("ends", || (served.ended() >= numbers.len()).then_some(()));
    // Somebody renews the file, with a token that runs out while the daemon uses it.
    fs::write(place.join("token"), token(20)).unwrap();
    let more = served.submit(&jobs(4, 4));
    served.wait("more ends", || (served.ended() >= numbers.len() + more.len()).then_some(()));
    served.wait("an empty queue", || served.queue().is_empty().then_some(()));
    served.assert_once(&[numbers, more].concat());
    assert!(!served.log().contains("squeue"), "{}", served.log());
}
