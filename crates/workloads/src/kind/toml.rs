//! Which kind of TOML a file is, by its keys. It need not be right: whoever reads it says what is wrong.

use super::FileKind;

/// Keys that one kind alone has.
const KEYS: &[(FileKind, &[&str])] = &[
    (
        FileKind::Experiment,
        &[
            "policies",
            "budgets",
            "workloads",
            "seeds",
            "rank_by",
            "title",
            "partitions",
            "enforce_limits",
            "bsld_threshold",
            "demand_charge",
            "believe",
            "allow",
            "guard",
            "outages",
            "window",
        ],
    ),
    (
        FileKind::Machine,
        &[
            "processors_per_node",
            "sockets_per_node",
            "variation",
            "[power]",
            "[dvfs]",
            "[parts]",
            "[off]",
            "[cooling]",
            "[partition]",
        ],
    ),
    (FileKind::Agent, &["node", "[hardware]", "[gpu]", "[listen]", "[range]"]),
    (
        FileKind::Daemon,
        &[
            "policy",
            "budget",
            "socket",
            "state",
            "period",
            "takeover",
            "last_resort",
            "kill_after",
            "retention",
            "operators",
            "see_all",
            "[daily]",
            "[limits]",
            "[jobs]",
            "[log]",
            "[engine]",
            "[agents]",
            "[slurm]",
            "[local]",
            "[web]",
        ],
    ),
];

/// The kind, if this is TOML at all.
pub(super) fn kind(text: &[u8]) -> Option<FileKind> {
    let text = String::from_utf8_lossy(text);
    let keys = keys(&text)?;
    let kind = KEYS.iter().find(|(_, own)| keys.iter().any(|key| own.contains(&key.as_str())));
    let has = |key: &str| keys.iter().any(|each| each == key);
    Some(match kind {
        Some((kind, _)) => *kind,
        // A machine need not say more, and an experiment may have other numbers of nodes in a list.
        None if has("nodes") && !text.contains("nodes = [") => FileKind::Machine,
        None => FileKind::Toml,
    })
}

/// The keys before the first table, and the names of tables in brackets; nothing if the first line that says
/// something is neither.
fn keys(text: &str) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    let mut is_in_table = false;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(table) = line.strip_prefix('[') {
            let name: &str =
                table.trim_start_matches('[').split([']', '.']).next().unwrap_or_default();
            if is_key(name.trim()) && (!keys.is_empty() || line.contains(']')) {
                keys.push(format!("[{}]", name.trim()));
                is_in_table = true;
            }
        } else if let Some((key, _)) = line.split_once('=')
            && is_key(key.trim())
            && !is_in_table
        {
            // A dotted key is one of a table.
            keys.push(match key.trim().split_once('.') {
                Some((table, _)) => format!("[{table}]"),
                None => key.trim().to_owned(),
            });
        }
        if keys.is_empty() {
            return None;
        }
    }
    (!keys.is_empty()).then_some(keys)
}

fn is_key(text: &str) -> bool {
    let is_of_keys = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    !text.is_empty() && text.chars().all(is_of_keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_files_apart() {
        let cases = [
            ("policies = [\"easy\"]\n", Some(FileKind::Experiment)),
            ("# a comparison\nnodes = [1, 2]\nseeds = 3\n", Some(FileKind::Experiment)),
            ("nodes = 64\n", Some(FileKind::Machine)),
            ("name = \"c\"\nnodes = 64\n[power]\nnode = \"350W\"\n", Some(FileKind::Machine)),
            ("[[partition]]\nname = \"gpu\"\n", Some(FileKind::Machine)),
            ("power.node = \"350W\"\n", Some(FileKind::Machine)),
            (
                "policy = \"easy\"\nbudget = \"none\"\n[jobs]\numask = \"022\"\n",
                Some(FileKind::Daemon),
            ),
            ("state = \"/var/lib/x\"\n[hardware]\nemulate = false\n", Some(FileKind::Agent)),
            ("polices = [\"easy\"]\n", Some(FileKind::Toml)),
            ("", None),
            ("a plain sentence\nnodes = 64\n", None),
            ("[1, 2, 3\n", None),
        ];
        for (text, expected) in cases {
            assert_eq!(kind(text.as_bytes()), expected, "{text:?}");
        }
    }
}
