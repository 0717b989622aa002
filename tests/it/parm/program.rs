//! PARM's integer program, solved by trying everything.
//!
//! Jobs are taken one after the other, and for every sum of nodes and milliwatts that any choice so
//! far can lead to, the best value is kept. Nothing is bounded or rounded away.

use std::collections::BTreeMap;

/// One way to run a job: nodes, milliwatts, and what it is worth.
pub(super) type Choice = (u32, u64, f64);

/// One job of the program.
pub(super) struct Entry {
    pub(super) is_required: bool,
    pub(super) choices: Vec<Choice>,
}

/// The largest value within so many nodes and milliwatts; nothing if the required ones do not fit.
pub(super) fn best(entries: &[Entry], nodes: u32, milliwatts: u64) -> Option<f64> {
    let mut sums: BTreeMap<(u32, u64), f64> = BTreeMap::from([((0, 0), 0.0)]);
    for entry in entries {
        let mut next = if entry.is_required { BTreeMap::new() } else { sums.clone() };
        for (&(nodes_before, milliwatts_before), &value_before) in &sums {
            for &(more_nodes, more_milliwatts, value) in &entry.choices {
                let sum = (nodes_before + more_nodes, milliwatts_before + more_milliwatts);
                if sum.0 <= nodes && sum.1 <= milliwatts {
                    let known = next.entry(sum).or_insert(f64::NEG_INFINITY);
                    *known = known.max(value_before + value);
                }
            }
        }
        sums = next;
    }
    sums.into_values().reduce(f64::max)
}

/// 10 nodes, 1000 W. One job must run, on 4 nodes with 300 W for 1.0 or with 400 W for 1.3; two
/// may. Together 400 + 350 + 250 W are all there is; the dear one on 8 nodes leaves no room.
#[test]
fn a_program_by_hand() {
    let entry = |is_required, choices: &[Choice]| Entry { is_required, choices: choices.to_vec() };
    let entries = [
        entry(true, &[(4, 300, 1.0), (4, 400, 1.3)]),
        entry(false, &[(4, 350, 1.0), (8, 650, 1.8)]),
        entry(false, &[(2, 250, 1.2)]),
    ];
    assert_eq!(best(&entries, 10, 1000), Some(1.3 + 1.0 + 1.2));
    assert_eq!(best(&entries, 10, 999), Some(1.0 + 1.0 + 1.2));
    assert_eq!(best(&entries, 3, 1000), None);
    assert_eq!(best(&[], 3, 1000), Some(0.0));
}
