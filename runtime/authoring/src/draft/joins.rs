//! Derives joins with unambiguous names from references.
//!
//! In: tables with references, and the names of their cubes. Out: the joins of each cube. A single reference to a
//! table becomes a join with the name of the target cube. Several references become roles with names of their own.

use std::collections::HashMap;

use super::table::{Evidence, Table};
use crate::names::{Taken, column_of, identifier, singular, snake};

/// A join of a drafted cube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    pub name: String,
    /// The target cube.
    pub cube: String,
    /// Pairs of an own column and a column of the target.
    pub columns: Vec<(String, String)>,
    pub evidence: Evidence,
}

impl Join {
    pub fn sql(&self) -> String {
        let pair = |(own, other): &(String, String)| {
            format!("{{CUBE}}.{} = {}", identifier(own), column_of(&self.name, other))
        };
        self.columns.iter().map(pair).collect::<Vec<_>>().join(" AND ")
    }

    pub fn is_alias(&self) -> bool {
        self.name != self.cube
    }
}

/// The aliases of the project. Each has one target.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    targets: HashMap<String, String>,
}

impl Aliases {
    /// Returns the first candidate that is free or already is an alias of this target.
    fn name(&mut self, taken: &mut Taken, candidates: &[String], target: &str) -> String {
        for candidate in candidates {
            match self.targets.get(candidate) {
                Some(known) if known == target => return candidate.clone(),
                None if !taken.has(candidate) => {
                    taken.take(candidate);
                    self.targets.insert(candidate.clone(), target.to_owned());
                    return candidate.clone();
                }
                _ => {}
            }
        }
        let name = taken.take(candidates.last().map_or(target, String::as_str));
        self.targets.insert(name.clone(), target.to_owned());
        name
    }

    /// Gives a join an alias.
    pub(super) fn rename(&mut self, taken: &mut Taken, of: &str, join: &mut Join) {
        let candidates = alias_candidates(of, &join.columns[0].0, &join.cube);
        join.name = self.name(taken, &candidates, &join.cube);
    }
}

/// Returns the joins of each table's cube.
pub(super) fn joins(tables: &[Table], cubes: &[String], taken: &mut Taken, aliases: &mut Aliases) -> Vec<Vec<Join>> {
    let mut all = Vec::with_capacity(tables.len());
    for (at, table) in tables.iter().enumerate() {
        let mut joins: Vec<Join> = Vec::new();
        for reference in &table.references {
            let target = &tables[reference.target];
            let name = |column: &usize| table.columns[*column].name.clone();
            let other = |column: &usize| target.columns[*column].name.clone();
            let columns: Vec<(String, String)> =
                reference.columns.iter().map(name).zip(reference.target_columns.iter().map(other)).collect();
            let cube = cubes[reference.target].clone();
            if columns.is_empty() || joins.iter().any(|join| join.cube == cube && join.columns == columns) {
                continue;
            }
            let mut join = Join { name: cube.clone(), cube, columns, evidence: reference.evidence };
            let to_same = table.references.iter().filter(|other| other.target == reference.target).count();
            let is_plain = to_same == 1 || role(&join.columns[0].0) == singular(&snake(&target.name));
            let is_used = joins.iter().any(|known| known.name == join.name);
            if reference.target == at || !is_plain || is_used {
                aliases.rename(taken, &cubes[at], &mut join);
            }
            joins.push(join);
        }
        all.push(joins);
    }
    all
}

/// Returns the role that a column names: `billing_customer` for `billing_customer_id`.
fn role(column: &str) -> String {
    let name = snake(column);
    let ends = ["_id", "_key", "_code", "_uuid", "_no", "_number", "_fk"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end)).filter(|stem| !stem.is_empty());
    stem.unwrap_or(&name).to_owned()
}

/// Returns possible aliases: `origin_airport` for `flights.origin` to airports, `manager` for `manager_id`.
fn alias_candidates(of: &str, column: &str, target: &str) -> Vec<String> {
    let (role, one, owner) = (role(column), singular(target), singular(of));
    let full = if role == one || role.ends_with(&format!("_{one}")) { role.clone() } else { format!("{role}_{one}") };
    let of_owner = format!("{owner}_{full}");
    let is_noun = role != snake(column);
    // A role that only repeats the target's name is qualified with the name of the cube that has the join.
    match (is_noun, role == one) {
        (_, true) => vec![of_owner],
        (true, false) => vec![role, full, of_owner],
        (false, false) => vec![full, of_owner],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_named_after_their_columns() {
        let first = |of: &str, column: &str, target: &str| alias_candidates(of, column, target).remove(0);
        assert_eq!(first("flights", "origin", "airports"), "origin_airport");
        assert_eq!(first("orders", "billing_customer_id", "customers"), "billing_customer");
        assert_eq!(first("employees", "manager_id", "employees"), "manager");
        assert_eq!(first("shipments", "customer_id", "customers"), "shipment_customer");
    }

    #[test]
    fn alias_has_one_target() {
        let (mut taken, mut aliases) = (Taken::default(), Aliases::default());
        taken.take("manager");
        let candidates = ["manager".to_owned(), "manager_person".to_owned()];
        assert_eq!(aliases.name(&mut taken, &candidates, "people"), "manager_person");
        assert_eq!(aliases.name(&mut taken, &candidates, "people"), "manager_person");
        assert_eq!(aliases.name(&mut taken, &candidates, "robots"), "manager_person_2");
    }
}
