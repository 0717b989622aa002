//! Work of others on nodes of ours: jobs of partitions that Busbar does not manage, jobs that it could not take in, and nodes that
//! Slurm says are busy although no job explains it. What it may draw there counts, so it is adopted, like a job that somebody else
//! has started; but the daemon neither starts nor ends it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use busbar_core::units::Span;
use busbar_slurm::hosts::HostList;
use busbar_slurm::listing::Listing;
use busbar_slurm::model::{Job, JobState, Node};

use super::past::Past;
use super::requests::{NO_LIMIT, name, owner};
use crate::engine::{Arrival, Underway};
use crate::job::{Attempt, JobRequest, Owner};

/// Why the daemon does nothing to it.
pub(super) const NOT_OURS: &str = "it is not a job of Busbar; end it in Slurm";

/// How the handles of such work begin.
const PREFIX: &str = "others:";

/// For how many looks a node has to be busy before it counts although no job explains it. Nodes are read before jobs, and a job
/// may end in between.
const LOOKS: u32 = 3;

/// After this long at most, work that could not be taken in is offered again.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Work of others, by how the daemon knows it.
#[derive(Default)]
pub(super) struct Others {
    present: BTreeMap<String, Present>,
    handles: BTreeMap<Attempt, String>,
    /// What ended before the daemon has said which attempt it is.
    unclaimed: BTreeMap<String, Past>,
    /// Nodes that were busy at so many looks although no job explains it.
    unexplained: BTreeMap<u32, u32>,
    /// What the daemon could not take in, how often, and when last.
    refused: BTreeMap<String, (u32, Instant)>,
}

struct Present {
    attempt: Option<Attempt>,
    nodes: BTreeSet<u32>,
}

/// What a look found.
#[derive(Default)]
pub(super) struct News {
    pub(super) gone: Vec<(String, Attempt, Past)>,
    pub(super) arrived: Vec<Arrival>,
}

impl Others {
    /// Takes out what the daemon knows of the work of others, and returns the jobs.
    pub(super) fn recall(&mut self, jobs: Vec<(Attempt, String)>) -> Vec<(Attempt, String)> {
        *self = Others::default();
        let (others, jobs) = jobs.into_iter().partition(|(_, handle)| handle.starts_with(PREFIX));
        let others: Vec<(Attempt, String)> = others;
        for (attempt, handle) in others {
            // Its nodes stand in its handle, and are known at the next look.
            let present = Present { attempt: Some(attempt), nodes: BTreeSet::new() };
            self.handles.insert(attempt, handle.clone());
            self.present.insert(handle, present);
        }
        jobs
    }

    /// The daemon has taken work in; returns how it ended, if it has ended already.
    pub(super) fn accepted(&mut self, handle: &str, attempt: Attempt) -> Option<Past> {
        if let Some(present) = self.present.get_mut(handle) {
            present.attempt = Some(attempt);
            self.handles.insert(attempt, handle.to_owned());
        }
        self.unclaimed.remove(handle)
    }

    /// The daemon could not take work in; returns whether there is such work.
    pub(super) fn forget(&mut self, handle: &str) -> bool {
        self.unclaimed.remove(handle);
        let is_there = self.remove(handle).is_some();
        if is_there {
            let (times, last) =
                self.refused.entry(handle.to_owned()).or_insert((0, Instant::now()));
            (*times, *last) = (*times + 1, Instant::now());
        }
        is_there
    }

    /// Whether work is not offered again yet. The daemon may have nodes for it when another job has ended, or never.
    fn is_put_off(&self, handle: &str) -> bool {
        self.refused.get(handle).is_some_and(|(times, last)| {
            let pause = Duration::from_secs(5 << (*times).min(6)).min(LONGEST_PAUSE);
            last.elapsed() < pause
        })
    }

    pub(super) fn has(&self, attempt: Attempt) -> bool {
        self.handles.contains_key(&attempt)
    }

    pub(super) fn attempts(&self) -> impl Iterator<Item = Attempt> {
        self.handles.keys().copied()
    }

    fn remove(&mut self, handle: &str) -> Option<Present> {
        let present = self.present.remove(handle)?;
        if let Some(attempt) = present.attempt {
            self.handles.remove(&attempt);
        }
        Some(present)
    }

