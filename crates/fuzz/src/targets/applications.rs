//! Tables of applications, processors and tasks.

use std::path::Path;

use busbar::heterogeneity::{Site, Tables};
use busbar::profile::csv::{Layout, Sheet};
use busbar::utility::Utilities;
use busbar::variation::csv::Table;
use busbar::variation::runs::Runs;
use busbar::workload::essc::Tasks;

use super::{FILE, text, told};
use crate::engine::Place;
use crate::examples::{files, texts};

pub(super) fn profile_files() -> Vec<Vec<u8>> {
    let mut all =
        files(&["tests/cmd", "examples"], &["profiles.csv", "rows.csv", "measurements.csv"]);
    all.extend(texts(&[
        "application,nodes,cores,cap_w,time_s,power_w,origin\nEP,1,1,40,2,80,predicted\nEP,1,1,100,1,200,predicted\n",
        "application,nodes,cores,cap_w,time_s,energy_j\nLU,2,16,60,100.5,22000\n\"LU, big\",2,16,80,90.25,25000\n",
        "application;nodes;cores;cap;time;power\nCG;4;24;120W;3min;400W\n",
    ]));
    all
}

pub(super) fn profiles(_: &Place, input: &[u8]) -> String {
    let layout = Layout::new(Vec::new(), Vec::new()).expect("a layout without renamed columns");
    let sheet = Sheet::decode(input, Path::new(FILE), &layout);
    if let Ok(sheet) = &sheet {
        let _ = sheet.profiles();
    }
    told(sheet)
}

pub(super) fn variation_files() -> Vec<Vec<u8>> {
    let mut all = files(&["tests/cmd", "examples"], &["curves.csv"]);
    all.extend(texts(&[
        "processor,application,cap_w,power_w,ips\n1,EP,50,50,1000\n1,EP,80,80,1500\n2,EP,50,50,900\n2,EP,80,79,1450\n",
        "processor,cap_w,power_w,ips\n1,50,50,1000\n1,80,80,1500\n",
    ]));
    all
}

pub(super) fn variation(_: &Place, input: &[u8]) -> String {
    text(input, |text| Table::parse(text, Path::new(FILE)))
}

pub(super) fn run_files() -> Vec<Vec<u8>> {
    texts(&[
        "processor,application,cap,power,ips\ngpu-1,sgemm,300W,290,1000\ngpu-2,sgemm,300W,295,980\n",
        "processor,application,cap,power,time\na,EP,50,49,12.5\na,EP,60,58,11.0\nb,EP,50,50,12.7\n",
    ])
}

pub(super) fn variation_runs(_: &Place, input: &[u8]) -> String {
    text(input, |text| -> Result<(), String> {
        let runs =
            Runs::parse(text, Path::new(FILE), &[], &[]).map_err(|error| error.to_string())?;
        let mut written = Vec::new();
        let _ = busbar::variation::csv::write_relative(&mut written, runs.measurements());
        Ok(())
    })
}

pub(super) fn utility_files() -> Vec<Vec<u8>> {
    texts(&[
        "high,0,8,0\nhigh,60,4,0.1\nhigh,600,0,0\nlow,0,1,0\n",
        "gold,0,10,0.5\ngold,10.5,3,0\n",
    ])
}

pub(super) fn utilities(_: &Place, input: &[u8]) -> String {
    text(input, |text| -> Result<(), String> {
        let read = Utilities::parse(text, Path::new(FILE)).map_err(|error| error.to_string())?;
        let mut written = Vec::new();
        read.write(&mut written).expect("memory can be written to");
        let written = String::from_utf8(written).expect("a text");
        let again = Utilities::parse(&written, Path::new(FILE));
        assert!(again.is_ok(), "{written}");
        Ok(())
    })
}

/// The files of a folder, with a line between them.
const BETWEEN: &str = "\n----\n";

pub(super) fn task_files() -> Vec<Vec<u8>> {
    let four = [
        "cpu,2,general\ngpu,1,special\n",
        "x,cpu,0,10,100\nx,cpu,1,20,60\nx,gpu,0,5,200\ny,cpu,0,8,90\n",
        "high,0,8,0.1\nhigh,60,4,0\nlow,0,1,0\n",
        "1,0,x,high\n2,3.5,y,low\n",
    ];
    texts(&[&four.join(BETWEEN)])
}

pub(super) fn tasks(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let mut parts = text.split(BETWEEN);
    let [machines, entries, utilities, tasks] =
        std::array::from_fn(|_| parts.next().unwrap_or_default());
    let path = Path::new(FILE);
    let (tables, utilities) =
        (Tables::parse((machines, path), (entries, path)), Utilities::parse(utilities, path));
    let (Ok(tables), Ok(utilities)) = (&tables, &utilities) else {
        return told(tables) + &told(utilities);
    };
    let site = Site { tables: tables.clone().into(), utilities: utilities.clone().into() };
    told(Tasks::parse(tasks, path, "tasks", site))
}
