//! Objects that are written as objects.
//!
//! What serde derives for a type with named fields also takes a list of their values in order, which no description of the
//! protocol has: whoever adds a field would change what such a list means.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A value that is read from an object alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }
        from.deserialize_map(Fields(PhantomData))
    }
}

/// Reads a list of objects.
pub(super) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(from)?;
    Ok(objects.into_iter().map(|Object(value)| value).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{BudgetChange, ForecastRequest};
    use super::*;

    #[test]
    fn a_list_is_no_object() {
        let read = |text: &str| serde_json::from_str::<Object<ForecastRequest>>(text);
        assert!(read("[]").unwrap_err().to_string().contains("expected an object"));
        assert!(read(r#"{"budget":[[3600,"500W"]]}"#).is_err());
        let Object(request) = read(r#"{"budget":[{"in_s":3600,"limit":"500W"}]}"#).unwrap();
        assert!(matches!(&request.budget[..], [BudgetChange { limit, .. }] if limit == "500W"));
    }
}
