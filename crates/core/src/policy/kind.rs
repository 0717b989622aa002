//! All there is to say about a kind of policy, said in the policy's own file.
//!
//! A [`PolicyKind`] is a policy as it is named: what it is called, its parameters, what it would do to jobs, what it
//! believes of them, and how it is made. A [`PolicySpec`] holds any of them, and everybody else asks that one: nobody
//! needs to know which policy it is. Policies from outside the crate are kinds like the built-in ones.
//!
//! ```
//! use busbar_core::freedom::Freedoms;
//! use busbar_core::policy::{
//!     BuildContext, Easy, Parameter, Policy, PolicyKind, PolicySpec, RegisterError, register,
//! };
//!
//! #[derive(Clone, Debug)]
//! struct Mine {
//!     depth: u32,
//! }
//!
//! impl PolicyKind for Mine {
//!     fn name(&self) -> &str {
//!         "mine"
//!     }
//!
//!     fn about(&self) -> &str {
//!         "EASY backfilling by another name"
//!     }
//!
//!     fn usual(&self) -> Self {
//!         Mine { depth: 10 }
//!     }
//!
//!     fn parameters(&self) -> Vec<Parameter<Self>> {
//!         vec![Parameter::number("depth", |mine: &mut Mine| &mut mine.depth)]
//!     }
//!
//!     fn build(&self, _: &BuildContext<'_>) -> Box<dyn Policy> {
//!         Box::new(Easy::default())
//!     }
//! }
//!
//! let mine = PolicySpec::of(Mine { depth: 10 });
//! assert!("mine".parse::<PolicySpec>().is_err());
//! assert_eq!(register(&[mine.clone(), PolicySpec::easy()]), Err(RegisterError("easy".to_owned())));
//! assert_eq!(register(&[mine.clone(), mine.clone()]), Err(RegisterError("mine".to_owned())));
//! register(&[mine.clone()])?;
//!
//! assert_eq!("mine(depth=10)".parse::<PolicySpec>()?, mine);
//! let deep: PolicySpec = "mine( depth = 200 )".parse()?;
//! assert_eq!((deep.to_string().as_str(), deep.wants()), ("mine(depth=200)", Freedoms::NONE));
//! let wrong = "mine(deep=1)".parse::<PolicySpec>().unwrap_err();
//! assert!(wrong.to_string().ends_with("it takes depth"));
//! assert_eq!(PolicySpec::known().len(), PolicySpec::all().len() + 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::belief::Holds;
use crate::call::{Argument, Call, CallError};
use crate::freedom::{Freedom, Freedoms};
use crate::heterogeneity::Site;
use crate::limits::Reservation;
use crate::machine::Machine;
use crate::model::{Model, Oversized};
use crate::policy::Policy;
use crate::policy::field::{Field, Unfit};
use crate::policy::order::{Multifactor, OrderSpec};
use crate::policy::published::Published;
use crate::priority::Priorities;
use crate::units::{Share, Span, parse_length};

/// A kind of policy with its parameters.
///
/// What most policies have in common need not be said: whoever says nothing starts jobs as they were asked for, and
/// believes that nodes draw what they are rated at.
pub trait PolicyKind: fmt::Debug + Any + Send + Sync {
    /// What it is called: small letters, digits and hyphens.
    fn name(&self) -> &str;

    /// What it does, in a few words.
    fn about(&self) -> &str;

    /// The same policy with its usual parameters.
    fn usual(&self) -> Self
    where
        Self: Sized;

    /// Its parameters, in the order in which they are written.
    fn parameters(&self) -> Vec<Parameter<Self>>
    where
        Self: Sized,
    {
        Vec::new()
    }

    /// Whether all parameters together make sense, once each was set as the call says.
    ///
    /// # Errors
    ///
    /// If they do not.
    fn check(&self, _call: &Call) -> Result<(), CallError> {
        Ok(())
    }

    /// What stands between the parentheses before the parameters, if anything has to; in capital letters where it is
    /// still missing. A kind with something there [reads](PolicyKind::read) it, too.
    fn operand(&self) -> Option<&str> {
        None
    }

    /// The policy of this kind that is written so.
    ///
    /// # Errors
    ///
    /// If it is wrong.
    fn read(&self, text: &str) -> Result<Self, PolicyError>
    where
        Self: Clone,
    {
        let call: Call = text.parse().map_err(PolicyError::Call)?;
        with_parameters(self.usual(), &call).map_err(PolicyError::Call)
    }

