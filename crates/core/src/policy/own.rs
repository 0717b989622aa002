//! Policies from outside the crate: full citizens beside the built-in ones.
//!
//! A policy of one's own is a value that lives as long as the program: a name, what it wants to do to jobs,
//! what it believes of them, and how one is made. [`PolicySpec::Own`] takes it wherever a built-in policy may
//! stand. Where policies are named in text, on the command line or in an experiment, the name has to be known
//! beforehand: [`register`] says which there are.
//!
//! ```
//! use busbar_core::freedom::Freedoms;
//! use busbar_core::policy::{Easy, Own, PolicySpec, Published, RegisterError, register};
//!
//! static MINE: Own = Own {
//!     name: "mine",
//!     wants: Freedoms::NONE,
//!     needs: Freedoms::NONE,
//!     believes: Published::Rated,
//!     is_fixed: true,
//!     build: &|_| Box::new(Easy::default()),
//! };
//! static TAKEN: Own = Own { name: "easy", ..MINE };
//!
//! assert!("mine".parse::<PolicySpec>().is_err());
//! assert_eq!(register(&[&MINE, &TAKEN]), Err(RegisterError::Name("easy")));
//! assert_eq!(register(&[&MINE, &MINE]), Err(RegisterError::Name("mine")));
//! register(&[&MINE])?;
//!
//! let spec: PolicySpec = "mine".parse()?;
//! assert_eq!((spec, spec.to_string().as_str()), (PolicySpec::Own(&MINE), "mine"));
//! assert_eq!(format!("{spec:?}"), "Own(Own(\"mine\"))");
//! assert!("mine(x=1)".parse::<PolicySpec>().is_err());
//! assert_eq!(PolicySpec::known().len(), PolicySpec::all().len() + 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::sync::{PoisonError, RwLock};

use crate::freedom::Freedoms;
use crate::policy::{BuildContext, Policy, PolicySpec, Published, external};

/// A policy from outside the crate.
pub struct Own {
    /// What it is called: small letters and hyphens, as the built-in ones.
    pub name: &'static str,
    /// What it would do to jobs if it may.
    pub wants: Freedoms,
    /// What it cannot do without.
    pub needs: Freedoms,
    /// What it believes of jobs by default.
    pub believes: Published,
    /// Whether it always does the same under its name, so that results may be kept for the next time.
    pub is_fixed: bool,
    /// Makes one that is ready to decide.
    pub build: &'static (dyn Fn(&BuildContext<'_>) -> Box<dyn Policy> + Send + Sync),
}

/// By its name: where a function lies in memory is nobody's business.
impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Own").field(&self.name).finish()
    }
}

/// There is one of each name.
impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Why policies cannot be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// A name is taken, or is none.
    #[error(
        "the name '{0}' is that of another policy, or has characters other than lowercase letters, digits and hyphens"
    )]
    Name(&'static str),
}

static REGISTERED: RwLock<Vec<&'static Own>> = RwLock::new(Vec::new());

/// Policies that can be named in text from now on. One that was registered before under the same name is not meant
/// by it any more.
///
/// # Errors
///
/// If a name is that of a built-in policy, or comes twice.
pub fn register(own: &[&'static Own]) -> Result<(), RegisterError> {
    let is_sign = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    for (place, each) in own.iter().enumerate() {
        let is_built_in = each.name == external::NAME
            || PolicySpec::all().iter().any(|policy| policy.name() == each.name);
        let has_come = own[..place].contains(each);
        if is_built_in || has_come || each.name.is_empty() || !each.name.chars().all(is_sign) {
            return Err(RegisterError::Name(each.name));
        }
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|known| !own.contains(known));
    registered.extend(own);
    Ok(())
}

/// All that were registered.
pub(super) fn registered() -> Vec<&'static Own> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone()
}
