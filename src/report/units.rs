//! Quantities in the unit that suits them.

/// The unit that suits a length of time, and its seconds.
pub(crate) fn time_unit(seconds: f64) -> (&'static str, f64) {
    match seconds {
        s if s < 120.0 => ("s", 1.0),
        s if s < 7200.0 => ("min", 60.0),
        s if s < 172_800.0 => ("h", 3600.0),
        _ => ("days", 86_400.0),
    }
}

/// The prefix of a unit that suits a value, and how much it stands for.
pub(crate) fn prefix(value: f64) -> (&'static str, f64) {
    let prefixes = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
    prefixes.into_iter().find(|(_, size)| value >= *size).unwrap_or(("", 1.0))
}

/// A length of time in the unit that suits it.
pub(crate) fn human_time(seconds: f64) -> String {
    let (unit, size) = time_unit(seconds);
    format!("{:.1} {unit}", seconds / size)
}

/// Power in the unit that suits it.
pub(crate) fn human_power(watts: f64) -> String {
    scaled(watts, "W")
}

/// Energy in the unit that suits it.
pub(crate) fn human_energy(joules: f64) -> String {
    scaled(joules, "J")
}

/// A mass in the unit that suits it.
pub(crate) fn human_mass(kilograms: f64) -> String {
    match kilograms.abs() >= 1000.0 {
        true => format!("{:.2} t", kilograms / 1000.0),
        false => format!("{kilograms:.2} kg"),
    }
}

fn scaled(value: f64, unit: &str) -> String {
    match prefix(value) {
        ("", _) => format!("{value:.1} {unit}"),
        (prefix, size) => format!("{:.2} {prefix}{unit}", value / size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_take_the_unit_that_suits_them() {
        assert_eq!(human_time(59.96), "60.0 s");
        assert_eq!(human_time(5400.0), "90.0 min");
        assert_eq!(human_time(36_000.0), "10.0 h");
        assert_eq!(human_time(864_000.0), "10.0 days");
        assert_eq!(human_power(4_200_000.0), "4.20 MW");
        assert_eq!(human_power(12.0), "12.0 W");
        assert_eq!(human_energy(1.5e9), "1.50 GJ");
    }
}
