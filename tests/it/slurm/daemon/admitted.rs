//! Mode `admit` while administrators change what Slurm may hand out.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use busbar::live::job::EventKind;
use busbar::slurm::cluster::Cluster;
use busbar_needs::needs;

use super::served::Served;
use super::{Running, text};

/// The daemon's notices so far.
fn notices(served: &Served) -> Vec<String> {
    let texts = served.history().into_iter().filter_map(|line| match line.event.kind {
        EventKind::Notice { text, .. } => Some(text),
        _ => None,
    });
    texts.collect()
}

fn await_notice(served: &Served, part: &str) {
    served.wait(part, || notices(served).iter().any(|text| text.contains(part)).then_some(()));
}

#[needs(slurm)]
#[test]
fn the_budget_is_put_right_whatever_an_administrator_does() {
    let served = Served::new(4, "admit", "easy-power");
    let cluster = &served.running.cluster;
    served.wait("a reservation", || (served.reserved() > 0).then_some(()));
    let reserved = served.reserved();
    let total = cluster.licences().unwrap()[0].total;
    let control = |arguments: &[&str]| _ = served.running.ask("scontrol", arguments).unwrap();

    control(&["delete", "reservationname=busbar"]);
    served.wait("the reservation", || (served.reserved() == reserved).then_some(()));
    await_notice(&served, "the reservation 'busbar' of Slurm was removed");

    control(&["update", "reservationname=busbar", "licenses=power:1"]);
    served.wait("the reservation", || (served.reserved() == reserved).then_some(()));
    await_notice(&served, "had 1 licences instead of");

    // More licences, and fewer than are reserved.
    let conf = served.running.lab.conf();
    let before = format!("Licenses=power:{total}\n");
    for now in [6 * total, reserved / 2] {
        let text = fs::read_to_string(&conf).unwrap();
        assert!(text.contains(&before), "{text}");
        fs::write(&conf, text.replace(&before, &format!("Licenses=power:{now}\n"))).unwrap();
        control(&["reconfigure"]);
        let expected = now.saturating_sub(total - reserved);
        served.wait("the reservation", || (served.reserved() == expected).then_some(()));
        await_notice(&served, &format!("Slurm has {now} licences 'power' instead of"));
        fs::write(&conf, text).unwrap();
    }
    // Jobs come by sbatch alone, whoever asks.
    let mut submit = Command::new(env!("CARGO_BIN_EXE_busbar"));
    let socket = served.running.place().join("busbar.sock");
    submit.args(["submit", "--time", "1min", "--socket"]).arg(socket).args(["--", "true"]);
    let refused = submit.output().unwrap();
    assert!(!refused.status.success(), "{}", text(&refused));
    assert!(text(&refused).contains("use sbatch"), "{}", text(&refused));
    assert!(served.queue().is_empty());
    assert_eq!(
        notices(&served).iter().filter(|text| text.contains("are reserved again")).count(),
        4
    );
}

/// Slurm knows no reservation without an end, and one that somebody else may use keeps nothing back.
#[needs(slurm)]
#[test]
fn a_reservation_is_for_nobody_else_and_moves_on() {
    let running = Running::start("2", "admit", &[]);
    let cluster = &running.cluster;
    let watts = BTreeMap::from([("power".to_owned(), 100)]);
    cluster.reserve("busbar", &watts).unwrap();
    let made = cluster.reservations().unwrap();
    for change in ["endtime=now+20days", "users=root,daemon"] {
        let arguments = ["update", "reservationname=busbar", change];
        running.ask("scontrol", &arguments).unwrap();
        assert_ne!(cluster.reservations().unwrap(), made);
        cluster.reserve("busbar", &watts).unwrap();
        let again = cluster.reservations().unwrap();
        assert_eq!((&again[0].users, &again[0].licences), (&made[0].users, &made[0].licences));
        assert!(again[0].ends >= made[0].ends, "{again:?} {made:?}");
    }
    running.down();
}
