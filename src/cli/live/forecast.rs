//! `busbar forecast`: when jobs will start, also under other assumptions.

use clap::Args;

use super::options::JobOptions;
use super::table::{fitted, terminal_width};
use super::{Daemon, budget, span, unexpected, words};
use crate::live::wire::{BudgetChange, Forecast, ForecastLine, ForecastRequest, Reply, Request};
use crate::policy::PolicySpec;
use crate::report::{Side, human_power};
use crate::units::Span;

/// Predict when each job will start
///
/// The daemon simulates from its current state. --budget assumes other budgets; -N, -t and the other options of
/// submit assume another job.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar forecast
  busbar forecast --budget 1.6kW
  busbar forecast --budget 5kW@+1h --budget 8kW@+6h
  busbar forecast -N 4 -t 2h
  busbar forecast --policy share
  busbar forecast --percent 50    jobs take half of their time limit")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    job: JobOptions,

    /// Assume another budget: VALUE from now on, or VALUE@+TIME after TIME; may be repeated
    #[arg(long, value_name = "VALUE[@+TIME]", value_parser = parse_change)]
    budget: Vec<BudgetChange>,

    /// Assume that another policy decides from now on
    #[arg(long, value_name = "POLICY")]
    policy: Option<PolicySpec>,

    /// Assume that jobs take this percentage of their time limit
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=100))]
    percent: Option<u32>,

    #[command(flatten)]
    daemon: Daemon,
}

/// Reads `5kW`, which is from now on, and `5kW@+1h`.
fn parse_change(text: &str) -> Result<BudgetChange, String> {
    let (value, after) = text.rsplit_once('@').unwrap_or((text, "+0"));
    let after = match after.strip_prefix('+') {
        Some("0") => Span::ZERO,
        Some(after) => span::parse(after)?,
        None => {
            return Err(format!(
                "'{text}': the time after @ is from now on, and begins with +; write 5kW@+1h"
            ));
        }
    };
    let limit = budget::meant(value).map_err(|error| format!("{error:#}"))?;
    Ok(BudgetChange { after, limit })
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let question = ForecastRequest {
        budget: arguments.budget.clone(),
        job: match arguments.job.were_given() {
            true => {
                Some(arguments.job.request("this job", |name| arguments.daemon.number_of(name))?)
            }
            false => None,
        },
        percent: arguments.percent,
        policy: arguments.policy.as_ref().map(|policy| policy.to_string()),
    };
    match arguments.daemon.ask(&Request::Forecast(Box::new(question)))? {
        Reply::Forecast(forecast) => {
            arguments.daemon.show(&forecast, |forecast| describe(forecast, terminal_width()))
        }
        reply => Err(unexpected(&reply)),
    }
}

fn describe(forecast: &Forecast, width: Option<usize>) -> String {
    let headings = [
        ("JOB", Side::Right),
        ("NAME", Side::Left),
        ("START", Side::Right),
        ("END", Side::Right),
        ("NODES", Side::Right),
        ("POWER", Side::Right),
        ("REASON", Side::Left),
    ];
    let time = |time: Option<i64>| time.map_or_else(|| "-".to_owned(), words::local_time);
    let row = |line: &ForecastLine| {
        vec![
            match (line.array, line.job) {
                (Some(element), _) => element.to_string(),
                (None, Some(job)) => job.to_string(),
                (None, None) => "new".to_owned(),
            },
            words::name(line.name.as_deref()),
            time(line.start),
            time(line.end),
            line.nodes.to_string(),
            line.power.map(|power| human_power(power.as_f64())).unwrap_or_default(),
            line.reason.as_deref().map(words::visible).unwrap_or_default(),
        ]
    };
    let mut text = match forecast.jobs.is_empty() {
        true => "no jobs\n".to_owned(),
        false => {
            let rows = forecast.jobs.iter().map(row).collect();
            let table = fitted(&headings, rows, width);
            let (over, peak) =
                (words::local_time(forecast.all_over), human_power(forecast.peak.as_f64()));
            format!("{table}all jobs end by {over}; peak power {peak}\n")
        }
    };
    for assumption in &forecast.assumptions {
        text += &format!("assumed: {}\n", words::visible(assumption));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_what_when() {
        let change = |after, limit: &str| Ok(BudgetChange { after, limit: limit.to_owned() });
        assert_eq!(parse_change("5kW@+1h"), change(Span::from_secs(3600), "5kW"));
        assert_eq!(parse_change("60%@+0"), change(Span::ZERO, "60%"));
        assert_eq!(parse_change("1.6kW"), change(Span::ZERO, "1.6kW"));
        for text in ["5", "5kW@1h", "@+1h", "5kW@+", "5kW@+soon", "5@+1h"] {
            assert!(parse_change(text).is_err(), "{text}");
        }
        assert!(parse_change("5kW@1h").unwrap_err().contains("write 5kW@+1h"));
    }
}
