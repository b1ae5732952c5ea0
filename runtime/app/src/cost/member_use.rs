//! The numbers of recent queries that name each member.
//!
//! In: executed queries. Out: the number of uses of a member or cube among the callers of a tenant. Queries of other
//! tenants never count. If the sum of a tenant's counts reaches a limit, all of them are halved: old queries lose
//! weight, and memory is bounded.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use crate::ports::executed_queries::ExecutedQuery;

/// The sum of a tenant's counts at which they are halved.
const MAX_SUM: u64 = 50_000;
/// The largest number of uses that one record adds to a member.
const MAX_OF_RECORD: u64 = 100;
/// The largest number of tenants. The members of further tenants are not counted.
const MAX_TENANTS: usize = 1_000;

/// The counts of each tenant.
#[derive(Debug, Default)]
pub struct MemberUse(RwLock<HashMap<Option<Arc<str>>, Counts>>);

/// The counts of one tenant.
#[derive(Debug, Default)]
struct Counts {
    by_name: HashMap<Box<str>, u64>,
    sum: u64,
}

impl MemberUse {
    /// Adds the members of a query, and once each of their cubes.
    pub(super) fn add(&self, query: &ExecutedQuery) {
        let Some(members) = query.members.as_deref().filter(|members| !members.is_empty()) else { return };
        let mut tenants = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() >= MAX_TENANTS && !tenants.contains_key(&query.tenant) {
            return;
        }
        let counts = tenants.entry(query.tenant.clone()).or_default();
        let uses = query.queries.min(MAX_OF_RECORD);
        let cubes: BTreeSet<&str> = members.split(',').filter_map(|name| Some(name.split_once('.')?.0)).collect();
        for name in members.split(',').chain(cubes) {
            counts.add(name, uses);
        }
    }

    /// Returns the number of recent queries of a tenant that name a cube, member or metric.
    pub(crate) fn of(&self, tenant: Option<&Arc<str>>, name: &str) -> u64 {
        let tenants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let counts = tenants.get(&tenant.cloned());
        counts.and_then(|counts| counts.by_name.get(name)).copied().unwrap_or(0)
    }
}

impl Counts {
    fn add(&mut self, name: &str, uses: u64) {
        match self.by_name.get_mut(name) {
            Some(count) => *count += uses,
            None => _ = self.by_name.insert(name.into(), uses),
        }
        self.sum += uses;
        if self.sum >= MAX_SUM {
            self.by_name.values_mut().for_each(|count| *count /= 2);
            self.by_name.retain(|_, count| *count > 0);
            self.sum = self.by_name.values().sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;

    fn query(tenant: Option<&str>, members: Option<&str>, queries: u64) -> ExecutedQuery {
        ExecutedQuery {
            id: "1".into(),
            queries,
            at: Timestamp::UNIX_EPOCH,
            query_hash: "aa".into(),
            cube: "orders".into(),
            user_id: "ada".into(),
            tenant: tenant.map(Into::into),
            kind: "rest".into(),
            surface: "rest".into(),
            duration: Duration::ZERO,
            warehouse: Duration::ZERO,
            rows: 1,
            scan_bytes: None,
            cost_micros: None,
            is_cached: queries > 1,
            pre_aggregation: None,
            filters: None,
            members: members.map(Into::into),
            predicted: None,
            size: None,
        }
    }

    #[test]
    fn members_are_counted_for_each_tenant() {
        let uses = MemberUse::default();
        uses.add(&query(None, Some("mean_amount,orders.region,orders.revenue"), 1));
        uses.add(&query(None, Some("orders.revenue"), 3));
        uses.add(&query(Some("acme"), Some("orders.cost"), 1));
        uses.add(&query(None, None, 5));
        let acme = Some(Arc::from("acme"));
        let of = |name: &str| (uses.of(None, name), uses.of(acme.as_ref(), name));
        assert_eq!(of("orders.revenue"), (4, 0));
        assert_eq!(of("mean_amount"), (1, 0));
        assert_eq!(of("orders"), (4, 1), "a query counts once for its cube");
        assert_eq!(of("orders.cost"), (0, 1));
        assert_eq!(of(""), (0, 0));
    }

    #[test]
    fn old_queries_lose_weight() {
        let uses = MemberUse::default();
        uses.add(&query(None, Some("orders.old"), 100));
        for number in 0..MAX_SUM {
            uses.add(&query(None, Some(&format!("orders.m{}", number % 7)), 1));
        }
        assert!(uses.of(None, "orders.old") < 100);
        assert!(uses.of(None, "orders") <= MAX_SUM);
        let tenants = uses.0.read().unwrap();
        assert!(tenants[&None].sum < MAX_SUM);
    }
}
