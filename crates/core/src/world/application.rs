//! Applications: what jobs run.

use std::sync::Arc;

use crate::world::Law;

/// How the nodes of a job depend on each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coupling {
    /// They wait for each other: the job is as slow as its slowest node.
    #[default]
    Lockstep,
    /// Work goes to whoever is ready for it: the job is as fast as its nodes are on average.
    Balanced,
}

/// An application.
#[derive(Clone, Debug)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// How it runs.
    pub law: Arc<dyn Law>,
    /// How its nodes depend on each other.
    pub coupling: Coupling,
}

impl Application {
    /// An application that follows a law.
    pub fn new(name: impl Into<String>, law: impl Law + 'static, coupling: Coupling) -> Self {
        Application { name: name.into(), law: Arc::new(law), coupling }
    }
}
