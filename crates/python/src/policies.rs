//! Policies that are written in Python.
//!
//! A class with `decide(view)` becomes a policy of Busbar under its name. Each run gets an object of its own. The
//! decisions go through the ledger like those of the built-in policies; an exception ends the run.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::Duration;

use busbar::cli::GoesOn;
use busbar::commands::Failure;
use busbar::freedom::{Freedom, Freedoms};
use busbar::policy::{
    BuildContext, Decision, Policy, PolicyKind, PolicySpec, Published, View as Present, register,
};
use busbar::units::Instant;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::decisions;
use crate::failure::raised;
use crate::view::{Book, View};

/// A policy as the Python side describes it: its name, what makes an object of it, the freedoms that it wants and
/// needs, what it believes, and whether it is asked when no job could start, too.
pub(crate) type Described = (String, Py<PyAny>, String, String, String, bool);

/// What the runs of one call of `simulate` or `compare` have in common.
#[derive(Default)]
struct Call {
    failed: Mutex<Option<Exception>>,
}

/// An exception that a policy raised, with where that was.
struct Exception {
    error: PyErr,
    policy: String,
    at: Instant,
}

/// What makes the objects of a policy.
struct Maker {
    make: Py<PyAny>,
    wants: Freedoms,
    asks_always: bool,
    call: Arc<Call>,
}

/// What a name means at present. One call at a time has policies, so no name means two things.
static MAKERS: Mutex<BTreeMap<String, Arc<Maker>>> = Mutex::new(BTreeMap::new());

/// Held by the call whose policies are registered.
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether a policy decides on this thread.
    static DECIDES: Cell<bool> = const { Cell::new(false) };
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The policies of one call.
pub(crate) struct Policies {
    described: Vec<Described>,
    call: Arc<Call>,
}

impl Policies {
    /// Takes the policies of a call.
    pub(crate) fn new(py: Python<'_>, described: Vec<Described>) -> PyResult<Self> {
        if !described.is_empty() && DECIDES.get() {
            let text = "a policy in Python cannot run other policies in Python while it decides; name a built-in policy";
            return Err(raised(py, &failure(text.to_owned())));
        }
        Ok(Policies { described, call: Arc::default() })
    }

    /// Does something while the policies can be named; may wait until another call is done.
    pub(crate) fn during<T>(
        &self,
        goes_on: &GoesOn,
        act: impl FnOnce(GoesOn) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.described.is_empty() {
            return act(Arc::clone(goes_on));
        }
        let _turn = self.wait(goes_on)?;
        self.described.iter().try_for_each(|each| self.register(each))?;
        let (call, goes_on) = (Arc::clone(&self.call), Arc::clone(goes_on));
        let done = act(Arc::new(move || match locked(&call.failed).is_some() {
            true => ControlFlow::Break(()),
            false => goes_on(),
        }));
        locked(&MAKERS).clear();
        done
    }

    fn wait(&self, goes_on: &GoesOn) -> Result<MutexGuard<'static, ()>, Failure> {
        loop {
            match TURN.try_lock() {
                Ok(turn) => return Ok(turn),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if goes_on().is_break() => {
                    return Err(failure("interrupted".to_owned()));
                }
                Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(5)),
            }
        }
    }

    fn register(&self, described: &Described) -> Result<(), Failure> {
        let (name, make, wants, needs, believes, asks_always) = described;
        let freedoms = |what: &str, text: &str| {
            let read = text.parse::<Freedoms>();
            read.map_err(|why| failure(format!("policy '{name}', {what}: {why}")))
        };
        let (wants, needs) = (freedoms("wants", wants)?, freedoms("needs", needs)?);
        let believes = believed(name, believes, wants)?;
        let class = PythonClass { name: name.clone(), wants, needs, believes };
        register(&[PolicySpec::of(class)]).map_err(|why| failure(why.to_string()))?;
        let make = Python::attach(|py| make.clone_ref(py));
        let call = Arc::clone(&self.call);
        let maker = Maker { make, wants, asks_always: *asks_always, call };
        locked(&MAKERS).insert(name.clone(), Arc::new(maker));
        Ok(())
    }

    /// The exception that a policy raised, if one did.
    pub(crate) fn exception(&self, py: Python<'_>) -> Option<PyErr> {
        let Exception { error, policy, at } = locked(&self.call.failed).take()?;
        let note = format!("policy '{policy}' raised this at {at} of the simulated time");
        if error.value(py).call_method1("add_note", (note.as_str(),)).is_ok() {
            return Some(error);
        }
        // Before Python 3.11 exceptions took no notes.
        let outer = raised(py, &failure(note));
        outer.set_cause(py, Some(error));
        Some(outer)
    }
}

