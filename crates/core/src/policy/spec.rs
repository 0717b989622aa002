//! Policies by name: text that round-trips, such as `easy` or `name(key=value)`.

use std::any::{Any, type_name};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::policy::kind::{LONGEST, PolicyError, PolicyKind};
use crate::policy::order::OrderSpec;

/// A policy as it is named on the command line: one of some [kind](PolicyKind), which it stands for.
#[derive(Clone)]
pub struct PolicySpec(Arc<dyn Written>);

/// What every kind of policy can do because it says what its parameters are.
trait Written: PolicyKind {
    fn rust_name(&self) -> &'static str;
    fn parameter_texts(&self) -> Vec<(&'static str, String)>;
    fn arguments(&self) -> Vec<String>;
    fn read_same_kind(&self, text: &str) -> Result<PolicySpec, PolicyError>;
    fn order(&self) -> Option<OrderSpec>;
    fn with_order(&self, order: OrderSpec) -> Option<PolicySpec>;
}

impl<K: PolicyKind + Clone> Written for K {
    fn rust_name(&self) -> &'static str {
        type_name::<K>()
    }

    fn parameter_texts(&self) -> Vec<(&'static str, String)> {
        let parameters = self.parameters();
        parameters.iter().map(|parameter| (parameter.name, (parameter.text)(self))).collect()
    }

    fn arguments(&self) -> Vec<String> {
        let (texts, usual) = (self.parameter_texts(), self.usual().parameter_texts());
        let unusual = texts.into_iter().filter(|text| !usual.contains(text));
        let parameters = unusual.map(|(name, text)| format!("{name}={text}"));
        self.operand().map(str::to_owned).into_iter().chain(parameters).collect()
    }

    fn read_same_kind(&self, text: &str) -> Result<PolicySpec, PolicyError> {
        self.read(text).map(PolicySpec::of)
    }

    fn order(&self) -> Option<OrderSpec> {
        self.clone().order_mut().copied()
    }

    fn with_order(&self, order: OrderSpec) -> Option<PolicySpec> {
        let mut changed = self.clone();
        *changed.order_mut()? = order;
        Some(PolicySpec::of(changed))
    }
}

impl PolicySpec {
    /// The longest text of a policy, in bytes: more than all parameters of any policy need.
    pub const LONGEST: usize = LONGEST;

    /// A policy of this kind.
    pub fn of<K: PolicyKind + Clone>(kind: K) -> Self {
        PolicySpec(Arc::new(kind))
    }

    /// The kind, for somebody who is about this one alone: its own module, and the experiments of its paper.
    pub fn downcast<K: PolicyKind>(&self) -> Option<&K> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }

    /// The type of its kind with the modules in which that is, for tests of who knows which.
    pub fn rust_name(&self) -> &'static str {
        self.0.rust_name()
    }

    /// The policy's name, without parameters.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The names of its parameters with their present values, in the order in which they are written.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        self.0.parameter_texts()
    }

    /// The order in which it looks at jobs, if it takes one.
    pub fn order(&self) -> Option<OrderSpec> {
        self.0.order()
    }

    /// The same policy with another order, if it takes one.
    pub fn with_order(&self, order: OrderSpec) -> Option<Self> {
        self.0.with_order(order)
    }

    /// The policy of the same kind that is written so.
    pub(super) fn read(&self, text: &str) -> Result<Self, PolicyError> {
        self.0.read_same_kind(text)
    }
}

/// All that its kind says of it.
impl Deref for PolicySpec {
    type Target = dyn PolicyKind;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// Policies are the same if they are written in the same way.
impl PartialEq for PolicySpec {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.to_string() == other.to_string()
    }
}

impl Eq for PolicySpec {}

impl fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.0.arguments() {
            none if none.is_empty() => Ok(()),
            arguments => write!(f, "({})", arguments.join(", ")),
        }
    }
}
