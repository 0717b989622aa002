//! Says what a site lacks for one of Busbar's modes, with what to do about each point.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::calls::Reading;
use crate::cluster::Cluster;
use crate::commands::Commands;
use crate::error::SlurmError;
use crate::model::Partition;
use crate::setup::{self, Fail, Mode, Site, Switch};
use crate::version::Version;

/// Jobs that ended are remembered for at least this many seconds, or Busbar may never see how they ended.
const LEAST_JOB_AGE: u64 = 30;

/// How a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Fine,
    /// Busbar works without it, but not as well.
    Advice,
    /// Busbar does not work without it.
    Missing,
}

/// One point that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    /// The checked item.
    pub what: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// The result.
    pub found: String,
    /// What to do; empty if nothing.
    pub to_do: String,
}

fn fine(what: &'static str, found: impl Into<String>) -> Point {
    Point { what, verdict: Verdict::Fine, found: found.into(), to_do: String::new() }
}

fn missing(what: &'static str, found: impl Into<String>, to_do: impl Into<String>) -> Point {
    Point { what, verdict: Verdict::Missing, found: found.into(), to_do: to_do.into() }
}

fn advice(what: &'static str, found: impl Into<String>, to_do: impl Into<String>) -> Point {
    Point { verdict: Verdict::Advice, ..missing(what, found, to_do) }
}

/// The values of the running configuration.
struct Values(Vec<(String, String)>);

impl Values {
    fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
        found.map_or("", |(_, value)| value.as_str())
    }

    fn is_set(&self, key: &str) -> bool {
        !["", "(null)", "N/A", "(none)"].contains(&self.get(key))
    }

    fn has(&self, key: &str, word: &str) -> bool {
        self.get(key).split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    }
}

/// Looks at everything. Points that cannot be looked at because an earlier one is missing are left out.
pub fn check(commands: &Commands, site: &Site) -> Vec<Point> {
    let version = match commands.version() {
        Ok(version) => version,
        Err(error) => {
            let to_do =
                "install Slurm's commands on this host, or name their folder with --programs";
            return vec![missing("Slurm's commands", error.to_string(), to_do)];
        }
    };
    let mut points = vec![of_version(version)];
    let values = match commands.configuration() {
        Ok(values) => Values(values),
        Err(error) => {
            points.push(missing("slurmctld", error.to_string(), to_do_for(&error)));
            return points;
        }
    };
    points.push(fine("slurmctld", format!("answers for cluster {}", values.get("ClusterName"))));
    points.push(of_rights(&values));
    points.push(of_age(&values));
    if site.mode != Mode::Watch {
        points.push(of_plug_in(&values));
        points.push(of_script(&values, site));
        points.extend(of_hooks(&values));
    }
    if site.mode != Mode::Watch {
        points.extend(of_partitions(commands, site, version));
        points.extend(site.is_shared.then(|| of_parts(&values)));
    }
    match site.mode {
        Mode::Watch => (),
        Mode::Steer => {
            points.push(of_resizing(&values));
            points.extend((site.fail == Fail::Admit).then(|| of_licence(commands, site)));
        }
        Mode::Admit => {
            points.push(of_licence(commands, site));
            points.push(of_accounting(&values, site));
        }
    }
    points
}

/// Whether nothing is missing.
pub fn is_complete(points: &[Point]) -> bool {
    points.iter().all(|point| point.verdict != Verdict::Missing)
}

fn to_do_for(error: &SlurmError) -> String {
    match error {
        SlurmError::Unreachable { .. } => {
            "start slurmctld, or set SLURM_CONF to the cluster's slurm.conf"
        }
        SlurmError::Timeout { .. } => "check the log of slurmctld, and 'scontrol ping'",
        _ => "make sure that 'scontrol show config' works for this user",
    }
    .to_owned()
}

fn of_version(version: Version) -> Point {
    let what = "version";
    if !version.is_supported() {
        return missing(
            what,
            format!("Slurm {version}"),
            format!("upgrade to {} or newer", Version::OLDEST),
        );
    }
    match version.is_newer_than_tried() {
        true => advice(
            what,
            format!("Slurm {version}, which was not tested with Busbar"),
            "test it on a partition without users first",
        ),
        false => fine(what, format!("Slurm {version}")),
    }
}

fn of_rights(values: &Values) -> Point {
    let own = rustix::process::geteuid().as_raw();
    let owner = values.get("SlurmUser");
    let is_owner = owner.contains(&format!("({own})"));
    match own == 0 || is_owner {
        true => fine("rights", format!("user {own} may act on the cluster")),
        false => advice(
            "rights",
            format!("user {own} is neither root nor SlurmUser ({owner})"),
            "run Busbar as root or SlurmUser, or make the user a Slurm operator: sacctmgr modify user NAME set adminlevel=Operator",
        ),
    }
}

