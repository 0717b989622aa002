//! What Slurm answers.

use std::cell::RefCell;
use std::fmt::Debug;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

use busbar::slurm::calls::Reading;
use busbar::slurm::commands::Commands;
use busbar::slurm::hosts::HostList;
use busbar::slurm::json::Answer;
use busbar::slurm::parts;
use busbar::slurm::priorities::Priorities;
use busbar::slurm::program::Programs;
use busbar::slurm::record::{Recording, format};
use busbar::slurm::rest::{Address, Rest};
use busbar::slurm::site::SiteReader;
use busbar::slurm::{tasks as slurm_tasks, text as slurm_text, version as slurm_version, words};

use super::{text, told};
use crate::engine::Place;
use crate::examples::{files, texts};

const RECORDED: &str = "crates/slurm/recorded";

/// What a cluster answers whose nodes jobs share.
const SHARED: &str = "crates/slurm/recorded-shared/22.05";

pub(super) fn slurm_jobs() -> Vec<Vec<u8>> {
    files(&[RECORDED, SHARED], &["jobs.txt", "elements.txt", "jobs-with-parts.txt"])
}

pub(super) fn slurm_job_list(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let (jobs, with_parts) = (format().read(text), format().read_with_parts(text));
    listed(&jobs.read, &jobs.unread) + &listed(&with_parts.read, &with_parts.unread)
}

/// Whether anything was read, and what was not.
fn listed<T: Debug, U: Debug>(read: &[T], unread: &[U]) -> String {
    format!("{} {:?}", if read.is_empty() { "none" } else { "some" }, unread.first())
}

pub(super) fn slurm_texts() -> Vec<Vec<u8>> {
    files(
        &[RECORDED, SHARED],
        &[
            "nodes.txt",
            "parts.txt",
            "partitions.txt",
            "licences.txt",
            "reservations.txt",
            "configuration.txt",
        ],
    )
}

pub(super) fn slurm_listings(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let (nodes, partitions) = (slurm_text::nodes(text), slurm_text::partitions(text));
    let (licences, reservations) = (slurm_text::licences(text), slurm_text::reservations(text));
    listed(&nodes.read, &nodes.unread)
        + &listed(&partitions.read, &partitions.unread)
        + &listed(&licences.read, &licences.unread)
        + &listed(&reservations.read, &reservations.unread)
        + if parts::details(text).is_empty() { " nothing" } else { " parts" }
}

pub(super) fn slurm_answers() -> Vec<Vec<u8>> {
    files(
        &[RECORDED],
        &["jobs.json", "nodes.json", "partitions.json", "licences.json", "reservations.json"],
    )
}

pub(super) fn slurm_answer(_: &Place, input: &[u8]) -> String {
    text(input, |text| {
        let answer = Answer::read("an answer", text)?;
        let _ = (answer.complaint(), answer.version(), answer.error_numbers());
        let jobs = answer.jobs_with_parts().map(|jobs| listed(&jobs.read, &jobs.unread));
        let nodes = answer.nodes().map(|nodes| listed(&nodes.read, &nodes.unread));
        let _ = (answer.partitions(), answer.licences(), answer.reservations());
        jobs.and(nodes).map(|_| ())
    })
}

pub(super) fn slurm_sites() -> Vec<Vec<u8>> {
    let recorded =
        files(&[RECORDED], &["nodes.txt", "partitions.txt", "nodes.json", "partitions.json"]);
    let configuration = "ClusterName=alps\nNodeName=DEFAULT CPUs=64 RealMemory=1000\nNodeName=c[1-9] Feature=ib \\\n  Gres=gpu:2\n\
        NodeSet=fast Feature=ib\nPartitionName=all Nodes=ALL\nPartitionName=fast Nodes=fast\nSwitchName=s1 Nodes=c[1-4]\n\
        NodeName=c1 Name=gpu Type=a100 File=/dev/nvidia[0-1]\n";
    [recorded, vec![configuration.as_bytes().to_vec()]].concat()
}

pub(super) fn slurm_site(_: &Place, input: &[u8]) -> String {
    text(input, |text| {
        let mut reader = SiteReader::default();
        reader.read("a description", text)?;
        reader.finish(&[]).map(|_| ())
    })
}

