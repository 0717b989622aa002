//! The one answer of a plan: this many nodes under the limit that was asked about, or why no number can be recommended.
//!
//! Without a price of nodes, the turnaround of the jobs decides: the knee of its [curve](Curve), or what is enough. With
//! one, the money does: of the machines that keep up with the log, the one with the most work for it. If none keeps up,
//! the one that falls behind least. Machines that leave jobs undone which others complete are never chosen, nor those with
//! more nodes than the jobs could ever use at once, of which the log can tell nothing.

use serde::Serialize;

use super::Question;
use super::map::{Map, MapPlace};
use crate::experiment::curve::{Curve, TOLERANCE};
use crate::prepared::Demand;
use crate::report::{human_power, human_time};
use crate::tariff::Currency;

/// What an answer rests on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grounds<'a> {
    /// What the jobs ask for.
    pub(crate) demand: &'a Demand,
    /// The mean turnaround over the number of nodes, under the limit that was asked about.
    pub(crate) curve: &'a Curve,
    /// What machines can do if jobs wait at all times, with what they cost, if nodes have a price.
    pub(crate) priced: Option<&'a Map>,
    /// What power costs for a year, for each point of the curve, where that is known.
    pub(crate) power_costs: &'a [Option<f64>],
    /// The currency of all costs, if there are any.
    pub(crate) currency: Option<Currency>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Advice {
    /// This machine.
    Take(Recommended),
    /// No machine, for the reason in this sentence.
    Nothing(String),
}

/// A machine that is recommended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Recommended {
    /// Its nodes.
    pub(crate) nodes: u32,
    /// The limit.
    pub(crate) budget_w: f64,
    /// What decided.
    pub by: Criterion,
    /// How many jobs of the log are not completed there, in the mean of the seeds.
    pub(crate) undone: f64,
    /// The mean turnaround of the jobs of the log.
    pub(crate) mean_turnaround_s: Option<f64>,
    /// How many nodes at full speed would do as much, if jobs wait at all times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) work_nodes: Option<f64>,
    /// Nodes and power for a year in which jobs wait at all times, if both have a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_per_year: Option<f64>,
    /// Power alone for a year with the jobs of the log, if it has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) power_cost_per_year: Option<f64>,
    /// The answer in a sentence.
    #[serde(skip)]
    pub(crate) sentence: String,
    /// Its place on the curve.
    #[serde(skip)]
    pub(crate) place: usize,
}

/// What decides among machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Criterion {
    /// The mean turnaround of the jobs.
    Turnaround,
    /// The work for the money, of machines that keep up with the log.
    WorkForMoney,
    /// The work, since no machine keeps up.
    Work,
}

/// A machine with its price that may be recommended.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    /// Its place on the curve.
    place: usize,
    at: &'a MapPlace,
    work: f64,
    cost: f64,
}

