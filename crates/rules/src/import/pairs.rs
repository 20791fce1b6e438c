//! An object of JSON with all of its keys, also those that are there twice: other readers take one of them, and the import
//! says which.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// The keys and values of an object, in their order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pairs<T>(pub(super) Vec<(String, T)>);

/// A value that may be an object.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(untagged)]
pub(super) enum PairsOr {
    Object(Pairs<Value>),
    Other(Value),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for All<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    all.push(pair);
                }
                Ok(Pairs(all))
            }
        }
        from.deserialize_map(All(std::marker::PhantomData))
    }
}

impl<T> Pairs<T> {
    /// The keys with `true` for those that a reader drops, as the same key comes again.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, &T, bool)> {
        self.0.iter().enumerate().map(|(at, (key, value))| {
            let later = self.0.get(at + 1..).unwrap_or_default();
            (key.as_str(), value, later.iter().any(|(other, _)| other == key))
        })
    }
}
