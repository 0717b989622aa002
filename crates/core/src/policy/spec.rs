//! Policies by name: text that round-trips, such as `easy` or `name(key=value)`.

use std::fmt;
use std::str::FromStr;

use crate::call::{Call, CallError};
use crate::freedom::Freedoms;
use crate::heterogeneity::Site;
use crate::machine::Machine;
use crate::model::{Heterogeneous, Model};
use crate::policy::pb_guided::BsldLower;
use crate::policy::{
    Conservative, Easy, EasyPowerSpec, External, ExternalSpec, Fcfs, Gangs, Guide, Nominal,
    OrderSpec, Own, Parm, ParmSpec, PbGuidedSpec, Policy, Ppartition, PpartitionSpec, RmapSpec,
    ShareSpec, Uniform, UniformSpec, UtilityMapper, UtilitySpec,
};
use crate::policy::{external, own};
use crate::spelling::hint;
use crate::units::{Share, Span};

/// A policy as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PolicySpec {
    /// First come, first served.
    Fcfs,
    /// EASY backfilling.
    Easy(OrderSpec),
    /// Conservative backfilling.
    Conservative,
    /// EASY backfilling in which a job too large for the budget runs slower.
    EasyPower(EasyPowerSpec),
    /// DVFS scheduling guided by a power budget.
    PbGuided(PbGuidedSpec),
    /// Power-aware backfilling of moldable jobs.
    Rmap(RmapSpec),
    /// An integer program for moldable and malleable jobs.
    Parm(ParmSpec),
    /// Power shared among jobs on processors that are not alike.
    Ppartition(PpartitionSpec),
    /// The same cap for every processor.
    Uniform(UniformSpec),
    /// The most utility within an energy budget.
    Utility(UtilitySpec),
    /// Busbar's own: free watts shared among free nodes.
    Share(ShareSpec),
    /// A policy from outside the crate.
    Own(&'static Own),
    /// A program in any language.
    External(ExternalSpec),
}

/// The default policy.
impl Default for PolicySpec {
    fn default() -> Self {
        PolicySpec::EASY
    }
}

/// The policy that others are measured by: plain EASY backfilling.
pub fn plain() -> Box<dyn Policy> {
    Box::new(Easy::default())
}

/// What a policy takes from the run it is built for.
#[derive(Clone, Copy)]
pub struct BuildContext<'a> {
    /// The threshold of the bounded slowdown.
    pub bsld_threshold: Span,
    /// Works out the mean bounded slowdown of the workload under plain EASY without a power limit.
    pub plain_bsld: &'a dyn Fn() -> f64,
    /// The machines and what tasks are worth, for policies that map tasks to machines. Without it, they
    /// take all nodes for one type and all jobs for gangs.
    pub site: Option<&'a Site>,
    /// The machine, where a parameter is about it.
    pub machine: Option<&'a Machine>,
    /// What may be done to jobs, where that is said.
    pub freedoms: Option<Freedoms>,
}

/// A run nobody tried before: plain EASY is taken to delay no job at all.
impl Default for BuildContext<'_> {
    fn default() -> Self {
        BuildContext {
            bsld_threshold: Span::from_secs(600),
            plain_bsld: &|| 1.0,
            site: None,
            machine: None,
            freedoms: None,
        }
    }
}

/// Why text does not name a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// There is no policy of this name.
    #[error("unknown policy '{name}'{hint} valid policies: {valid}")]
    Unknown {
        /// The text as written.
        name: String,
        /// What may have been meant, in words.
        hint: String,
        /// What could have been.
        valid: String,
    },
    /// The text or its parameters are wrong.
    #[error("policy {0}")]
    Call(CallError),
    /// The program of an external policy is missing, or cannot be written like this.
    #[error(
        "policy 'external({text})': {why}; write external(./mine) or external(python3 mine.py, limit=10s)"
    )]
    Program {
        /// What was written between the parentheses.
        text: String,
        /// The reason.
        why: &'static str,
    },
    /// The text is longer than any policy needs.
    #[error("it has {length} bytes, and the text of a policy has at most {}", PolicySpec::LONGEST)]
    TooLong {
        /// The length of the text, in bytes.
        length: usize,
    },
    /// There are too many external policies in one process.
    #[error(
        "there are too many external policies: the commands of all together have at most {most} bytes; restart \
        the program"
    )]
    TooMany {
        /// The length that all commands may have together, in bytes.
        most: usize,
    },
    /// A daemon cannot be decided by an external policy.
    #[error(
        "works only in simulations (busbar simulate, compare, plan, whatif), because a daemon cannot wait for an \
        external program; choose a built-in policy"
    )]
    Simulated,
}

