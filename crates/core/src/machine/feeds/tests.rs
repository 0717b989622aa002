use std::path::Path;

use super::*;
use crate::machine::{Machine, check_text};

/// Twelve nodes of 100 W that draw 20 W when they are idle.
const TWELVE: &str = "nodes = 12\n[power]\nnode = '100W'\nidle = '20W'\n";

fn machine(feeds: &str) -> Result<Machine, String> {
    let text = format!("{TWELVE}{feeds}");
    let described = check_text(&text, "m", Path::new(""));
    let described = described.map_err(|problems| {
        let line = problems[0].line.map_or(String::new(), |line| format!("{line}: "));
        format!("{line}{}", problems[0].why)
    })?;
    described.choose(&[]).map_err(|error| error.to_string())
}

const ROOM: &str = "[[feed]]\nname = 'rack1'\nlimit = '300W'\nparent = 'row'\nnodes = '0-3'\n\
    [[feed]]\nname = 'row'\nlimit = '60%'\nnodes = '0-7, 9'\n\
    [[feed]]\nname = 'rack2'\nlimit = 'weekdays 08:00-20:00: 50%, else none'\nparent = 'row'\nnodes = '4-6'\n";

#[test]
fn a_tree_of_feeds() {
    let feeds = machine(ROOM).unwrap().feeds.unwrap();
    let all: Vec<(&str, Option<usize>, u32)> =
        feeds.all().iter().map(|feed| (feed.name.as_str(), feed.parent, feed.nodes)).collect();
    assert_eq!(all, [("row", None, 9), ("rack1", Some(0), 4), ("rack2", Some(0), 3)]);
    assert_eq!(feeds.all()[0].limit, Timetable::Always(Watts::from_watts(540)));
    let rack2: Vec<Watts> = feeds.all()[2].limit.values().copied().collect();
    assert_eq!(rack2, [Watts::from_watts(150), Watts::UNLIMITED]);
    let nodes = |zone: &Zone| zone.nodes.iter().cloned().flatten().collect::<Vec<u32>>();
    let zones: Vec<(Option<usize>, Vec<u32>)> =
        feeds.zones().iter().map(|zone| (zone.feed, nodes(zone))).collect();
    let expected = [
        (Some(1), vec![0, 1, 2, 3]),
        (Some(2), vec![4, 5, 6]),
        (Some(0), vec![7, 9]),
        (None, vec![8, 10, 11]),
    ];
    assert_eq!(zones, expected);
    assert_eq!(feeds.above(0).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(machine("").unwrap().feeds, None);
}

#[test]
fn nodes_are_placed_where_feeds_have_room() {
    let feeds = machine(ROOM).unwrap().feeds.unwrap();
    let free = [4, 3, 2, 3];
    let place = |nodes, fed: [u32; 3], last| feeds.place(nodes, &free, fed.to_vec(), last);
    assert_eq!(place(6, [9, 9, 9], false), Ok(vec![(0, 4), (1, 2)]));
    assert_eq!(place(6, [9, 2, 1], false), Ok(vec![(0, 2), (1, 1), (2, 2), (3, 1)]));
    assert_eq!(place(6, [9, 2, 1], true), Ok(vec![(3, 3), (2, 2), (1, 1)]));
    assert_eq!(place(6, [1, 2, 1], false), Err(Some(0)), "the row is used up");
    assert_eq!(place(9, [8, 2, 9], false), Ok(vec![(0, 2), (1, 3), (2, 2), (3, 2)]));
    assert_eq!(place(11, [8, 2, 9], false), Err(Some(1)), "the first rack is");
    assert_eq!(place(13, [9, 9, 9], false), Err(None), "there are not as many nodes");
}

#[test]
fn mistakes_are_named() {
    let error = |feeds: &str| machine(feeds).unwrap_err();
    let feed = |name: &str, rest: &str| format!("[[feed]]\nname = '{name}'\n{rest}\n");
    let (a, b) =
        (feed("a", "limit = '1kW'\nnodes = '0-5'"), feed("b", "limit = '1kW'\nnodes = '5-7'"));
    let found = error(&(a.clone() + &b));
    assert!(
        found.starts_with(
            "9: feed 'b': node 5 is also in feed 'a', which is neither above nor below"
        ),
        "{found}"
    );
    let found = error(&(a.clone() + &feed("a", "limit = '1kW'\nnodes = '7'")));
    assert_eq!(found, "9: feed 'a': another feed has this name");
    let found = error(&feed("a", "limit = '1kW'"));
    assert!(found.starts_with("5: feed 'a': no node is in it or below it"), "{found}");
    let found = error(&feed("a", "limit = '119W'\nnodes = '0-5'"));
    assert_eq!(
        found,
        "5: feed 'a': 'limit' is 119W, but the 6 nodes below it draw 120W when they are idle"
    );
    let found = error(&feed("a", "limit = 'weekdays: 19%, else 50%'\nnodes = '0-5'"));
    assert!(found.contains("'limit' is 114W, but"), "{found}");
    let found = error(&feed("a", "limit = '1kW'\nnodes = '0-12'"));
    assert!(
        found.contains("node 12 ('nodes') is not in the machine: its 12 nodes are 0-11"),
        "{found}"
    );
    assert!(error(&feed("a", "limit = '1kW'\nnodes = '6-2'")).contains("'6-2', which ends before"));
    assert!(error(&feed("a", "limit = '1kW'\nnodes = 'all'")).contains("write node numbers"));
    assert!(error(&feed("a", "limit = 'much'\nnodes = '1'")).contains("'limit': "));
    assert!(
        error(&feed("a", "limit = '1kW'\nnodes = '1'\nparent = 'raw'")).contains("no feed 'raw'")
    );
    let found = error(
        &(feed("row", "limit = '1kW'") + &feed("a", "limit = '1kW'\nnodes = '1'\nparent = 'raw'")),
    );
    assert!(found.contains("did you mean 'row'? there are row, a"), "{found}");
    let circle = feed("a", "limit = '1kW'\nnodes = '1'\nparent = 'b'")
        + &feed("b", "limit = '1kW'\nparent = 'c'")
        + &feed("c", "limit = '1kW'\nparent = 'b'");
    let found = error(&circle);
    assert!(
        found.starts_with("5: feed 'a': ") && found.ends_with("in a circle: b below c below b")
            || found.ends_with("in a circle: c below b below c"),
        "{found}"
    );
    assert!(error(&feed("a", "limit = '1kW'\nparent = 'a'")).ends_with("a circle: a below a"));
    assert!(error(&feed("a,b", "limit = '1kW'")).contains("without commas"));
    let partitions = "[[partition]]\nname = 'x'\nnodes = 3\n".to_owned()
        + &feed("a", "limit = '1kW'\nnodes = '1'");
    let found = check_text(&partitions, "m", Path::new("")).unwrap_err();
    assert!(found[0].why.contains("no partition with nodes of its own"), "{found:?}");
}

#[test]
fn feeds_keep_the_number_of_nodes() {
    let machine = machine(ROOM).unwrap();
    assert!(machine.with_nodes(13).unwrap_err().to_string().contains("machine with feeds"));
    assert!(machine.with_nodes(12).is_ok());
    assert!(machine.enlarged(crate::units::Share::percent(10)).is_err());
}
