//! Whether the required entries fit at all, and a choice that shows it.

use super::instance::{Instance, Need, Offer};
use super::meter::Meter;
use super::{NoChoice, Search, Solver};
use crate::units::Watts;

/// A choice that fits: for each entry an option in its row. Optional entries are left out.
pub(super) fn witness(
    instance: &Instance,
    meter: &mut Meter<'_, '_>,
) -> Result<Vec<u32>, NoChoice> {
    let columns = &instance.columns;
    let amounts = |place: usize| [columns.nodes[place] as u64, columns.power[place] as u64];
    // Left out is the last option of an optional entry.
    let mut choice: Vec<u32> =
        (0..instance.entries()).map(|entry| (instance.row(entry).len() - 1) as u32).collect();
    let required: Vec<usize> =
        (0..instance.entries()).filter(|entry| instance.need(*entry) == Need::Required).collect();

    let available = [instance.nodes(), instance.power().milliwatts()];
    let mut least = [0, 0];
    for scarce in [0, 1] {
        let by_scarcity = match scarce {
            0 => [&columns.nodes, &columns.power],
            _ => [&columns.power, &columns.nodes],
        };
        let mut sum = [0, 0];
        for &entry in &required {
            let row = instance.row(entry);
            // Whole numbers all of them, and compared as they are kept.
            let thriftiest = row.clone().min_by(|a, b| {
                let [first, second] = by_scarcity;
                first[*a].total_cmp(&first[*b]).then(second[*a].total_cmp(&second[*b]))
            });
            let place = thriftiest.unwrap_or(row.start);
            choice[entry] = (place - row.start) as u32;
            sum = [sum[0] + amounts(place)[0], sum[1] + amounts(place)[1]];
        }
        if sum[0] <= available[0] && sum[1] <= available[1] {
            return Ok(choice);
        }
        least[scarce] = sum[scarce];
    }
    let excess = [0, 1].map(|i| least[i].saturating_sub(available[i]));
    if excess != [0, 0] {
        return Err(NoChoice::Exceeded {
            nodes: excess[0],
            power: Watts::from_milliwatts(excess[1]),
        });
    }
    together(instance, &required, choice, meter)
}

/// Each resource alone would do. The least power with which the required entries get along on the
/// nodes there are is a program of the same kind: what is saved against the most each could draw
/// is its value.
fn together(
    instance: &Instance,
    required: &[usize],
    mut choice: Vec<u32>,
    meter: &mut Meter<'_, '_>,
) -> Result<Vec<u32>, NoChoice> {
    let columns = &instance.columns;
    let unlimited = Instance::new(instance.nodes(), Watts::UNLIMITED);
    let mut thrift = unlimited.map_err(|_| NoChoice::Undecided)?;
    let mut most = 0;
    for &entry in required {
        let row = instance.row(entry);
        let largest = columns.power[row.clone()].iter().copied().fold(0.0, f64::max);
        most += largest as u64;
        let offers: Vec<Offer> = row
            .map(|place| Offer {
                nodes: columns.nodes[place] as u32,
                power: Watts::from_milliwatts(columns.power[place] as u64),
                value: largest - columns.power[place],
            })
            .collect();
        thrift.add(Need::Required, &offers).map_err(|_| NoChoice::Undecided)?;
    }
    let available = instance.power().milliwatts();
    let search = Search { gap: 0.0, enough: most.saturating_sub(available) as f64, warm: None };
    let saved = Solver::default().search(&thrift, &search, meter)?;
    if saved.power_used.milliwatts() <= available {
        for (&entry, option) in required.iter().zip(&saved.chosen) {
            choice[entry] = option.unwrap_or(0) as u32;
        }
        return Ok(choice);
    }
    // Rounded in the careful direction: what is claimed is certain.
    let at_most_saved = (saved.bound * (1.0 + 1e-12)).floor() as u64;
    match most.saturating_sub(at_most_saved) {
        least if least > available => {
            Err(NoChoice::Together { power: Watts::from_milliwatts(least - available) })
        }
        _ => Err(NoChoice::Undecided),
    }
}