impl PolicySpec {
    /// Plain EASY backfilling.
    pub const EASY: PolicySpec = PolicySpec::Easy(OrderSpec::FCFS);

    /// The longest text of a policy, in bytes: more than all parameters of any policy need.
    pub const LONGEST: usize = 4096;

    /// The policy that a request to a daemon names. One for simulations alone is refused before it is made, since
    /// the command of an [external](PolicySpec::External) policy is kept for as long as the process lives.
    pub fn for_daemon(text: &str) -> Result<Self, PolicyError> {
        check_length(text)?;
        match inside_of_external(text)? {
            Some(_) => Err(PolicyError::Simulated),
            None => text.parse(),
        }
    }

    /// Every policy there is, with its usual parameters. An [external](PolicySpec::External) policy has none: it
    /// is nothing without its program.
    pub fn all() -> [PolicySpec; 13] {
        let [traditional, naive, adaptive] = RmapSpec::ALL.map(PolicySpec::Rmap);
        [
            PolicySpec::Fcfs,
            PolicySpec::EASY,
            PolicySpec::Conservative,
            PolicySpec::EasyPower(EasyPowerSpec::default()),
            PolicySpec::PbGuided(PbGuidedSpec::default()),
            traditional,
            naive,
            adaptive,
            PolicySpec::Parm(ParmSpec::default()),
            PolicySpec::Ppartition(PpartitionSpec::default()),
            PolicySpec::Uniform(UniformSpec::default()),
            PolicySpec::Utility(UtilitySpec::default()),
            PolicySpec::Share(ShareSpec::default()),
        ]
    }

    /// The same, and those that were [registered](crate::policy::register).
    pub fn known() -> Vec<PolicySpec> {
        let registered = own::registered().into_iter().map(PolicySpec::Own);
        PolicySpec::all().into_iter().chain(registered).collect()
    }