    /// A policy ready to decide.
    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy>;

    /// What it would do to jobs if it may.
    fn wants(&self) -> Freedoms {
        Freedoms::NONE
    }

    /// What it cannot do without.
    fn needs(&self) -> Freedoms {
        Freedoms::NONE
    }

    /// Why it cannot decide here, where it may do what it needs to.
    ///
    /// # Errors
    ///
    /// If it cannot.
    fn suits(&self, _field: &Field<'_>) -> Result<(), Unfit> {
        Ok(())
    }

    /// Whether it can decide on a machine whose feeds have limits, if it may do so much. Whoever starts jobs in what a
    /// [`Room`](crate::policy::Room) admits can. Whoever changes running jobs or names nodes has to look at feeds itself.
    fn minds_feeds(&self, may: Freedoms) -> bool {
        let own_way = [Freedom::Recaps, Freedom::Resizes, Freedom::Nodes];
        !own_way.into_iter().any(|freedom| may.has(freedom))
    }

    /// Whether it can decide on a machine whose nodes are of several kinds or shared by jobs, if it may do so much. Whoever asks
    /// a [`Room`](crate::policy::Room) about a job and starts it as the room says can.
    fn minds_kinds(&self, _may: Freedoms) -> bool {
        false
    }

    /// Whether it tells nodes apart and names those of its jobs. Nodes of a kind are alike where there are several kinds.
    fn knows_nodes(&self, field: &Field<'_>) -> bool {
        self.wants().has(Freedom::Nodes) && field.kinds.is_none()
    }

    /// Whether it can decide where a site has limits, if it may do so much: jobs leave the queue then that have no room under
    /// one ([`Policy::forget`]). Whoever goes through the queue as backfilling policies do can.
    fn minds_limits(&self, _may: Freedoms) -> bool {
        false
    }

    /// Whether it keeps certain nodes free for a reservation, where nodes are of several kinds or shared by jobs.
    fn minds_reserved_nodes(&self) -> bool {
        false
    }

    /// What it was published with, if it may do so much.
    fn believes(&self, _may: Freedoms) -> Published {
        Published::Rated
    }

    /// What is set aside for nodes, where usually it would be this.
    fn holds(&self, usual: Holds) -> Holds {
        usual
    }

    /// What becomes of jobs that can never be fed as they were asked for.
    fn oversized(&self) -> Oversized {
        Oversized::Slow
    }

    /// How tasks run on the machines of several types that they come with, under a policy that maps tasks to
    /// machines; nothing for all others, which take them for jobs like any.
    fn on_site(&self, _site: &Site) -> Option<Box<dyn Model>> {
        None
    }

    /// The order in which it looks at jobs, if it takes one.
    fn order_mut(&mut self) -> Option<&mut OrderSpec> {
        None
    }

    /// The share of every limit that is kept back from the policy, because jobs may draw more than is believed.
    fn guard(&self) -> Share {
        Share::percent(0)
    }

    /// What people should know who let it decide about jobs that nobody knows beforehand.
    fn caution(&self) -> Option<&'static str> {
        None
    }

    /// Whether it always does the same under its name, so that results may be kept for the next time.
    fn is_fixed(&self) -> bool {
        true
    }

    /// Whether it stands for the scheduler that a site has: comparisons of all policies leave it out unless it is named.
    fn is_of_site(&self) -> bool {
        false
    }

    /// Whether it can decide in simulations alone: it may give up, and take as long as it likes.
    fn is_for_simulations(&self) -> bool {
        false
    }
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
    /// How priorities are made, where the site says it.
    pub priorities: Option<&'a Arc<Priorities>>,
    /// Whether priorities are kept with which jobs started.
    pub keeps_standings: bool,
    /// The reservations of the site.
    pub reservations: &'a [Reservation],
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
            priorities: None,
            keeps_standings: false,
            reservations: &[],
        }
    }
}

impl BuildContext<'_> {
    /// The order by priority.
    pub(super) fn multifactor(&self) -> Multifactor {
        let priorities = self.priorities.cloned().unwrap_or_default();
        let order = Multifactor::of(priorities, self.machine.map(Machine::processors));
        if self.keeps_standings { order.that_keeps_standings() } else { order }
    }
}

/// Writes the value of a parameter.
type Text<K> = Box<dyn Fn(&K) -> String>;

