//! In whose name a request is made, and with which rights.

use serde::{Deserialize, Serialize};

/// The user and the group that a job belongs to, and runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Owner {
    /// The user ID.
    pub user: u32,
    /// The group ID.
    pub group: u32,
}

/// The identity of a client, which alone determines what the client may do and see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requester {
    /// Anybody: they have no jobs, and see what everybody may see.
    Anybody,
    /// A user who manages their own jobs and no others, also if they are root or an operator.
    Ordinary(Owner),
    /// A user with all the rights that they have: those of an operator, if they are one.
    Full(Owner),
}

impl Requester {
    /// The user and the group in whose name they ask, if there is one.
    pub(crate) fn owner(self) -> Option<Owner> {
        match self {
            Requester::Anybody => None,
            Requester::Ordinary(owner) | Requester::Full(owner) => Some(owner),
        }
    }

    /// The user in whose name they ask, if there is one.
    pub fn user(self) -> Option<u32> {
        self.owner().map(|owner| owner.user)
    }
}