    /// The policy's name, without parameters.
    pub fn name(&self) -> &'static str {
        match self {
            PolicySpec::Fcfs => "fcfs",
            PolicySpec::Easy(_) => "easy",
            PolicySpec::Conservative => "conservative",
            PolicySpec::EasyPower(_) => "easy-power",
            PolicySpec::PbGuided(_) => "pb-guided",
            PolicySpec::Rmap(spec) => spec.name(),
            PolicySpec::Parm(_) => "parm",
            PolicySpec::Ppartition(_) => "ppartition",
            PolicySpec::Uniform(_) => "uniform",
            PolicySpec::Utility(_) => "utility",
            PolicySpec::Share(_) => "share",
            PolicySpec::Own(own) => own.name,
            PolicySpec::External(_) => external::NAME,
        }
    }

    /// A policy ready to decide.
    pub fn build(&self, setting: &BuildContext<'_>) -> Box<dyn Policy> {
        match self {
            PolicySpec::Fcfs => Box::new(Fcfs),
            PolicySpec::Own(own) => (own.build)(setting),
            PolicySpec::External(spec) => Box::new(External::new(*spec, setting)),
            PolicySpec::Easy(order) => order.backfill(Nominal),
            PolicySpec::Conservative => Box::new(Conservative::default()),
            PolicySpec::EasyPower(spec) => spec.build(setting),
            PolicySpec::PbGuided(spec) => {
                let bounds = spec.bounds(setting.plain_bsld, setting.bsld_threshold);
                spec.order.backfill(Guide::new(bounds))
            }
            PolicySpec::Rmap(spec) => spec.build(),
            PolicySpec::Parm(spec) => Box::new(Parm::with(*spec)),
            PolicySpec::Ppartition(spec) => Box::new(Ppartition::with(*spec)),
            PolicySpec::Uniform(spec) => Box::new(Uniform::with(*spec)),
            PolicySpec::Share(spec) => spec.build(setting.freedoms),
            PolicySpec::Utility(spec) => match setting.site {
                Some(site) => Box::new(UtilityMapper::new(*spec, site)),
                None => Box::new(Gangs::new(*spec)),
            },
        }
    }

    /// How tasks run on the machines of several types that they come with, under a policy that maps tasks to
    /// machines; nothing for all others, which take them for jobs like any.
    pub fn on_site(&self, site: &Site) -> Option<Box<dyn Model>> {
        let maps_tasks = matches!(self, PolicySpec::Utility(_));
        maps_tasks.then(|| Box::new(Heterogeneous::new(site.tables.clone())) as Box<dyn Model>)
    }

    /// What people should know who let it decide about jobs that nobody knows beforehand.
    pub fn caution(&self) -> Option<&'static str> {
        let is_auto = |spec: &PbGuidedSpec| spec.bsld_lower == BsldLower::Auto;
        matches!(self, PolicySpec::PbGuided(spec) if is_auto(spec)).then_some(
            "bsld_lower=auto needs jobs that are known in advance; a daemon uses 1, so few jobs are slowed; write \
            a number",
        )
    }

    /// The order in which it looks at jobs, if it takes one.
    pub fn order(mut self) -> Option<OrderSpec> {
        self.order_mut().copied()
    }

    /// The same policy with another order, if it takes one.
    pub fn with_order(mut self, order: OrderSpec) -> Option<Self> {
        *self.order_mut()? = order;
        Some(self)
    }

    fn order_mut(&mut self) -> Option<&mut OrderSpec> {
        match self {
            PolicySpec::Easy(order) => Some(order),
            PolicySpec::EasyPower(spec) => Some(&mut spec.order),
            PolicySpec::PbGuided(spec) => Some(&mut spec.order),
            PolicySpec::Rmap(spec) => Some(&mut spec.order),
            PolicySpec::Share(spec) => Some(&mut spec.order),
            _ => None,
        }
    }

    /// Whether it always does the same under its name, so that results may be kept for the next time.
    pub fn is_fixed(&self) -> bool {
        match self {
            PolicySpec::Own(own) => own.is_fixed,
            // The text names a file, and who knows what is in it the next time.
            PolicySpec::External(_) => false,
            _ => true,
        }
    }

    /// Whether it can decide in simulations alone: it may give up, and take as long as it likes.
    pub fn is_for_simulations(&self) -> bool {
        matches!(self, PolicySpec::External(_))
    }

    /// The share of every limit that is kept back from the policy, because jobs may draw more than
    /// is believed.
    pub fn guard(&self) -> Share {
        match self {
            PolicySpec::Rmap(spec) => spec.guard,
            _ => Share::percent(0),
        }
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = match self {
            PolicySpec::Fcfs | PolicySpec::Conservative | PolicySpec::Own(_) => Vec::new(),
            PolicySpec::Easy(order) => order.unusual(),
            PolicySpec::EasyPower(spec) => spec.unusual(),
            PolicySpec::PbGuided(spec) => spec.unusual(),
            PolicySpec::Rmap(spec) => spec.unusual(),
            PolicySpec::Parm(spec) => spec.unusual(),
            PolicySpec::Ppartition(spec) => spec.unusual(),
            PolicySpec::Uniform(spec) => spec.unusual(),
            PolicySpec::Utility(spec) => spec.unusual(),
            PolicySpec::Share(spec) => spec.unusual(),
            PolicySpec::External(spec) => spec.arguments(),
        };
        f.write_str(self.name())?;
        if !parameters.is_empty() {
            write!(f, "({})", parameters.join(", "))?;
        }
        Ok(())
    }
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        check_length(text)?;
        if let Some(inside) = inside_of_external(text)? {
            return ExternalSpec::from_inside(inside).map(PolicySpec::External);
        }
        let known = PolicySpec::known();
        let name = text.split('(').next().unwrap_or_default().trim();
        let found = known.iter().copied().find(|policy| policy.name() == name);
        // Whatever follows a misspelt name, it is the name that is to be mended.
        if found.is_none() && !name.is_empty() {
            let mut names: Vec<&str> = known.iter().map(PolicySpec::name).collect();
            names.push(external::NAME);
            let hint = hint(name, names.iter().copied());
            let valid = names.join(", ") + "(PROGRAM)";
            return Err(PolicyError::Unknown { name: name.to_owned(), hint, valid });
        }
        let call: Call = text.parse().map_err(PolicyError::Call)?;
        let policy = found.unwrap_or_default();
        policy.with_parameters(&call).map_err(PolicyError::Call)
    }
}

