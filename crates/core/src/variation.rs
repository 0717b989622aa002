//! Manufacturing variation: processors of one model that are not alike.
//!
//! Each processor has a curve of its own for each application: how fast it runs on how much power.
//! Without a cap all of them run equally fast, but some draw much less than others; under the same
//! cap these are faster. [`curve`] is such a curve, [`csv`] the file in which measured ones come,
//! [`runs`] makes such a file of the runs that a site has logged, [`catalyst`] makes a machine up. Nobody here knows jobs, or who gets which processor:
//! [`ptune`](crate::solve::ptune) decides that.

#[doc(hidden)]
pub mod catalyst;
#[doc(hidden)]
pub mod csv;
pub mod curve;
#[doc(hidden)]
pub(crate) mod kin;
#[doc(hidden)]
pub mod runs;

pub use curve::{Curve, CurveError, Ips, Knot};

use crate::spelling::hint;
use crate::units::Watts;

/// The processors of a machine, with a curve for each application on each of them.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Processors {
    names: Vec<String>,
    floor: Watts,
    applications: Vec<Application>,
}

/// An application, as it runs on each processor.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// Its curve on each processor, in the order of [`Processors::names`].
    pub curves: Vec<Curve>,
}

/// There is no application of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no application '{asked}'{} there are: {}", hint(asked, known.iter().map(String::as_str)), known.join(", "))]
pub struct UnknownApplication {
    /// The name that was asked for.
    pub asked: String,
    /// The names there are.
    pub known: Vec<String>,
}

impl Processors {
    /// Processors by their names. Every application has one curve for each; `None` otherwise.
    pub fn new(names: Vec<String>, floor: Watts, applications: Vec<Application>) -> Option<Self> {
        let is_whole = |application: &Application| application.curves.len() == names.len();
        let is_good = !names.is_empty() && applications.iter().all(is_whole);
        is_good.then_some(Processors { names, floor, applications })
    }

    /// What the processors are called.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The lowest cap that can be set.
    pub fn floor(&self) -> Watts {
        self.floor
    }

    /// The applications that were measured.
    pub fn applications(&self) -> &[Application] {
        &self.applications
    }

    /// The application of this name, in large or small letters.
    pub fn application(&self, name: &str) -> Result<&Application, UnknownApplication> {
        let named = |application: &&Application| application.name.eq_ignore_ascii_case(name);
        self.applications.iter().find(named).ok_or_else(|| UnknownApplication {
            asked: name.to_owned(),
            known: self.applications.iter().map(|application| application.name.clone()).collect(),
        })
    }
}

impl Application {
    /// The processors from the most to the least efficient, and by place where that is the same.
    pub fn by_efficiency(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.curves.len()).collect();
        order.sort_by(|a, b| self.curves[*a].by_efficiency(&self.curves[*b]));
        order
    }

    /// The processors by what they draw without a cap, from the least on, and by place where that is the
    /// same. The PTune paper takes this for their efficiency, as all of its processors reach the same
    /// speed.
    pub fn by_draw(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.curves.len()).collect();
        order.sort_by_key(|processor| self.curves[*processor].most());
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(most: u32) -> Curve {
        let knot = |watts, ips| Knot { power: Watts::from_watts(watts), ips: Ips::from_ips(ips) };
        Curve::new(Watts::from_watts(51), vec![knot(51, 10), knot(most, 20)]).unwrap()
    }

    #[test]
    fn who_draws_least_is_most_efficient_where_all_are_as_fast() {
        let curves = vec![curve(90), curve(70), curve(90), curve(80)];
        let application = Application { name: "EP".to_owned(), curves };
        assert_eq!(application.by_efficiency(), [1, 3, 0, 2]);
        assert_eq!(application.by_draw(), [1, 3, 0, 2]);
    }

    /// All draw 300 W, some are faster; and one does the same for each watt on less.
    #[test]
    fn who_is_faster_on_the_same_power_is_more_efficient() {
        let one = |watts, ips| {
            let knot = Knot { power: Watts::from_watts(watts), ips: Ips::from_ips(ips) };
            Curve::new(Watts::from_watts(150), vec![knot]).unwrap()
        };
        let curves = vec![one(300, 12), one(300, 14), one(150, 7), one(300, 13), one(300, 14)];
        let application = Application { name: "SGEMM".to_owned(), curves };
        assert_eq!(application.by_efficiency(), [1, 4, 2, 3, 0]);
        assert_eq!(application.by_draw(), [2, 0, 1, 3, 4]);
    }

    #[test]
    fn every_processor_has_its_curve() {
        let named = |names: &[&str], curves: Vec<Curve>| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let applications = vec![Application { name: "EP".to_owned(), curves }];
            Processors::new(names, Watts::from_watts(51), applications)
        };
        assert!(named(&["a", "b"], vec![curve(90)]).is_none());
        assert!(named(&[], vec![]).is_none());
        let processors = named(&["a"], vec![curve(90)]).unwrap();
        assert_eq!(processors.application("ep").unwrap().name, "EP");
        let error = processors.application("SP").unwrap_err().to_string();
        assert_eq!(error, "there is no application 'SP'; there are: EP");
    }
}