    /// What has come to nodes of ours, and what has left them. The daemon knows the other jobs.
    pub(super) fn look(
        &mut self,
        jobs: &Listing<Job>,
        nodes: &Listing<Node>,
        places: &HashMap<String, u32>,
        is_known: impl Fn(&Job) -> bool,
    ) -> News {
        let of_ours = |hosts: &HostList| -> BTreeSet<u32> {
            hosts.names().iter().filter_map(|name| places.get(name).copied()).collect()
        };
        let here = jobs.iter().filter(|job| job.has_nodes());
        let here =
            here.map(|job| (job, of_ours(&job.nodes))).filter(|(_, nodes)| !nodes.is_empty());
        let (known, strange): (Vec<_>, Vec<_>) = here.partition(|(job, _)| is_known(job));
        let explained: BTreeSet<u32> =
            known.iter().chain(&strange).flat_map(|(_, nodes)| nodes).copied().collect();
        let is_busy = |node: &&Node| ["ALLOCATED", "MIXED"].contains(&node.state.base.as_str());
        let busy = nodes.iter().filter(is_busy).filter_map(|node| places.get(&node.name).copied());
        let before = std::mem::take(&mut self.unexplained);
        // What cannot be read may be what explains it, or the node itself.
        if jobs.lost + nodes.lost > 0 {
            self.unexplained.clone_from(&before);
        }
        for node in busy.filter(|node| jobs.lost == 0 && !explained.contains(node)) {
            let looks = before.get(&node).copied().unwrap_or(0) + 1;
            self.unexplained.insert(node, looks);
        }
        let strangers: BTreeMap<String, (&Job, &BTreeSet<u32>)> =
            strange.iter().map(|(job, nodes)| (title(job), (*job, nodes))).collect();
        let mut news = News { gone: self.gone(jobs, &strangers, places), ..News::default() };
        let mut covered: BTreeSet<u32> =
            self.present.values().flat_map(|present| &present.nodes).copied().collect();
        covered.extend(known.iter().flat_map(|(_, nodes)| nodes));
        let names: HashMap<u32, &str> =
            places.iter().map(|(name, place)| (*place, name.as_str())).collect();
        for (title, (job, nodes)) in strangers {
            let new: BTreeSet<u32> = nodes.difference(&covered).copied().collect();
            // One that is about to leave was not seen before.
            if new.is_empty() || job.state == JobState::Completing {
                continue;
            }
            covered.extend(&new);
            let hosts = hosts(&new, &names);
            let handle = format!("{PREFIX}{title}:{hosts}");
            if !self.is_put_off(&handle) {
                news.arrived.push(self.arrived(handle, Some(job), new, &hosts));
            }
        }
        let unexplained = self.unexplained.iter();
        let lasting =
            unexplained.filter(|(node, looks)| **looks >= LOOKS && !covered.contains(node));
        let lasting: Vec<u32> = lasting.map(|(node, _)| *node).collect();
        for node in lasting {
            let new = BTreeSet::from([node]);
            let hosts = hosts(&new, &names);
            let handle = format!("{PREFIX}:{hosts}");
            if !self.is_put_off(&handle) {
                news.arrived.push(self.arrived(handle, None, new, &hosts));
            }
        }
        self.refused.retain(|_, (_, last)| last.elapsed() < 2 * LONGEST_PAUSE);
        news
    }

    /// What has left, and the nodes of what the daemon knows from before. What cannot be read has not left.
    fn gone(
        &mut self,
        jobs: &Listing<Job>,
        strangers: &BTreeMap<String, (&Job, &BTreeSet<u32>)>,
        places: &HashMap<String, u32>,
    ) -> Vec<(String, Attempt, Past)> {
        let may_be_there = |name: &str| match jobs.iter().find(|job| title(job) == name) {
            None => jobs.lost > 0 || jobs.iter().any(|job| has_this_number(job, name)),
            Some(job) => {
                let is_unclear = job.has_nodes() && !job.unread.is_empty();
                is_unclear || matches!(job.state, JobState::Other(_))
            }
        };
        let mut left = Vec::new();
        for (handle, present) in &mut self.present {
            let Some((title, hosts)) = handle[PREFIX.len()..].split_once(':') else { continue };
            let hosts = hosts.parse::<HostList>().unwrap_or_default();
            present.nodes =
                hosts.names().iter().filter_map(|name| places.get(name).copied()).collect();
            let is_there = match title {
                "" => present.nodes.iter().any(|node| self.unexplained.contains_key(node)),
                title => strangers.contains_key(title) || may_be_there(title),
            };
            if !is_there {
                left.push((handle.clone(), title.to_owned()));
            }
        }
        let mut gone = Vec::new();
        for (handle, name) in left {
            let ended = jobs.iter().find(|job| title(job) == name);
            let past = ended.map_or(Past::FORGOTTEN, Past::seen);
            match self.remove(&handle).and_then(|present| present.attempt) {
                Some(attempt) => gone.push((handle, attempt, past)),
                None => _ = self.unclaimed.insert(handle, past),
            }
        }
        gone
    }

    fn arrived(
        &mut self,
        handle: String,
        job: Option<&Job>,
        nodes: BTreeSet<u32>,
        hosts: &HostList,
    ) -> Arrival {
        let minutes = job.and_then(|job| job.limit_minutes);
        let time =
            minutes.map_or(NO_LIMIT, |minutes| Span::from_millis(60_000 * u64::from(minutes)));
        let request = JobRequest {
            name: match job {
                Some(job) => {
                    format!("job {} of {} in Slurm ({})", job.reference(), job.user, name(job))
                }
                None => format!("unknown work on {hosts}"),
            },
            nodes: nodes.len() as u32,
            moldable: None,
            time: time.clamp(Span::from_secs(60), NO_LIMIT),
            application: None,
            slowdown: None,
            after: Vec::new(),
            held: false,
            account: None,
            part: Default::default(),
        };
        let running = Some(Underway {
            nodes: nodes.iter().copied().collect(),
            ran: Span::ZERO,
            of_others: true,
            node_power: None,
        });
        self.present.insert(handle.clone(), Present { attempt: None, nodes });
        let owner = job.map_or(Owner { user: 0, group: 0 }, owner);
        Arrival { handle, owner, request, running }
    }
}

/// What distinguishes a job from all others.
fn title(job: &Job) -> String {
    format!("{}@{}", job.reference(), job.submitted.unwrap_or_default())
}

/// Whether a job of which it is not known when it was submitted may be the one with this title.
fn has_this_number(job: &Job, title: &str) -> bool {
    let number = title.split_once('@').map(|(number, _)| number);
    job.submitted.is_none() && number == Some(job.reference().to_string().as_str())
}

fn hosts(nodes: &BTreeSet<u32>, names: &HashMap<u32, &str>) -> HostList {
    HostList::new(nodes.iter().filter_map(|node| names.get(node)).map(|name| (*name).to_owned()))
}