fn of_age(values: &Values) -> Point {
    let text = values.get("MinJobAge");
    let seconds: u64 = text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    match seconds >= LEAST_JOB_AGE {
        true => fine("MinJobAge", text),
        false => advice(
            "MinJobAge",
            text,
            format!(
                "set MinJobAge={LEAST_JOB_AGE} or more in slurm.conf; otherwise jobs are forgotten before Busbar sees their ends"
            ),
        ),
    }
}

fn of_plug_in(values: &Values) -> Point {
    match values.has("JobSubmitPlugins", "lua") || values.has("JobSubmitPlugins", "job_submit/lua")
    {
        true => fine("JobSubmitPlugins", values.get("JobSubmitPlugins")),
        false => missing(
            "JobSubmitPlugins",
            "lua is not among them",
            "write JobSubmitPlugins=lua into slurm.conf and restart slurmctld",
        ),
    }
}

/// What slurmdbd keeps account of besides its usual resources; `None` if there is none.
pub fn tracked(commands: &Commands) -> Result<Option<Vec<String>>, SlurmError> {
    const USUAL: [&str; 8] =
        ["cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"];
    let values = Values(commands.configuration()?);
    let all = values.get("AccountingStorageTRES").split(',').map(str::trim);
    let others = all.filter(|name| !name.is_empty() && !USUAL.contains(name)).map(str::to_owned);
    let has_accounting = values.get("AccountingStorageType").contains("slurmdbd");
    Ok(has_accounting.then(|| others.collect()))
}

/// The folder of the cluster's configuration, as slurmctld knows it.
pub fn conf_folder(commands: &Commands) -> Result<PathBuf, SlurmError> {
    let values = Values(commands.configuration()?);
    Ok(folder_of(&values))
}

fn folder_of(values: &Values) -> PathBuf {
    Path::new(values.get("SLURM_CONF")).parent().map_or_else(|| "/etc/slurm".into(), Path::to_owned)
}

fn of_script(values: &Values, site: &Site) -> Point {
    let what = "job_submit.lua";
    let path = folder_of(values).join(what);
    let fail = if site.fail == Fail::Admit { " --fail admit" } else { "" };
    let print = format!(
        "busbar slurm setup --mode {}{fail} --write {}",
        site.mode,
        folder_of(values).display()
    );
    let Ok(text) = fs::read_to_string(&path) else {
        let found = format!("{} cannot be read here", path.display());
        return missing(what, found, format!("on the host of slurmctld: {print}"));
    };
    let expected = setup::job_submit(site);
    if Switch::read(&site.off_file) == Switch::Off {
        let found = format!("{} says off, so the plug-in does nothing", site.off_file.display());
        return advice(what, found, "remove the file, or start the daemon, to use Busbar again");
    }
    if text == expected {
        return fine(what, format!("{} is up to date", path.display()));
    }
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match first(&text) == first(&expected) {
        true => advice(
            what,
            format!("{} has other values", path.display()),
            format!("if that is not intended: {print}"),
        ),
        false
            if text.contains("busbar_submit")
                && text.contains(&format!(
                    "version {}, mode {}",
                    setup::LUA_VERSION,
                    site.mode
                )) =>
        {
            advice(what, format!("{} is the site's own and calls Busbar's", path.display()), "")
        }
        false => missing(
            what,
            format!("{} is not Busbar's for mode {}", path.display(), site.mode),
            format!("{print}; a plug-in of your own can call busbar_submit and busbar_modify"),
        ),
    }
}

fn of_hooks(values: &Values) -> Vec<Point> {
    let hook = |what: &'static str, is_needed: bool| {
        // Newer versions number them: Prolog[0].
        let numbered = format!("{what}[0]");
        let key = if values.is_set(what) { what } else { numbered.as_str() };
        if !values.is_set(key) {
            let to_do =
                format!("write {what}=... into slurm.conf ('busbar slurm setup' prints it)");
            let point = if is_needed { missing } else { advice };
            return point(what, "none is configured".to_owned(), to_do);
        }
        let path = values.get(key);
        let mode = fs::metadata(path).map(|found| found.permissions().mode());
        match mode {
            Ok(mode) if mode & 0o111 == 0 => missing(
                what,
                format!("{path} cannot be executed"),
                format!("chmod 755 {path}, on every node"),
            ),
            Ok(_) => fine(what, path),
            Err(_) => advice(
                what,
                format!("{path} is not on this host"),
                "make sure that it is on every node",
            ),
        }
    };
    let flags = match values.has("PrologFlags", "Alloc") {
        true => fine("PrologFlags", values.get("PrologFlags")),
        false => missing(
            "PrologFlags",
            "Alloc is not among them, so a prolog may run late",
            "write PrologFlags=Alloc into slurm.conf and restart slurmctld",
        ),
    };
    vec![hook("Prolog", true), hook("Epilog", false), flags]
}

