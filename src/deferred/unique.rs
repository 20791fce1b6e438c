//! Reading a JSON object into a map, where a repeated key is an error: two readers would keep different answers.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

pub(super) fn map<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    struct Unique<V>(PhantomData<V>);

    impl<'de, V: Deserialize<'de>> Visitor<'de> for Unique<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object keyed by call id")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some(id) = access.next_key::<String>()? {
                let value = access.next_value()?;
                if map.contains_key(&id) {
                    return Err(A::Error::custom(format_args!(
                        "call `{}` appears twice",
                        id.escape_debug()
                    )));
                }
                map.insert(id, value);
            }
            Ok(map)
        }
    }

    deserializer.deserialize_map(Unique(PhantomData))
}
