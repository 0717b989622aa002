//! A target for each parser. What is read must also be written, resolved or read again, where that is what comes next.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use busbar::machine::Machine;
use busbar::workload::records::Format;

use crate::engine::Target;

use applications::{
    profile_files, profiles, run_files, task_files, tasks, utilities, utility_files, variation,
    variation_files, variation_runs,
};
use daemon::{
    agent_config, agent_configs, agent_message, agent_messages, daemon_config, daemon_configs,
    replies, reply, request_lines, requests,
};
use logs::{
    import, lsf_examples, packed_examples, packed_log, pbs_examples, sacct_examples,
    sacct_json_examples, submit_line, submit_lines, swf_examples, swf_log, tables_of_jobs,
};
use site::{
    budget, budget_file, budget_files, budgets, calendar, calendars, machine_file, machine_files,
    machines, priority_file, priority_files, tariff, tariff_file, tariff_files, tariffs,
};
use slurm::{
    rest_answer, rest_answers, slurm_answer, slurm_answers, slurm_indices, slurm_job_list,
    slurm_jobs, slurm_listings, slurm_phrases, slurm_priorities, slurm_priority_answers,
    slurm_recording, slurm_site, slurm_sites, slurm_texts, slurm_words,
};
use typed::{
    array, arrays, experiment, experiments, policies, policy, program, programs, quantities,
    quantity, workload, workloads,
};

mod applications;
mod daemon;
mod logs;
mod site;
mod slurm;
mod typed;

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "swf", examples: swf_examples, run: swf_log },
    Target { name: "swf-packed", examples: packed_examples, run: packed_log },
    Target {
        name: "sacct",
        examples: sacct_examples,
        run: |_, input| import(Format::Sacct, input),
    },
    Target {
        name: "sacct-json",
        examples: sacct_json_examples,
        run: |_, input| import(Format::Sacct, input),
    },
    Target { name: "submit-line", examples: submit_lines, run: submit_line },
    Target { name: "pbs", examples: pbs_examples, run: |_, input| import(Format::Pbs, input) },
    Target { name: "lsf", examples: lsf_examples, run: |_, input| import(Format::Lsf, input) },
    Target {
        name: "pm100",
        examples: tables_of_jobs,
        run: |_, input| import(Format::Pm100, input),
    },
    Target {
        name: "fdata",
        examples: tables_of_jobs,
        run: |_, input| import(Format::Fdata, input),
    },
    Target { name: "machine-file", examples: machine_files, run: machine_file },
    Target { name: "site-file", examples: priority_files, run: priority_file },
    Target { name: "machine", examples: machines, run: |_, input| text(input, Machine::from_text) },
    Target { name: "budget", examples: budgets, run: budget },
    Target { name: "budget-file", examples: budget_files, run: budget_file },
    Target { name: "calendar", examples: calendars, run: calendar },
    Target { name: "tariff", examples: tariffs, run: tariff },
    Target { name: "tariff-file", examples: tariff_files, run: tariff_file },
    Target { name: "policy", examples: policies, run: policy },
    Target { name: "workload", examples: workloads, run: workload },
    Target { name: "profiles", examples: profile_files, run: profiles },
    Target { name: "variation", examples: variation_files, run: variation },
    Target { name: "variation-runs", examples: run_files, run: variation_runs },
    Target { name: "utilities", examples: utility_files, run: utilities },
    Target { name: "tasks", examples: task_files, run: tasks },
    Target { name: "program", examples: programs, run: program },
    Target { name: "experiment", examples: experiments, run: experiment },
    Target { name: "daemon-config", examples: daemon_configs, run: daemon_config },
    Target { name: "agent-config", examples: agent_configs, run: agent_config },
    Target { name: "requests", examples: requests, run: request_lines },
    Target { name: "replies", examples: replies, run: reply },
    Target { name: "agent-messages", examples: agent_messages, run: agent_message },
    Target { name: "slurm-jobs", examples: slurm_jobs, run: slurm_job_list },
    Target { name: "slurm-texts", examples: slurm_texts, run: slurm_listings },
    Target { name: "slurm-json", examples: slurm_answers, run: slurm_answer },
    Target { name: "slurm-site", examples: slurm_sites, run: slurm_site },
    Target { name: "slurm-priorities", examples: slurm_priority_answers, run: slurm_priorities },
    Target { name: "slurm-recording", examples: slurm_indices, run: slurm_recording },
    Target { name: "slurmrestd", examples: rest_answers, run: rest_answer },
    Target { name: "slurm-words", examples: slurm_phrases, run: slurm_words },
    Target { name: "quantities", examples: quantities, run: quantity },
    Target { name: "job-arrays", examples: arrays, run: array },
];

/// What came of something, in words.
fn told<T, E: Display>(result: Result<T, E>) -> String {
    match result {
        Ok(_) => "it is read".to_owned(),
        Err(error) => {
            let said = error.to_string();
            assert!(!said.is_empty(), "an error says what is wrong");
            said
        }
    }
}

/// The same of an error that has its reasons behind it.
fn told_why<T, E: std::error::Error>(result: Result<T, E>) -> String {
    let mut said = String::new();
    if let Err(error) = &result {
        let mut reason = error.source();
        while let Some(why) = reason {
            said += &why.to_string();
            reason = why.source();
        }
    }
    said + &told(result)
}

/// What a reader of texts makes of bytes; those that are no text do not get to it.
fn text<T, E: Display>(input: &[u8], read: impl FnOnce(&str) -> Result<T, E>) -> String {
    match std::str::from_utf8(input) {
        Ok(text) => told(read(text)),
        Err(_) => "no text".to_owned(),
    }
}

/// What is read is written, and read again as the same.
fn round_trip<T>(input: &str) -> String
where
    T: FromStr<Err: Display> + Display + PartialEq + Debug,
{
    let read = input.parse::<T>();
    if let Ok(value) = &read {
        let written = value.to_string();
        match written.parse::<T>() {
            Ok(again) => assert_eq!(again, *value, "'{written}'"),
            Err(error) => panic!("'{written}' was written and is not read: {error}"),
        }
    }
    told(read)
}

const FILE: &str = "file.csv";
