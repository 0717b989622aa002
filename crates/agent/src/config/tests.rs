use super::*;

fn read(text: &str) -> Result<Config, ConfigError> {
    file::parse(text, Path::new("/etc/busbar/agent.toml"))
}

#[test]
fn the_template_is_the_default() {
    assert_eq!(read(Config::template()).unwrap(), Config::default());
    assert_eq!(read("").unwrap(), Config::default());
}

#[test]
fn what_is_commented_out_in_the_template_is_valid() {
    let lines = Config::template().lines();
    let on = lines.map(|line| match line.strip_prefix("# ") {
        Some(key) if key.contains(" = ") || key.starts_with('[') => key.to_owned(),
        _ => line.to_owned(),
    });
    let text: String = on.map(|line| line + "\n").collect();
    let config = read(&text.replace("group = \"power\"", "group = 0")).unwrap();
    assert_eq!(config.node, "n1");
    assert_eq!(config.caps.safe, Some(Watts::from_watts(120)));
    assert_eq!(config.tcp.unwrap().address.port(), 7117);
    assert_eq!(config.ranges.len(), 1);
}

#[test]
fn paths_count_from_the_file() {
    let config = read("state = \"state\"\n[hardware]\npowercap = \"../tree\"").unwrap();
    assert_eq!(config.state, Path::new("/etc/busbar/state"));
    assert_eq!(config.hardware.powercap, Path::new("/etc/busbar/../tree"));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, expected) in [
        ("period = \"1s\"\nnude = 1", "line 2, field 'nude': unknown field `nude`"),
        ("[caps]\n\nsafe = \"120\"", "line 3, field 'caps.safe': '120' has no known unit of power"),
        ("[caps]\nlease = \"2h\"", "line 2, field 'caps.lease': '2h' is not between 1s and 1h"),
        ("[caps]\ntolerance = \"200%\"", "field 'caps.tolerance': it is at most 100%"),
        ("[caps]\ndomains = [\"cpu\"]", "line 2, field 'caps.domains[0]': unknown variant `cpu`"),
        ("period = 1", "line 1, field 'period': invalid type: integer `1`"),
        ("period = \"1s", "line 1"),
        (
            "[range.package-0]\nlowest = \"90W\"\nhighest = \"80W\"",
            "line 3, field 'range.package-0.highest'",
        ),
        (
            "[listen]\ncontrollers = [\"nobody-here\"]",
            "line 2, field 'listen.controllers': there is no user",
        ),
        ("[listen]\ntcp = \"here\"", "line 2, field 'listen.tcp': write an address with its port"),
        (
            "[listen]\ntcp = \"[::]:1\"",
            "line 2, field 'listen.tcp': it needs 'listen.authority', too",
        ),
        (
            "[listen]\nsocket = \"\"",
            "line 2, field 'listen.socket': the agent has no address to listen on",
        ),
        ("[listen]\nconnections = 0", "line 2, field 'listen.connections': it is 1 to 1000"),
        ("node = \"\"", "line 1, field 'node': a name has 1 to 253 characters"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with("/etc/busbar/agent.toml, line "), "{error}");
        assert!(error.contains(expected), "{error}, not {expected}");
    }
}
