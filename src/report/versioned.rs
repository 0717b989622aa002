//! The form of an answer in JSON, by a number: scripts can tell whether they know it.

use serde::Serialize;

/// The present form of all answers. Keys may be added without a new number; if one is removed or means something
/// else, the number grows.
///
/// Form 2 has watts, seconds and joules only, and says so in the keys: `energy_by_state` had microjoules without a unit.
pub(crate) const FORMAT: u32 = 2;

/// An answer with the number of its form before everything else.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Versioned<T> {
    format: u32,
    #[serde(flatten)]
    answer: T,
}

impl<T: Serialize> Versioned<T> {
    /// An answer in the present form. It has to be one that becomes an object.
    pub(crate) fn new(answer: T) -> Self {
        Versioned { format: FORMAT, answer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_number_comes_first() {
        let text = serde_json::to_string(&Versioned::new(json!({"a": 0.1, "b": null}))).unwrap();
        assert_eq!(text, r#"{"format":2,"a":0.1,"b":null}"#);
    }
}