/// Refuses text that is longer than that of any policy before anything else is done with it.
fn check_length(text: &str) -> Result<(), PolicyError> {
    match text.len() {
        length if length > PolicySpec::LONGEST => Err(PolicyError::TooLong { length }),
        _ => Ok(()),
    }
}

/// What stands between the parentheses of an external policy; nothing for other policies. It is not of the form
/// `key=value` throughout, as parameters are.
fn inside_of_external(text: &str) -> Result<Option<&str>, PolicyError> {
    let text = text.trim();
    let (name, rest) = text.split_once('(').unwrap_or((text, ")"));
    if name.trim_end() != external::NAME {
        return Ok(None);
    }
    let missing = CallError::Form { text: text.to_owned(), why: "the closing ')' is missing" };
    rest.strip_suffix(')').map(Some).ok_or(PolicyError::Call(missing))
}

impl PolicySpec {
    fn with_parameters(self, call: &Call) -> Result<Self, CallError> {
        match self {
            // External ones were read before.
            PolicySpec::Fcfs
            | PolicySpec::Conservative
            | PolicySpec::Own(_)
            | PolicySpec::External(_) => {
                call.parameters(&[])?;
                Ok(self)
            }
            PolicySpec::Easy(mut order) => {
                for (key, value) in call.parameters(&OrderSpec::PARAMETERS)? {
                    order.set(call, key, value)?;
                }
                Ok(PolicySpec::Easy(order))
            }
            PolicySpec::EasyPower(_) => EasyPowerSpec::from_call(call).map(PolicySpec::EasyPower),
            PolicySpec::PbGuided(_) => PbGuidedSpec::from_call(call).map(PolicySpec::PbGuided),
            PolicySpec::Rmap(spec) => spec.with_parameters(call).map(PolicySpec::Rmap),
            PolicySpec::Parm(_) => ParmSpec::from_call(call).map(PolicySpec::Parm),
            PolicySpec::Ppartition(_) => {
                PpartitionSpec::from_call(call).map(PolicySpec::Ppartition)
            }
            PolicySpec::Uniform(_) => UniformSpec::from_call(call).map(PolicySpec::Uniform),
            PolicySpec::Utility(_) => UtilitySpec::from_call(call).map(PolicySpec::Utility),
            PolicySpec::Share(_) => ShareSpec::from_call(call).map(PolicySpec::Share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for policy in PolicySpec::all() {
            assert_eq!(policy.to_string(), policy.name());
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!(" easy() ".parse(), Ok(PolicySpec::EASY));
        for text in [
            "easy(order=aged)",
            "easy(order=history, halving=12h)",
            "easy-power(oversized=reject)",
            "easy-power(gear=1.7GHz, order=aged)",
            "pb-guided(beta=known, order=history)",
            "share(order=aged)",
            "share(order=history, halving=90min)",
            "share(order=history, predict=time)",
            "easy-power(order=history, predict=off)",
            "pb-guided(beta=known)",
            "pb-guided(lower=12.5%, upper=100%, bsld_lower=3.5, bsld_upper=1.5x, oversized=reject)",
            "pb-guided(bsld_lower=4, bsld_upper=9)",
            "rmap-traditional(node_power=230W)",
            "rmap-naive(guard=15%)",
            "rmap-naive(order=aged, halving=4h)",
            "rmap-adaptive(slowdown=unbounded, guard=15%)",
            "parm(flex=moldable, alpha=0.5, levels=3, guard=0s, gap=0.1%, effort=1000, window=all)",
            "parm(window=8)",
            "ppartition(queues=2/10, dispatch=close, first=uncapped, fewest=25%, sharing=paper)",
            "uniform(cap=75W, queues=2/10, dispatch=stop, seed=7)",
            "uniform(cap=tdp)",
            "utility(heuristic=prioritized-lcfs-all, environment=queued, filter=off, drop=0.25, every=30s, seed=7)",
            "utility(heuristic=priced, filter=off)",
            "ppartition(sharing=gain)",
        ] {
            assert_eq!(text.parse::<PolicySpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn text_that_is_too_long_is_refused_unread() {
        for text in ["external(./mine)", "easy", "(", "unknown(x=1)"] {
            let long = format!("{text:>width$}", width = PolicySpec::LONGEST + 1);
            let refused = PolicyError::TooLong { length: PolicySpec::LONGEST + 1 };
            assert_eq!(long.parse::<PolicySpec>(), Err(refused.clone()));
            assert_eq!(PolicySpec::for_daemon(&long), Err(refused));
        }
        let longest = format!("{:>width$}", "easy", width = PolicySpec::LONGEST);
        assert_eq!(longest.parse(), Ok(PolicySpec::EASY));
    }

    #[test]
    fn mistakes_list_what_is_valid() {
        let error = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert_eq!(
            error("eazy"),
            "unknown policy 'eazy'; did you mean 'easy'? valid policies: fcfs, easy, conservative, easy-power, \
             pb-guided, rmap-traditional, rmap-naive, rmap-adaptive, parm, ppartition, uniform, \
             utility, share, external(PROGRAM)"
        );
        assert!(error("backfill").starts_with("unknown policy 'backfill'; valid policies: fcfs"));
        assert!(
            error("pb-guided(uper=90%)").contains("did you mean 'upper'? it takes lower, upper")
        );
        assert_eq!(error("fcfs(depth=3)"), "policy 'fcfs' has no parameter 'depth'; it takes none");
        assert!(error("share(order=best)").contains("'best': write fcfs, aged or history"));
        assert!(error("easy(predict=no)").contains("'no': write all, time or off"));
        assert!(error("easy-power(gear=2)").contains("such as 1.7GHz"));
        assert!(error("easy(").contains("closing"), "{}", error("easy("));
        assert!(error("externl(./mine)").contains("did you mean 'external'?"));
        assert!(
            error("(a=1)").contains("name is missing") && error("").contains("name is missing")
        );
        for (wrong, why) in [
            ("heuristic=best", "valid: random, fcfs-p0, fcfs-all, prioritized-fcfs-p0"),
            ("environment=cloud", "write queued or polled"),
            ("filter=yes", "write on or off"),
            ("drop=-1", "parameter 'drop'"),
            ("every=0s", "at least a second apart"),
            ("every=60", "such as 500ms, 30s"),
            ("limit=1", "it takes heuristic, environment, filter, drop, every, seed"),
        ] {
            let error = error(&format!("utility({wrong})"));
            assert!(error.contains(why), "{error}");
        }
        for (wrong, why) in [
            ("lower=101%", "parameter 'lower': 101% is more than the whole budget"),
            ("upper=100.1%", "parameter 'upper': 100.1% is more"),
            ("lower=-1%", "parameter 'lower': '-1%': '-1' is not a number"),
            ("lower=0.6", "write a percentage, such as 60%"),
            (
                "lower=95%",
                "parameter 'lower': 'lower' must not be above 'upper', but they are 95% and 90%",
            ),
            ("upper=50%", "60% and 50%; 'lower' is so by default; give both"),
            (
                "lower=80%, upper=50%",
                "but they are 80% and 50%; give 'lower' the smaller of the two",
            ),
            ("bsld_lower=0.5", "at least 1"),
            ("bsld_lower=nan", "at least 1"),
            ("bsld_upper=x", "such as 2x"),
            ("bsld_lower=9, bsld_upper=4", "9 is above 'bsld_upper', which is 4"),
            ("beta=1", "'1': write known or unknown"),
            ("oversized=drop", "'drop': write slow or reject"),
            (
                "gamma=1",
                "it takes lower, upper, bsld_lower, bsld_upper, beta, oversized, order, halving, predict",
            ),
        ] {
            let error = error(&format!("pb-guided({wrong})"));
            assert!(error.contains(why), "{error}");
        }
    }
}