fn failure(text: String) -> Failure {
    Failure { text, is_of_the_system: false }
}

/// The belief of this name; if there is none, what suits what the policy wants to choose.
fn believed(policy: &str, name: &str, wants: Freedoms) -> Result<Published, Failure> {
    let all = [
        ("rated", Published::Rated),
        ("clock", Published::Clock),
        ("fitted-clock", Published::FittedClock),
        ("measured", Published::Measured),
        ("regression", Published::Regression),
        ("pass", Published::Pass),
    ];
    match all.into_iter().find(|(known, _)| *known == name) {
        Some((_, belief)) => Ok(belief),
        None if name.is_empty() && wants.has(Freedom::Sizes) => Ok(Published::Pass),
        None if name.is_empty() && wants.has(Freedom::Caps) => Ok(Published::Clock),
        None if name.is_empty() => Ok(Published::Rated),
        None => {
            let names = all.map(|(known, _)| known).join(", ");
            Err(failure(format!("policy '{policy}' believes '{name}'; write one of {names}")))
        }
    }
}

/// A class in Python, as a kind of policy.
#[derive(Clone, Debug)]
struct PythonClass {
    name: String,
    wants: Freedoms,
    needs: Freedoms,
    believes: Published,
}

impl PolicyKind for PythonClass {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        "a class in Python"
    }

    fn usual(&self) -> Self {
        self.clone()
    }

    fn build(&self, _: &BuildContext<'_>) -> Box<dyn Policy> {
        Box::new(InPython::new(&self.name))
    }

    fn wants(&self) -> Freedoms {
        self.wants
    }

    fn needs(&self) -> Freedoms {
        self.needs
    }

    fn believes(&self, _: Freedoms) -> Published {
        self.believes
    }

    /// It may be another one next time.
    fn is_fixed(&self) -> bool {
        false
    }
}

/// A policy in one run.
struct InPython {
    name: String,
    maker: Option<Arc<Maker>>,
    /// The method `decide` of the object, once there is one.
    decide: Option<Py<PyAny>>,
    book: Arc<Mutex<Book>>,
    has_failed: bool,
}

impl InPython {
    fn new(name: &str) -> Self {
        let maker = locked(&MAKERS).get(name).cloned();
        let has_choices = maker.as_ref().is_some_and(|maker| !maker.wants.is_empty());
        let book = Arc::new(Mutex::new(Book::new(has_choices)));
        InPython { name: name.to_owned(), maker, decide: None, book, has_failed: false }
    }

    fn wants(&self, freedom: Freedom) -> bool {
        self.maker.as_ref().is_some_and(|maker| maker.wants.has(freedom))
    }

    fn ask(
        &mut self,
        py: Python<'_>,
        maker: &Maker,
        present: &Present<'_>,
        decisions: &mut Vec<Decision>,
    ) -> PyResult<()> {
        if self.decide.is_none() {
            let object = maker.make.bind(py).call0()?;
            self.decide = Some(object.getattr("decide")?.unbind());
        }
        let Some(decide) = &self.decide else { return Ok(()) };
        let view = View::new(present, Arc::clone(&self.book));
        let answer = decide.bind(py).call1((view,))?;
        if answer.is_none() {
            return Ok(());
        }
        let items = answer.try_iter().map_err(|_| {
            PyTypeError::new_err(
                "decide returns decisions one after the other: a list, a generator, or None",
            )
        })?;
        for item in items {
            decisions.push(decisions::decision(&item?, present)?);
        }
        Ok(())
    }
}

impl Policy for InPython {
    fn decide(&mut self, present: &Present<'_>, decisions: &mut Vec<Decision>) {
        let has_candidate = {
            let mut book = locked(&self.book);
            book.note(present);
            book.has_candidate(present)
        };
        let Some(maker) = self.maker.clone() else {
            // The call that registered it is over.
            return decisions.push(Decision::GiveUp { why: "it is not registered".to_owned() });
        };
        // What cannot start anything need not be asked, which is most of the time on a busy machine.
        if self.has_failed || !has_candidate && !maker.asks_always {
            return;
        }
        DECIDES.set(true);
        let asked = Python::attach(|py| {
            let asked = self.ask(py, &maker, present, decisions);
            asked.map_err(|error| (error.to_string(), error))
        });
        DECIDES.set(false);
        if let Err((why, error)) = asked {
            self.has_failed = true;
            decisions.clear();
            decisions.push(Decision::GiveUp { why });
            let exception = Exception { error, policy: self.name.clone(), at: present.now };
            locked(&maker.call.failed).get_or_insert(exception);
        }
    }

    fn adjusts(&self) -> bool {
        self.wants(Freedom::Recaps) || self.wants(Freedom::Resizes)
    }
}