/// Sets a parameter to the value that was written.
type Set<K> = Box<dyn Fn(&mut K, &Argument<'_>) -> Result<(), CallError>>;

/// A parameter of a kind of policy. It has its default value if its text is that of the default policy.
pub struct Parameter<K> {
    /// What it is called.
    pub name: &'static str,
    pub(super) text: Text<K>,
    set: Set<K>,
}

impl<K: PolicyKind + Clone> Parameter<K> {
    /// One whose value is written like this, not at all if that is empty, and set like that.
    pub fn new(
        name: &'static str,
        text: impl Fn(&K) -> String + 'static,
        set: impl Fn(&mut K, &Argument<'_>) -> Result<(), CallError> + 'static,
    ) -> Self {
        Parameter { name, text: Box::new(text), set: Box::new(set) }
    }

    /// One that is a field.
    pub fn of<T>(name: &'static str, field: fn(&mut K) -> &mut T) -> Self
    where
        T: fmt::Display + FromStr<Err: fmt::Display> + 'static,
    {
        let text = move |kind: &K| field(&mut kind.clone()).to_string();
        Parameter::new(name, text, move |kind, written| {
            *field(kind) = written.value()?;
            Ok(())
        })
    }

    /// One that is a field, and may be missing.
    pub fn optional<T>(name: &'static str, field: fn(&mut K) -> &mut Option<T>) -> Self
    where
        T: fmt::Display + FromStr<Err: fmt::Display> + 'static,
    {
        let text = move |kind: &K| field(&mut kind.clone()).as_ref().map(T::to_string);
        Parameter::new(
            name,
            move |kind| text(kind).unwrap_or_default(),
            move |kind, written| {
                *field(kind) = Some(written.value()?);
                Ok(())
            },
        )
    }

    /// One that is a field with a number in plain digits.
    pub fn number<T>(name: &'static str, field: fn(&mut K) -> &mut T) -> Self
    where
        T: fmt::Display + FromStr<Err: fmt::Display> + 'static,
    {
        let set = move |kind: &mut K, written: &Argument<'_>| {
            *field(kind) = written.number()?;
            Ok(())
        };
        Parameter { set: Box::new(set), ..Parameter::of(name, field) }
    }

    /// One that is a field, on or off.
    pub fn switch(name: &'static str, field: fn(&mut K) -> &mut bool) -> Self {
        let is_on = move |kind: &K| *field(&mut kind.clone());
        let text = move |kind: &K| if is_on(kind) { "on" } else { "off" }.to_owned();
        Parameter::new(name, text, move |kind, written| {
            *field(kind) = written.switch()?;
            Ok(())
        })
    }

    /// One that is a field with a length of time, which is written in seconds.
    pub fn seconds(name: &'static str, field: fn(&mut K) -> &mut Span) -> Self {
        let text = move |kind: &K| format!("{}s", field(&mut kind.clone()).secs_f64());
        Parameter::new(name, text, move |kind, written| {
            let length = parse_length(written.text);
            *field(kind) = length.map_err(|why| written.wrong(why.to_string()))?;
            Ok(())
        })
    }

    /// The parameters of its order, for a kind that takes one.
    pub fn of_order() -> [Self; 3] {
        std::array::from_fn(|place| {
            let text = move |kind: &K| {
                let texts = kind.clone().order_mut().map(|order| order.texts());
                texts.map_or(String::new(), |texts| texts[place].clone())
            };
            Parameter::new(OrderSpec::PARAMETERS[place], text, |kind, written| {
                kind.order_mut().map_or(Ok(()), |order| order.set(written))
            })
        })
    }
}

/// The kind with these parameters.
pub(super) fn with_parameters<K: PolicyKind>(mut kind: K, call: &Call) -> Result<K, CallError> {
    let parameters = kind.parameters();
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
    for (key, value) in call.parameters(&names)? {
        if let Some(parameter) = parameters.iter().find(|parameter| parameter.name == key) {
            (parameter.set)(&mut kind, &call.argument(key, value))?;
        }
    }
    kind.check(call)?;
    Ok(kind)
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
    #[error("it has {length} bytes, and the text of a policy has at most {LONGEST}")]
    TooLong {
        /// The length of the text, in bytes.
        length: usize,
    },
    /// A daemon cannot be decided by an external policy.
    #[error(
        "works only in simulations (busbar simulate, compare, plan, whatif), because a daemon cannot wait for an \
        external program; choose a built-in policy"
    )]
    Simulated,
}

/// The longest text of a policy, in bytes: more than all parameters of any policy need.
pub(super) const LONGEST: usize = 4096;
