//! The methods of a store that passes them on to the store inside of it, for stores that change one or two others.

/// Writes the named methods of a [`Store`](countersign::ledger::Store) whose inner store is in this field:
/// `inner_store!(inner: get, list)`.
macro_rules! inner_store {
    (@transact $inner:tt) => {
        fn transact<'a>(
            &'a self,
            ids: &'a [String],
            linker: &'a countersign::ledger::Linker,
            work: &'a mut countersign::ledger::Work<'_>,
        ) -> futures::future::BoxFuture<'a, Result<(), countersign::ledger::StoreError>> {
            self.$inner.transact(ids, linker, work)
        }
    };
    (@get $inner:tt) => {
        fn get<'a>(
            &'a self,
            id: &'a str,
        ) -> futures::future::BoxFuture<
            'a,
            Result<countersign::ledger::Lookup, countersign::ledger::StoreError>,
        > {
            self.$inner.get(id)
        }
    };
    (@list $inner:tt) => {
        fn list<'a>(
            &'a self,
            filter: &'a countersign::ledger::Filter,
        ) -> futures::future::BoxFuture<
            'a,
            Result<Vec<countersign::ledger::Found>, countersign::ledger::StoreError>,
        > {
            self.$inner.list(filter)
        }
    };
    (@due $inner:tt) => {
        fn due(
            &self,
            limit: u32,
        ) -> futures::future::BoxFuture<'_, Result<Vec<String>, countersign::ledger::StoreError>>
        {
            self.$inner.due(limit)
        }
    };
    (@log $inner:tt) => {
        fn log<'a>(
            &'a self,
            run: &'a str,
            after: i64,
            limit: u32,
        ) -> futures::future::BoxFuture<
            'a,
            Result<Vec<countersign::ledger::Entry>, countersign::ledger::StoreError>,
        > {
            self.$inner.log(run, after, limit)
        }
    };
    (@logs $inner:tt) => {
        fn logs<'a>(
            &'a self,
            after: &'a str,
            limit: u32,
        ) -> futures::future::BoxFuture<'a, Result<Vec<String>, countersign::ledger::StoreError>>
        {
            self.$inner.logs(after, limit)
        }
    };
    ($inner:tt: $($method:ident),+) => {
        $($crate::support::inner_store!(@$method $inner);)+
    };
}

pub(crate) use inner_store;
