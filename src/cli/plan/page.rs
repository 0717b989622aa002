//! `report.html` of a plan: the answer first, then what it rests on, then the runs on the machines that it names.

use super::{Report, Shown, map};
use crate::experiment::CheckedExperiment;
use crate::experiment::plan::advice::Recommended;
use crate::experiment::run::Results;
use crate::report::digest::Digest;
use crate::report::html::{Aside, Beside, page_with};
use crate::report::{Course, Palette, course, human_power, human_time};

impl Report<'_> {
    /// The page; `results` are the runs over the number of nodes.
    pub(super) fn page(&self, checked: &CheckedExperiment<'_>, results: &Results) -> String {
        let answer = self.answer;
        // Of all machines, those that the answer speaks of, the recommended one first: the others are rows of the table.
        let recommended = answer.recommended.map(|machine| machine.nodes);
        let wanted = [recommended, Some(answer.fed_nodes)];
        let is_wanted = |digest: &Digest| wanted.contains(&Some(digest.summary.nodes));
        let mut digests: Vec<Digest> =
            checked.digests(results).into_iter().filter(is_wanted).collect();
        digests.sort_by_key(|digest| Some(digest.summary.nodes) != recommended);
        let under = format!("{} under {}", answer.workload, answer.policy);
        let mut details = vec![
            self.by_nodes().aside("The same watts, more nodes", &under, &answer.policy),
            self.by_budget().aside(
                &format!("The same {} nodes, more watts", answer.machine_nodes),
                &under,
                &answer.policy,
            ),
        ];
        details.extend(answer.map.map(|map| {
            let (headings, rows) = map::table(map);
            let about = map::sentences(map, self.currency).join(" ");
            Aside {
                title: map::TITLE.to_owned(),
                about: about.trim_end_matches('.').to_owned(),
                headings,
                rows,
                picture: Some(map::picture(map)),
            }
        }));
        let mut notes: Vec<String> =
            answer.notes.iter().map(|note| format!("Note: {note}.")).collect();
        notes.extend(answer.assumptions.iter().map(|assumed| format!("Assumed: {assumed}.")));
        let beside = Beside {
            lead: Some(answer.recommendation.to_owned()),
            answer: answer.recommended.map(|machine| self.figures(machine)),
            details,
            notes,
            ..Beside::default()
        };
        page_with("How many nodes", &digests, &beside)
    }

    /// The figures of the recommended machine.
    fn figures(&self, machine: &Recommended) -> Aside {
        let currency = self.currency.map(|currency| format!(" {currency}")).unwrap_or_default();
        let money = |amount: f64| format!("{amount:.0}{currency}");
        let rows = [
            Some(("nodes", machine.nodes.to_string())),
            Some(("budget", human_power(machine.budget_w))),
            machine.mean_turnaround_s.map(|time| ("mean turnaround", human_time(time))),
            machine.work_nodes.map(|work| ("work of nodes at full speed", format!("{work:.1}"))),
            machine.cost_per_year.map(|cost| ("nodes and power for a year", money(cost))),
            machine
                .power_cost_per_year
                .map(|cost| ("power for a year with these jobs", money(cost))),
        ];
        Aside {
            title: "The recommended machine".to_owned(),
            about: format!("{} under {}", self.answer.workload, self.answer.policy),
            headings: ["figure", "value"].map(str::to_owned).to_vec(),
            rows: rows
                .into_iter()
                .flatten()
                .map(|(name, value)| vec![name.to_owned(), value])
                .collect(),
            picture: None,
        }
    }
}

impl Shown<'_> {
    /// The curve as a table with a picture.
    fn aside(&self, title: &str, about: &str, policy: &str) -> Aside {
        let (headings, rows) = self.table();
        // Rows begin with what they are about, and the mark follows it.
        let turned = |mut row: Vec<String>| {
            let mark = row.remove(0);
            let last = row.len() - 1;
            row[last] = format!("{mark} {}", row[last]).trim_end().to_owned();
            row
        };
        let heading = |name: &&str| if name.is_empty() { "remarks" } else { name }.to_owned();
        let (unit, size) = self.unit();
        let points = &self.curve.points;
        let steps: Vec<String> =
            points.iter().map(|point| self.quantity.show(point.at)[0].clone()).collect();
        // What leaves jobs undone has an easier time, and is not drawn.
        let value = |place: usize| {
            let figure = points[place].figure.filter(|_| self.curve.is_comparable(place))?;
            Some(figure.mean / size)
        };
        let svg = course(&Course {
            title,
            up: &format!("mean turnaround ({unit})"),
            steps: &steps,
            lines: vec![(policy.to_owned(), (0..points.len()).map(value).collect())],
            palette: &Palette::default(),
        });
        Aside {
            title: title.to_owned(),
            about: format!("{about}; ◆ is chosen, ○ some jobs that run elsewhere do not finish"),
            headings: headings[1..].iter().map(heading).collect(),
            rows: rows.into_iter().map(turned).collect(),
            picture: Some(svg),
        }
    }
}