pub(super) fn slurm_priority_answers() -> Vec<Vec<u8>> {
    let recorded = files(&[RECORDED], &["configuration.txt", "partitions.txt"]);
    let tables = [
        "Cluster|Account|User|Par Name|Share|Priority\nlab|root|||1|\nlab|a||root|4|\nlab|a|al||parent|7\n",
        "Account|User|RawShares|RawUsage\nroot||0|9\n a||4|9\n  a|al|1|9\n",
        "Name|Priority|GrpTRES\nnormal|0|\nhigh|50|cpu=8\n",
    ];
    [recorded, tables.map(|table| table.as_bytes().to_vec()).to_vec()].concat()
}

pub(super) fn slurm_priorities(_: &Place, input: &[u8]) -> String {
    text(input, |text| Priorities::default().read("an answer", text))
}

pub(super) fn slurm_indices() -> Vec<Vec<u8>> {
    files(&[RECORDED], &["index.json"])
}

pub(super) fn slurm_recording(place: &Place, input: &[u8]) -> String {
    place.file("index.json", input);
    let recording = Recording::read(&place.path(""));
    if let Ok(recording) = &recording {
        let _ = recording.answer(Reading::Jobs);
    }
    told(recording)
}

pub(super) fn rest_answers() -> Vec<Vec<u8>> {
    texts(&[
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"errors\": [] } ",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"errors\r\n7;x=y\r\n\": [] }\r\n0\r\n\r\n",
        "HTTP/1.1 401 UNAUTHORIZED\r\nConnection: close\r\n\r\nAuthentication failure",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
    ])
}

/// An answer of slurmrestd, from a socket. The client asks again and again while it agrees on a version, and gets the same.
pub(super) fn rest_answer(place: &Place, input: &[u8]) -> String {
    thread_local!(static LISTENER: RefCell<Option<(std::path::PathBuf, UnixListener)>> = const { RefCell::new(None) });
    LISTENER.with_borrow_mut(|listener| {
        let path = place.path("socket");
        if listener.as_ref().is_none_or(|(of, _)| *of != path) {
            *listener =
                Some((path.clone(), UnixListener::bind(&path).expect("a socket can be made")));
        }
        let (path, listener) = listener.as_ref().expect("it was made");
        let address: Address = path.display().to_string().parse().expect("an address");
        let rest = Rest::new(address, None, Commands::new(Programs::default()));
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Ok((mut stream, _)) = listener.accept() {
                    if is_over.load(std::sync::atomic::Ordering::Acquire) {
                        return;
                    }
                    let mut request = [0; 4096];
                    let _ = stream.read(&mut request);
                    // Who has read enough closes the connection.
                    let _ = stream.write_all(input);
                }
            });
            let agreed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rest.parser()));
            is_over.store(true, std::sync::atomic::Ordering::Release);
            drop(std::os::unix::net::UnixStream::connect(path));
            match agreed {
                Ok(agreed) => told(agreed),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    })
}

pub(super) fn slurm_phrases() -> Vec<Vec<u8>> {
    texts(&[
        "n[1-3,7],m[01-10]x",
        "n1",
        "rack[1-2]node[001-004]",
        "busbar app=EP slowdown=30% nodes=2-8 malleable",
        "busbar app=ep",
        "1-5,7%3",
        "101_[1-10:2%4]",
        "slurm 23.11.4",
        "26.05.3",
        "22.05.8-pre1",
        "/run/slurmrestd.sock",
        "http://localhost:6820",
        "http://[::1]:6820",
    ])
}

pub(super) fn slurm_words(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let hosts = text.parse::<HostList>();
    if let Ok(hosts) = &hosts {
        let again: HostList = hosts.to_string().parse().expect("what was written is read");
        assert!(again.is_same_set(hosts), "{hosts}");
    }
    told(hosts)
        + &told(words::Words::read(text))
        + &told(text.parse::<slurm_tasks::Tasks>())
        + &told(text.parse::<slurm_version::Version>())
        + &told(text.parse::<Address>())
}