fn of_partitions(commands: &Commands, site: &Site, version: Version) -> Vec<Point> {
    let what = "partitions";
    let printed = commands.ask(Reading::Partitions);
    let (printed, partitions) = match (printed, commands.partitions()) {
        (Ok(printed), Ok(partitions)) => (printed, partitions),
        (Err(error), _) | (_, Err(error)) => {
            return vec![missing(what, error.to_string(), to_do_for(&error))];
        }
    };
    let mut points = Vec::new();
    for name in &site.partitions {
        if !partitions.iter().any(|partition| partition.name == *name) {
            let found = format!("there is no partition {name}");
            points.push(missing(what, found, "name one that exists with --partition"));
        }
    }
    let (ours, others): (Vec<Partition>, Vec<Partition>) = partitions
        .into_iter()
        .partition(|one| site.partitions.is_empty() || site.partitions.contains(&one.name));
    let share = |partition: &Partition| match site.is_shared {
        true => of_shared_nodes(partition, &printed),
        false => of_whole_nodes(partition, &printed, version),
    };
    points.extend(ours.iter().map(share));
    points.extend(others.iter().filter_map(|other| of_overlap(other, &ours)));
    points
}

/// What `scontrol -o show partition` prints of a partition.
fn line_of<'a>(partition: &Partition, printed: &'a str) -> &'a str {
    let begin = format!("PartitionName={} ", partition.name);
    printed.lines().find(|line| line.starts_with(&begin)).unwrap_or_default()
}

/// Whether Slurm can give jobs parts of nodes.
fn of_parts(values: &Values) -> Point {
    let what = "SelectType";
    let found = format!("{} with {}", values.get(what), values.get("SelectTypeParameters"));
    match values.get(what) {
        "select/cons_tres" | "select/cons_res" => fine(what, found),
        _ => missing(
            what,
            found,
            "write SelectType=select/cons_tres into slurm.conf and restart slurmctld, or leave --shared out",
        ),
    }
}

/// Jobs that share nodes must not share processors as well: each counts with those that it has.
fn of_shared_nodes(partition: &Partition, printed: &str) -> Point {
    let what = "partition";
    let name = &partition.name;
    let line = line_of(partition, printed);
    match ["OverSubscribe=YES", "OverSubscribe=FORCE"].iter().any(|word| line.contains(word)) {
        false => fine(what, format!("{name} gives each processor to one job")),
        true => missing(
            what,
            format!("{name} lets jobs share processors"),
            format!("write OverSubscribe=NO into the line of partition {name}"),
        ),
    }
}

/// Caps hold for whole nodes, so jobs should not share them. Versions differ in how they say that.
fn of_whole_nodes(partition: &Partition, printed: &str, version: Version) -> Point {
    let what = "partition";
    let name = &partition.name;
    let line = line_of(partition, printed);
    let says_so =
        ["OverSubscribe=EXCLUSIVE", "Exclusive=NODE", "Exclusive=TOPO", "ExclusiveTopo=YES"];
    match line.split(' ').any(|word| says_so.contains(&word)) {
        true => fine(what, format!("{name} allocates whole nodes")),
        false => advice(
            what,
            format!("{name} lets jobs share nodes; the plug-in requests whole ones"),
            format!("write {} into the line of partition {name}", version.whole_nodes()),
        ),
    }
}

/// What Slurm starts through a partition that is not Busbar's, nobody asks Busbar for: it would draw power beyond the budget.
fn of_overlap(other: &Partition, ours: &[Partition]) -> Option<Point> {
    let nodes: HashSet<&String> = other.nodes.names().iter().collect();
    let shared = |one: &&Partition| one.nodes.names().iter().any(|name| nodes.contains(name));
    let with = ours.iter().find(shared)?;
    let name = &other.name;
    Some(missing(
        "partitions",
        format!(
            "{name} shares nodes with {} and is not managed by Busbar, so its jobs are outside the budget",
            with.name
        ),
        format!("name it with --partition {name} as well, or give it separate nodes"),
    ))
}

fn of_resizing(values: &Values) -> Point {
    let kind = values.get("AccountingStorageType");
    if !kind.contains("slurmdbd") {
        return advice(
            "slurmdbd",
            format!("AccountingStorageType is {kind}"),
            "without slurmdbd a job can change its size once only; install it for malleable jobs",
        );
    }
    match values.has("SchedulerParameters", "permit_job_expansion") {
        true => fine("slurmdbd", kind),
        false => advice(
            "slurmdbd",
            "jobs cannot expand",
            "write permit_job_expansion into SchedulerParameters for malleable jobs",
        ),
    }
}

