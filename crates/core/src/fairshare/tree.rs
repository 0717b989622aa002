//! The tree of associations: accounts, and the users below them.

/// A place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationId(u32);

impl AssociationId {
    /// The association of this index.
    pub(crate) fn of(index: u32) -> Self {
        AssociationId(index)
    }

    /// The index among all associations.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
struct Association {
    parent: Option<AssociationId>,
    is_user: bool,
    shares: u32,
    /// What the associations below it have together.
    shares_below: u64,
    below: Vec<AssociationId>,
}

/// Who has which share of what.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Parents before those below them.
    associations: Vec<Association>,
    users: u32,
    /// Those before this one share in what there is. The others are new, and will.
    settled: usize,
}

/// The root alone.
impl Default for Shares {
    fn default() -> Self {
        let mut shares = Shares { associations: Vec::new(), users: 0, settled: 0 };
        shares.add(None, false, 1);
        shares
    }
}

impl Shares {
    /// The account that has the whole machine.
    pub const ROOT: AssociationId = AssociationId(0);

    /// A new account below another.
    pub fn add_account(&mut self, parent: AssociationId, shares: u32) -> AssociationId {
        self.add(Some(parent), false, shares)
    }

    /// A new user of an account.
    pub fn add_user(&mut self, account: AssociationId, shares: u32) -> AssociationId {
        self.add(Some(account), true, shares)
    }

    fn add(&mut self, parent: Option<AssociationId>, is_user: bool, shares: u32) -> AssociationId {
        let id = AssociationId(self.associations.len() as u32);
        let below = Vec::new();
        self.associations.push(Association { parent, is_user, shares, shares_below: 0, below });
        id
    }

    /// Lets those share that are new. Until then nobody has less because of them.
    pub(super) fn settle(&mut self) {
        for new in self.settled..self.associations.len() {
            let Association { parent, is_user, shares, .. } = self.associations[new];
            self.users += u32::from(is_user);
            if let Some(parent) = parent {
                let parent = &mut self.associations[parent.index()];
                parent.shares_below += u64::from(shares);
                parent.below.push(AssociationId(new as u32));
            }
        }
        self.settled = self.associations.len();
    }

    /// Whether somebody is new.
    pub(super) fn is_new(&self, association: AssociationId) -> bool {
        association.index() >= self.settled
    }

    /// How many associations there are, the root included.
    pub fn len(&self) -> usize {
        self.associations.len()
    }

    /// Whether nobody has a share.
    pub fn is_empty(&self) -> bool {
        self.associations.iter().all(|association| !association.is_user)
    }

    /// How many of them are users.
    pub(super) fn users(&self) -> u32 {
        self.users
    }

    /// The account above; nothing above the root.
    pub fn parent(&self, of: AssociationId) -> Option<AssociationId> {
        self.associations[of.index()].parent
    }

    pub(super) fn is_user(&self, which: AssociationId) -> bool {
        self.associations[which.index()].is_user
    }

    pub(super) fn shares(&self, of: AssociationId) -> u32 {
        self.associations[of.index()].shares
    }

    pub(super) fn shares_below(&self, account: AssociationId) -> u64 {
        self.associations[account.index()].shares_below
    }

    pub(super) fn below(&self, account: AssociationId) -> &[AssociationId] {
        &self.associations[account.index()].below
    }

    /// The share of an association among those beside it; all of it for the root.
    pub(super) fn part(&self, of: AssociationId) -> f64 {
        let Some(parent) = self.parent(of) else { return 1.0 };
        match self.shares_below(parent) {
            0 => 0.0,
            all => f64::from(self.shares(of)) / all as f64,
        }
    }

    /// An association and all accounts above it.
    pub(super) fn upward(&self, from: AssociationId) -> impl Iterator<Item = AssociationId> + '_ {
        std::iter::successors(Some(from), |association| self.parent(*association))
    }
}
