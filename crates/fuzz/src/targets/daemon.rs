//! The files and the messages of the daemon and the agent.

use busbar::agent::{config as agent_config, wire as agent_wire};
use busbar::live::server::socket::frame::{Lines, line_of, parse};
use busbar::live::wire::{RefusalKind, Reply, Sent};

use super::{told, told_why};
use crate::engine::Place;
use crate::examples::{files, quoted, texts};

pub(super) fn daemon_configs() -> Vec<Vec<u8>> {
    let mut all = files(&["crates/live/src/server/config"], &[".toml"]);
    // The template has every key, behind a mark.
    let plain = |template: &Vec<u8>| {
        let text = String::from_utf8_lossy(template);
        let lines = text.lines().map(|line| match line.strip_prefix('#') {
            Some(rest) if rest.contains(" = ") || rest.starts_with('[') => rest.trim_start(),
            _ => line,
        });
        lines.collect::<Vec<_>>().join("\n").into_bytes()
    };
    all.extend(all.iter().map(plain).collect::<Vec<_>>());
    all.extend(texts(&[
        "machine = \"8\"\nbudget = \"60%\"\npolicy = \"easy\"\nperiod = \"1s\"\n[limits]\nconnections = 10\n[jobs]\numask = \"027\"\nulimits = { nofile = 200, cpu = \"77:88\" }\n",
        "machine = \"8\"\nengine = \"slurm\"\n[slurm]\nmode = \"steer\"\n[web]\nlisten = \"127.0.0.1:7411\"\n[agents]\nnodes = [{ name = \"n1\", address = \"n1:7410\" }]\n",
    ]));
    all
}

pub(super) fn daemon_config(place: &Place, input: &[u8]) -> String {
    told_why(busbar::live::server::config::Config::load(&place.file("busbar.toml", input)))
}

pub(super) fn agent_configs() -> Vec<Vec<u8>> {
    let mut all = files(&["crates/agent/src/config"], &[".toml"]);
    all.extend(texts(&[
        "node = \"n1\"\nstate = \"state\"\nperiod = \"1s\"\nsocket = \"socket\"\n[caps]\ndomains = [\"package\"]\nsafe = \"60W\"\nlease = \"60s\"\n[hardware]\npowercap = \"tree\"\n",
    ]));
    all
}

pub(super) fn agent_config(place: &Place, input: &[u8]) -> String {
    told(agent_config::Config::load(&place.file("agent.toml", input)))
}

pub(super) fn requests() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "\x07\"status\"\n",
        "\x30{\"show\":{\"job\":7}}\n\"queue\"\n",
        "\x05{\"budget\":{\"set\":\"60%\"}}\n",
        "\x7f{\"protocol\":\"2.0\",\"history\":{\"job\":null,\"after\":0,\"limit\":10}}\n",
        "\x10{\"cancel\":{\"jobs\":[1,2,3]}}\n{\"hold\":{\"jobs\":[1]}}\n{\"release\":{\"jobs\":[1]}}\n",
        "\x20{\"forecast\":{\"budget\":[{\"after\":60000,\"limit\":\"500W\"}],\"policy\":\"share\",\"percent\":50}}\n",
        "\x40{\"submit\":{\"wish\":{\"nodes\":2,\"time\":60000,\"name\":\"a\",\"held\":true},\"command\":[\"true\"],\"folder\":\"/\",\"environment\":[]}}\n",
    ]);
    all.extend(quoted(&["crates/live/src/server/socket/tests.rs"]));
    all
}

/// The first byte says how long the pieces are in which the rest arrives.
pub(super) fn request_lines(_: &Place, input: &[u8]) -> String {
    const LIMIT: usize = 4096;
    let Some((piece, bytes)) = input.split_first() else { return "nothing".to_owned() };
    let (mut lines, mut answer) = (Lines::new(LIMIT), String::new());
    for piece in bytes.chunks(usize::from(*piece) + 1) {
        lines.push(piece);
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(oversized) => {
                    assert_eq!(oversized.limit, LIMIT);
                    return answer + "too long";
                }
            };
            assert!(line.len() <= LIMIT && !line.contains(&b'\n'));
            match parse(&line) {
                Ok(request) => {
                    let written =
                        serde_json::to_vec(&Sent::new(&request)).expect("a request can be written");
                    assert_eq!(parse(&written).expect("and read again"), request);
                    answer += "a request";
                }
                Err(refusal) => {
                    assert!(!refusal.message.is_empty());
                    answer += &refusal.message;
                    let is_malformed = refusal.kind == RefusalKind::Malformed;
                    answer += if is_malformed { "malformed" } else { "refused" };
                    let line = line_of(&Reply::Error(refusal));
                    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
                }
            }
        }
    }
    answer
}

pub(super) fn replies() -> Vec<Vec<u8>> {
    texts(&[
        "\"stopping\"",
        "{\"error\":{\"kind\":\"malformed\",\"message\":\"no\"}}",
        "{\"queue\":[]}",
        "{\"submitted\":{\"job\":7,\"remark\":null}}",
        "{\"done\":[{\"job\":7,\"refusal\":null}]}",
        "{\"history\":[]}",
        "{\"budget\":{\"limit\":100000}}",
    ])
}

pub(super) fn reply(_: &Place, input: &[u8]) -> String {
    let read = serde_json::from_slice::<Reply>(input);
    if let Ok(reply) = &read {
        let line = line_of(reply);
        assert_eq!(serde_json::from_slice::<Reply>(&line).ok().as_ref(), Some(reply));
    }
    told(read)
}

pub(super) fn agent_messages() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "\"read\"",
        "{\"number\":1,\"read\":null}",
        "{\"set\":{\"caps\":{\"node\":120000},\"lease\":60000}}",
        "{\"watch\":{\"period\":1000}}",
        "{\"sample\":{\"at\":1,\"domains\":[]}}",
        "{\"answer\":{\"number\":1}}",
        "\"release\"",
        "{\"hello\":{\"protocol\":\"1.0\",\"name\":\"a\"}}",
    ]);
    all.extend(quoted(&["crates/agent/src/wire.rs"]));
    all
}

pub(super) fn agent_message(_: &Place, input: &[u8]) -> String {
    told(serde_json::from_slice::<agent_wire::Numbered>(input))
        + &told(serde_json::from_slice::<agent_wire::Request>(input))
        + &told(serde_json::from_slice::<agent_wire::Message>(input))
}
