//! A map of values by their type, as in the `http` crate, but cheap to clone.
//!
//! Every layer clones the call, and so does each retry, and most calls have no extension at all. So the map is behind
//! an `Option` and an `Arc`: an empty one is a null pointer, and a clone costs one counter. If a layer adds a value to
//! a shared map, it copies the pointers of the values, never the values.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A map of values that are looked up by their type. Clones share the map until one of them adds a value.
///
/// ```
/// use countersign::call::Extensions;
/// #[derive(Debug, PartialEq)]
/// struct Tenant(u32);
///
/// let mut extensions = Extensions::default();
/// extensions.insert(Tenant(7));
/// assert_eq!(extensions.get::<Tenant>(), Some(&Tenant(7)));
/// assert_eq!(extensions.get::<String>(), None);
/// ```
#[derive(Clone, Default)]
pub struct Extensions(Option<Arc<HashMap<TypeId, Extension>>>);

#[derive(Clone)]
struct Extension {
    name: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl Extensions {
    /// Adds a value, in place of an earlier one of the same type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        let map = self.0.get_or_insert_default();
        Arc::make_mut(map).insert(
            TypeId::of::<T>(),
            Extension { name: type_name::<T>(), value: Arc::new(value) },
        );
    }

    /// The value of this type, if there is one.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.get(&TypeId::of::<T>())?.value.downcast_ref()
    }

    /// Adds those values of `others` whose types are not in this map.
    pub(crate) fn over(mut self, others: &Self) -> Self {
        let Some(others) = &others.0 else { return self };
        let map = Arc::make_mut(self.0.get_or_insert_default());
        for (id, entry) in others.iter() {
            map.entry(*id).or_insert_with(|| entry.clone());
        }
        self
    }
}

impl fmt::Debug for Extensions {
    /// Shows the types, not the values (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().flat_map(|map| map.values().map(|entry| entry.name)))
            .finish()
    }
}