/// Whether watts are in accounting, where there is one.
fn of_accounting(values: &Values, site: &Site) -> Point {
    let what = "watts in accounting";
    let watts = setup::tracked_name(&site.licence);
    if !values.get("AccountingStorageType").contains("slurmdbd") {
        return advice(
            what,
            "there is no slurmdbd",
            "with slurmdbd, sacct shows the watts of jobs, and accounts can have limits in watts",
        );
    }
    if !values.has("AccountingStorageTRES", &watts) {
        return advice(
            what,
            format!("{watts} is not among AccountingStorageTRES"),
            format!("add {watts} to AccountingStorageTRES in slurm.conf and restart slurmctld"),
        );
    }
    match values.has("AccountingStorageEnforce", "limits") {
        true => fine(what, format!("{watts} is accounted for, and limits hold")),
        false => advice(
            what,
            format!("{watts} is accounted for; limits of accounts do not hold"),
            "write AccountingStorageEnforce=limits into slurm.conf if accounts are to have limits in watts",
        ),
    }
}

fn of_licence(commands: &Commands, site: &Site) -> Point {
    let name = &site.licence;
    match commands.licences() {
        Err(error) => missing("licences", error.to_string(), to_do_for(&error)),
        Ok(all) => match all.iter().find(|licence| licence.name == *name) {
            Some(licence) if licence.total > 0 && ![0, licence.total].contains(&site.watts) => {
                advice(
                    "licences",
                    format!("there are {} of {name}, not {}", licence.total, site.watts),
                    format!(
                        "if the feed has {0} W: write Licenses={name}:{0} into slurm.conf and run scontrol reconfigure",
                        site.watts
                    ),
                )
            }
            Some(licence) if licence.total > 0 => fine(
                "licences",
                format!(
                    "{} of {name}, {} used, {} reserved",
                    licence.total, licence.used, licence.reserved
                ),
            ),
            _ => missing(
                "licences",
                format!("there is no licence {name}"),
                format!("write Licenses={name}:WATTS into slurm.conf and run scontrol reconfigure"),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(name: &str, nodes: &str) -> Partition {
        Partition { name: name.to_owned(), nodes: nodes.parse().unwrap(), ..Partition::default() }
    }

    #[test]
    fn whole_nodes_are_said_as_each_version_does() {
        let main = partition("main", "n[1-4]");
        let verdict = |line: &str, version: &str| {
            let printed =
                format!("PartitionName=mainly OverSubscribe=NO\nPartitionName=main {line}\n");
            of_whole_nodes(&main, &printed, version.parse().unwrap())
        };
        for line in
            ["OverSubscribe=EXCLUSIVE State=UP", "Exclusive=NODE State=UP", "Exclusive=TOPO"]
        {
            for version in ["22.05.8", "26.05.3"] {
                assert_eq!(verdict(line, version).verdict, Verdict::Fine, "{line}");
            }
        }
        for (version, words) in
            [("22.05.8", "OverSubscribe=EXCLUSIVE"), ("26.05.3", "Exclusive=NODE")]
        {
            let point = verdict("Exclusive=USER OverSubscribe=NO", version);
            assert_eq!(point.verdict, Verdict::Advice);
            assert!(point.to_do.contains(words), "{point:?}");
        }
    }

    #[test]
    fn jobs_on_shared_nodes_have_processors_of_their_own() {
        let main = partition("main", "n[1-4]");
        let verdict = |line: &str| {
            let printed =
                format!("PartitionName=mainly OverSubscribe=NO\nPartitionName=main {line}\n");
            of_shared_nodes(&main, &printed).verdict
        };
        assert_eq!(verdict("OverSubscribe=NO State=UP"), Verdict::Fine);
        assert_eq!(verdict("OverSubscribe=FORCE:2 State=UP"), Verdict::Missing);
        assert_eq!(verdict("OverSubscribe=YES:4"), Verdict::Missing);
        let selected = |name: &str| Values(vec![("SelectType".to_owned(), name.to_owned())]);
        assert_eq!(of_parts(&selected("select/cons_tres")).verdict, Verdict::Fine);
        assert_eq!(of_parts(&selected("select/linear")).verdict, Verdict::Missing);
    }

    /// Slurm would start jobs on nodes of Busbar's without asking.
    #[test]
    fn partitions_that_share_nodes_with_busbars_are_refused() {
        let ours = [partition("main", "n[1-4]"), partition("big", "n[5-8]")];
        assert_eq!(of_overlap(&partition("free", "n[9-12]"), &ours), None);
        let point = of_overlap(&partition("debug", "n[8-9]"), &ours).unwrap();
        assert_eq!(point.verdict, Verdict::Missing);
        assert!(point.found.starts_with("debug shares nodes with big"), "{point:?}");
        assert!(point.to_do.contains("--partition debug"), "{point:?}");
    }
}