/// The candidate that is worth most; the first of equals, which has the fewest nodes.
fn best<'a, 'b>(
    candidates: impl Iterator<Item = &'a Candidate<'b>>,
    worth: impl Fn(&Candidate<'b>) -> f64,
) -> Option<&'a Candidate<'b>>
where
    'b: 'a,
{
    candidates.fold(None, |best, each| match best {
        Some(known) if worth(known) >= worth(each) => best,
        _ => Some(each),
    })
}

impl Advice {
    /// The answer in a sentence.
    pub(crate) fn sentence(&self) -> &str {
        match self {
            Advice::Take(recommended) => &recommended.sentence,
            Advice::Nothing(why) => why,
        }
    }

    /// The machine, if one is recommended.
    pub(crate) fn taken(&self) -> Option<&Recommended> {
        match self {
            Advice::Take(recommended) => Some(recommended),
            Advice::Nothing(_) => None,
        }
    }
}

impl Question {
    /// The answer that the runs allow.
    pub(crate) fn advice(&self, grounds: &Grounds<'_>) -> Advice {
        let Grounds { demand, curve, priced, .. } = *grounds;
        let limit = human_power(self.limit.as_f64());
        if curve.enough.is_none() {
            return Advice::Nothing(format!("Under {limit}, no job runs on any number of nodes."));
        }
        let (fed, most) = (self.fed(), demand.nodes);
        if u64::from(fed) >= most {
            return Advice::Nothing(format!(
                "No number of nodes is recommended: {limit} supply {fed} nodes at full power, and the jobs use at \
                most {most} at once, so no job ever has to wait. Plan with a lower budget, or with a log that fills the machine."
            ));
        }
        // Of more nodes than can ever be in use, the log says nothing.
        let supported = curve.up_to(most as f64);
        match priced {
            Some(map) => self.by_money(grounds, &supported, map),
            None => self.by_turnaround(grounds, &supported),
        }
    }

    fn by_turnaround(&self, grounds: &Grounds<'_>, supported: &Curve) -> Advice {
        let Some(place) = supported.recommended() else {
            let limit = human_power(self.limit.as_f64());
            return Advice::Nothing(format!(
                "No number of nodes is recommended: under {limit}, the most jobs complete on machines with more \
                nodes than the jobs can use at once, which is {}. Give more power, or another policy.",
                grounds.demand.nodes
            ));
        };
        let power = grounds.power_costs.get(place).copied().flatten();
        let mut sentence = self.turnaround_sentence(grounds.curve, place);
        if let Some((cost, currency)) = power.zip(grounds.currency) {
            sentence += &format!(" With these jobs, power costs {cost:.0} {currency} a year.");
        }
        self.take(grounds, place, Criterion::Turnaround, None, sentence)
    }

    fn by_money(&self, grounds: &Grounds<'_>, supported: &Curve, map: &Map) -> Advice {
        let limit = human_power(self.limit.as_f64());
        let mut candidates: Vec<Candidate<'_>> = (0..supported.points.len())
            .filter(|place| supported.is_comparable(*place))
            .filter_map(|place| {
                let nodes = supported.points[place].at as u32;
                let at = &map.places[map.find(nodes, self.limit.as_f64())?];
                Some(Candidate { place, at, work: at.work_nodes?, cost: at.cost_per_year? })
            })
            .collect();
        let fewest = candidates.iter().map(|each| each.at.undone).fold(f64::INFINITY, f64::min);
        candidates.retain(|each| each.at.undone <= fewest);
        let keeps_up = |each: &&Candidate<'_>| each.at.load.is_none_or(|load| load <= 1.0);
        let first = best(candidates.iter().filter(keeps_up), |each| each.work / each.cost);
        let (by, chosen) = match first {
            Some(chosen) => (Criterion::WorkForMoney, chosen),
            None => match best(candidates.iter(), |each| each.work) {
                Some(chosen) => (Criterion::Work, chosen),
                None => {
                    return Advice::Nothing(format!(
                        "No number of nodes is recommended: the cost of machines under {limit} is not known for \
                        the whole time."
                    ));
                }
            },
        };
        let Candidate { place, at, work, cost } = *chosen;
        let currency = grounds.currency.map(|currency| format!(" {currency}")).unwrap_or_default();
        let does = format!(
            "that of {work:.1} nodes at full speed, at {cost:.0}{currency} a year for nodes and power"
        );
        let turnaround = turnaround(supported, place);
        let nodes = at.nodes;
        let sentence = match by {
            Criterion::Work => format!(
                "Under {limit}, take {nodes} nodes: they do the most work, {does}. No machine under this budget keeps up \
                 with the log, which keeps {:.1} nodes busy on average. The mean turnaround of its jobs is \
                 {turnaround}.",
                map.offered_nodes.unwrap_or_default()
            ),
            _ => format!(
                "Under {limit}, take {nodes} nodes: they do the most work for the money, {does}. The mean turnaround of \
                 the jobs is {turnaround}."
            ),
        };
        self.take(grounds, place, by, Some(at), sentence)
    }

    fn take(
        &self,
        grounds: &Grounds<'_>,
        place: usize,
        by: Criterion,
        at: Option<&MapPlace>,
        sentence: String,
    ) -> Advice {
        let point = grounds.curve.points[place];
        let sentence = match point.undone {
            undone if undone > 0.0 => format!(
                "{sentence} Even there {undone:.0} jobs of the log do not complete, the fewest of all simulated \
                machines."
            ),
            _ => sentence,
        };
        Advice::Take(Recommended {
            undone: point.undone,
            nodes: point.at as u32,
            budget_w: self.limit.as_f64(),
            by,
            mean_turnaround_s: point.figure.map(|figure| figure.mean),
            work_nodes: at.and_then(|at| at.work_nodes),
            cost_per_year: at.and_then(|at| at.cost_per_year),
            power_cost_per_year: grounds.power_costs.get(place).copied().flatten(),
            sentence,
            place,
        })
    }

    /// Why a place on the curve is the one to choose.
    fn turnaround_sentence(&self, curve: &Curve, chosen: usize) -> String {
        let limit = human_power(self.limit.as_f64());
        let (nodes, fed) = (curve.points[chosen].at, f64::from(self.fed()));
        let least = match curve.points.iter().position(|point| point.at == fed) {
            Some(place) if place == chosen => String::new(),
            Some(place) if curve.is_comparable(place) => {
                format!(
                    " instead of {} on the {fed} nodes that it supplies at full power",
                    turnaround(curve, place)
                )
            }
            Some(place) => format!(
                ", while {:.0} jobs would not complete on the {fed} nodes that it supplies at full power",
                curve.points[place].undone
            ),
            None => String::new(),
        };
        let last = (0..curve.points.len()).rev().find(|place| curve.is_comparable(*place));
        let most = last.map_or(nodes, |place| curve.points[place].at);
        let more = match curve.enough.filter(|enough| *enough > chosen) {
            Some(enough) => {
                let many = curve.points[enough].at;
                format!(
                    "; each further node gains less, down to {} on {many}",
                    turnaround(curve, enough)
                )
            }
            None if most > nodes && !curve.gains_after(chosen) => {
                "; more nodes gain nothing".to_owned()
            }
            None if most > nodes => {
                format!("; up to {most} nodes gain less than {:.0} % more", TOLERANCE * 100.0)
            }
            None if curve.points.last().is_some_and(|point| point.at > nodes) => {
                "; with more nodes, fewer jobs complete, because idle nodes take their power"
                    .to_owned()
            }
            None => "; still more nodes may gain more".to_owned(),
        };
        let turnaround = turnaround(curve, chosen);
        format!(
            "Under {limit}, take {nodes} nodes: the mean turnaround is {turnaround}{least}{more}."
        )
    }
}

fn turnaround(curve: &Curve, place: usize) -> String {
    let figure = curve.points[place].figure;
    figure.map_or_else(|| "-".to_owned(), |figure| human_time(figure.mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::curve::CurvePoint;
    use crate::experiment::ranking::Spread;
    use crate::machine::Machine;
    use crate::units::{Span, Watts};

    /// 256 nodes of 100 W and 1 kW of base power, under 16.36 kW, which feeds 153.
    fn question() -> Question {
        let machine = Machine::of_processors(256).unwrap();
        let machine = Machine { base_power: Watts::from_watts(1000), ..machine };
        Question { machine, limit: Watts::from_watts(16_360) }
    }

    fn demand(nodes: u64) -> Demand {
        Demand { processors: None, nodes, work: 5000, span: Span::from_millis(100) }
    }

    fn curve(points: &[(f64, f64, f64)]) -> Curve {
        let point = |&(at, hours, undone): &(f64, f64, f64)| {
            let figure = Some(Spread { mean: hours * 3600.0, deviation: None });
            CurvePoint { at, figure, undone }
        };
        Curve::through(points.iter().map(point).collect())
    }

    fn grounds<'a>(demand: &'a Demand, curve: &'a Curve) -> Grounds<'a> {
        Grounds { demand, curve, priced: None, power_costs: &[], currency: None }
    }

    #[test]
    fn the_sentence_says_what_it_rests_on() {
        let question = question();
        let demand = demand(500);
        let sentence = |points: &[(f64, f64, f64)]| {
            question.advice(&grounds(&demand, &curve(points))).sentence().to_owned()
        };
        assert_eq!(
            sentence(&[(153.0, 30.0, 0.0), (256.0, 20.5, 0.0), (459.0, 20.0, 0.0)]),
            "Under 16.36 kW, take 256 nodes: the mean turnaround is 20.5 h instead of 30.0 h on the \
             153 nodes that it supplies at full power; up to 459 nodes gain less than 5 % more."
        );
        let falling = sentence(&[(153.0, 30.0, 0.0), (256.0, 12.0, 0.0), (459.0, 8.0, 0.0)]);
        assert!(
            falling.contains("each further node gains less, down to 8.0 h on 459"),
            "{falling}"
        );
        let undone = sentence(&[(153.0, 3.0, 43.0), (256.0, 20.5, 0.0)]);
        assert!(undone.contains("43 jobs would not complete on the"), "{undone}");
        let never = sentence(&[(153.0, 3.0, 43.0), (256.0, 2.0, 28.0)]);
        assert!(
            never.ends_with(
                "Even there 28 jobs of the log do not complete, the fewest of all simulated \
        machines."
            ),
            "{never}"
        );
        assert!(sentence(&[]).contains("no job runs"));
    }

    /// 153 nodes are fed. If jobs can use no more at once, there is nothing to choose; if they can use 200, the gain
    /// on 459 is none that the log can tell.
    #[test]
    fn nothing_is_recommended_that_the_log_cannot_tell() {
        let question = question();
        // On a straight line from 30 to 8 h, 191 nodes would be at 27.3 h: there is no knee.
        let curve = curve(&[(153.0, 30.0, 0.0), (191.0, 28.0, 0.0), (459.0, 8.0, 0.0)]);
        let flat = demand(153);
        let advice = question.advice(&grounds(&flat, &curve));
        assert_eq!(advice.taken(), None);
        assert!(advice.sentence().starts_with("No number of nodes is recommended"), "{advice:?}");
        let narrow = demand(200);
        assert_eq!(question.advice(&grounds(&narrow, &curve)).taken().unwrap().nodes, 191);
        let wide = demand(500);
        assert_eq!(question.advice(&grounds(&wide, &curve)).taken().unwrap().nodes, 459);
    }

    /// Under the limit that was asked about, 191 nodes do the most for the money. Under another one 459 would do more.
    #[test]
    fn money_decides_under_the_limit_that_was_asked_about() {
        let question = question();
        let limit = question.limit.as_f64();
        let curve = curve(&[(153.0, 30.0, 0.0), (191.0, 25.0, 0.0), (459.0, 8.0, 0.0)]);
        let demand = demand(500);
        let place = |nodes, budget_w, work: f64, cost| MapPlace {
            nodes,
            budget_w,
            work_nodes: Some(work),
            undone: 0.0,
            mean_power_w: None,
            load: demand.mean_nodes().map(|offered| offered / work),
            cost_per_year: cost,
        };
        let places = |cheapest| {
            vec![
                place(153, limit, 100.0, Some(1000.0)),
                place(191, limit, 120.0, cheapest),
                place(459, limit, 130.0, Some(3000.0)),
                place(459, 1.5 * limit, 400.0, Some(3100.0)),
            ]
        };
        let map = Map::of(places(Some(1100.0)), &demand);
        assert_eq!(map.best_per_cost, Some(3));
        let euro = Currency::of("EUR");
        let advice = question.advice(&Grounds {
            priced: Some(&map),
            currency: euro,
            ..grounds(&demand, &curve)
        });
        let taken = advice.taken().unwrap();
        assert_eq!((taken.nodes, taken.place, taken.cost_per_year), (191, 1, Some(1100.0)));
        assert!(advice.sentence().contains("at 1100 EUR a year"), "{advice:?}");
        // A machine that falls behind is not chosen, however cheap: the log keeps 50 nodes busy.
        let slow =
            |work: f64| MapPlace { load: Some(50.0 / work), ..place(191, limit, work, Some(1.0)) };
        let map = Map::of(vec![place(153, limit, 51.0, Some(1000.0)), slow(49.0)], &demand);
        let advice = question.advice(&Grounds { priced: Some(&map), ..grounds(&demand, &curve) });
        assert_eq!(advice.taken().unwrap().nodes, 153);
        // If all fall behind, the price decides nothing.
        let behind = MapPlace { load: Some(50.0 / 48.0), ..place(153, limit, 48.0, Some(0.5)) };
        let map = Map::of(vec![behind, slow(49.0)], &demand);
        let advice = question.advice(&Grounds { priced: Some(&map), ..grounds(&demand, &curve) });
        assert_eq!(advice.taken().unwrap().nodes, 191);
        assert!(
            advice.sentence().contains("keeps up with the log, which keeps 50.0"),
            "{advice:?}"
        );
        // Nor is one whose cost is not known.
        let map = Map::of(vec![place(191, limit, 120.0, None)], &demand);
        let advice = question.advice(&Grounds { priced: Some(&map), ..grounds(&demand, &curve) });
        assert!(advice.sentence().contains("not known"), "{advice:?}");
    }
}
