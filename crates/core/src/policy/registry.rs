//! Which policies there are: one line for each.

use std::str::FromStr;
use std::sync::{PoisonError, RwLock};

use crate::policy::conservative::ConservativeSpec;
use crate::policy::easy::EasySpec;
use crate::policy::easy_power::EasyPowerSpec;
use crate::policy::external::ExternalSpec;
use crate::policy::fcfs::Fcfs;
use crate::policy::kind::{LONGEST, PolicyError};
use crate::policy::parm::ParmSpec;
use crate::policy::pb_guided::PbGuidedSpec;
use crate::policy::ppartition::PpartitionSpec;
use crate::policy::rmap::RmapSpec;
use crate::policy::share::ShareSpec;
use crate::policy::slurm::SlurmSpec;
use crate::policy::spec::PolicySpec;
use crate::policy::uniform::UniformSpec;
use crate::policy::utility::UtilitySpec;
use crate::spelling::hint;

/// The policies of this crate, in the order in which they are listed.
fn built_in() -> Vec<PolicySpec> {
    let [traditional, naive, adaptive] = RmapSpec::ALL;
    vec![
        PolicySpec::of(Fcfs),
        PolicySpec::of(EasySpec::default()),
        PolicySpec::of(ConservativeSpec),
        PolicySpec::of(SlurmSpec::default()),
        PolicySpec::of(EasyPowerSpec::default()),
        PolicySpec::of(PbGuidedSpec::default()),
        PolicySpec::of(traditional),
        PolicySpec::of(naive),
        PolicySpec::of(adaptive),
        PolicySpec::of(ParmSpec::default()),
        PolicySpec::of(PpartitionSpec::default()),
        PolicySpec::of(UniformSpec::default()),
        PolicySpec::of(UtilitySpec::default()),
        PolicySpec::of(ShareSpec::default()),
        PolicySpec::of(ExternalSpec::without_program()),
    ]
}

static REGISTERED: RwLock<Vec<PolicySpec>> = RwLock::new(Vec::new());

/// Why policies cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name '{0}' is that of another policy, or has characters other than lowercase letters, digits and hyphens"
)]
pub struct RegisterError(pub String);

/// Policies from outside the crate that can be named in text from now on. One that was registered before under the
/// same name is not meant by it any more.
///
/// # Errors
///
/// If a name is taken, comes twice, or is none.
pub fn register(policies: &[PolicySpec]) -> Result<(), RegisterError> {
    let is_sign = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    let built_in = built_in();
    for (place, policy) in policies.iter().enumerate() {
        let name = policy.name();
        let mut others = built_in.iter().chain(&policies[..place]);
        if others.any(|other| other.name() == name) || name.is_empty() || !name.chars().all(is_sign)
        {
            return Err(RegisterError(name.to_owned()));
        }
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|known| policies.iter().all(|policy| policy.name() != known.name()));
    registered.extend_from_slice(policies);
    Ok(())
}

/// All that were registered.
fn registered() -> Vec<PolicySpec> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The default policy.
impl Default for PolicySpec {
    fn default() -> Self {
        PolicySpec::easy()
    }
}

impl PolicySpec {
    /// The policy that others are measured by: plain EASY backfilling.
    pub fn easy() -> Self {
        PolicySpec::of(EasySpec::default())
    }

    /// The policy that is recommended under a budget: Busbar's own.
    pub fn recommended() -> Self {
        PolicySpec::of(ShareSpec::default())
    }

    /// The policy that a site has which says how its scheduler is set: Slurm's.
    pub fn of_site() -> Self {
        PolicySpec::of(SlurmSpec::default())
    }

    /// Every policy there is, with its usual parameters. An external policy has none: it is nothing without its
    /// program.
    pub fn all() -> Vec<PolicySpec> {
        built_in().into_iter().filter(|policy| policy.operand().is_none()).collect()
    }

    /// The same, and those that were [registered](register).
    pub fn known() -> Vec<PolicySpec> {
        PolicySpec::all().into_iter().chain(registered()).collect()
    }

    /// Those that are compared where none is named: all but the one that [stands for a site's](super::PolicyKind::is_of_site).
    pub fn compared() -> Vec<PolicySpec> {
        PolicySpec::known().into_iter().filter(|policy| !policy.is_of_site()).collect()
    }

    /// The policy that a request to a daemon names. One for simulations alone is refused before more of it is read
    /// than its name.
    ///
    /// # Errors
    ///
    /// If it is wrong, or for simulations alone.
    pub fn for_daemon(text: &str) -> Result<Self, PolicyError> {
        let kind = kind(text)?;
        match kind.is_for_simulations() {
            true => Err(PolicyError::Simulated),
            false => kind.read(text),
        }
    }
}

/// What a text names, with its usual parameters.
fn kind(text: &str) -> Result<PolicySpec, PolicyError> {
    if text.len() > LONGEST {
        return Err(PolicyError::TooLong { length: text.len() });
    }
    let name = text.split('(').next().unwrap_or_default().trim();
    if name.is_empty() {
        // That a name is missing is said where the text is read.
        return Ok(PolicySpec::default());
    }
    let (partial, whole): (Vec<_>, Vec<_>) =
        built_in().into_iter().partition(|policy| policy.operand().is_some());
    let known: Vec<_> = whole.into_iter().chain(registered()).chain(partial).collect();
    // Whatever follows a misspelt name, it is the name that is to be mended.
    known.iter().find(|policy| policy.name() == name).cloned().ok_or_else(|| {
        let valid: Vec<String> = known.iter().map(PolicySpec::to_string).collect();
        let hint = hint(name, known.iter().map(PolicySpec::name));
        PolicyError::Unknown { name: name.to_owned(), hint, valid: valid.join(", ") }
    })
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        kind(text)?.read(text)
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
        assert_eq!(" easy() ".parse(), Ok(PolicySpec::easy()));
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
        assert_eq!(longest.parse(), Ok(PolicySpec::easy()));
    }

    #[test]
    fn mistakes_list_what_is_valid() {
        let error = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert_eq!(
            error("eazy"),
            "unknown policy 'eazy'; did you mean 'easy'? valid policies: fcfs, easy, conservative, slurm, easy-power, \
             pb-guided, rmap-traditional, rmap-naive, rmap-adaptive, parm, ppartition, uniform, \
             utility, share, external(PROGRAM)"
        );
        assert!(error("backfill").starts_with("unknown policy 'backfill'; valid policies: fcfs"));
        assert!(
            error("pb-guided(uper=90%)").contains("did you mean 'upper'? it takes lower, upper")
        );
        assert_eq!(error("fcfs(depth=3)"), "policy 'fcfs' has no parameter 'depth'; it takes none");
        assert!(
            error("share(order=best)").contains("'best': write fcfs, aged, history or multifactor")
        );
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
