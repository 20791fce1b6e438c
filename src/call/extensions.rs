//! Values by their type, as in the `http` crate, but cheap to clone.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Values looked up by their type. A clone shares them until one side adds something.
///
/// ```
/// use countersign::Extensions;
/// #[derive(Debug, PartialEq)]
/// struct Tenant(u32);
///
/// let mut extensions = Extensions::default();
/// extensions.insert(Tenant(7));
/// assert_eq!(extensions.get::<Tenant>(), Some(&Tenant(7)));
/// assert_eq!(extensions.get::<String>(), None);
/// ```
#[derive(Clone, Default)]
pub struct Extensions(Option<Arc<HashMap<TypeId, Entry>>>);

#[derive(Clone)]
struct Entry {
    name: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl Extensions {
    /// Adds a value; one of the same type is replaced.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        let map = self.0.get_or_insert_default();
        Arc::make_mut(map)
            .insert(TypeId::of::<T>(), Entry { name: type_name::<T>(), value: Arc::new(value) });
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.get(&TypeId::of::<T>())?.value.downcast_ref()
    }

    /// These values, and those of the others whose types are not among them.
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
    /// The types, not the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().flat_map(|map| map.values().map(|entry| entry.name)))
            .finish()
    }
}
