//! Joins from references, under names that leave no doubt.
//!
//! In: tables with references, and their cubes' names. Out: joins of each cube. One reference to a table is
//! a join of that cube's name; several are roles, each under a name of its own, and so is the way by which
//! a cube would be reached a second time as directly as the first.

use std::collections::HashMap;

use super::table::{Evidence, Table};
use crate::authoring::names::{Taken, column_of, identifier, singular, snake};

/// A join in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    pub name: String,
    /// The cube that is joined.
    pub cube: String,
    /// The own column and the one of the target, pair by pair.
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

/// Names of aliases are the project's, and each has one target.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    targets: HashMap<String, String>,
}

impl Aliases {
    /// The first of the wished names that means this target or nothing yet.
    fn name(&mut self, taken: &mut Taken, wishes: &[String], target: &str) -> String {
        for wish in wishes {
            match self.targets.get(wish) {
                Some(known) if known == target => return wish.clone(),
                None if !taken.has(wish) => {
                    taken.take(wish);
                    self.targets.insert(wish.clone(), target.to_owned());
                    return wish.clone();
                }
                _ => {}
            }
        }
        let name = taken.take(wishes.last().map_or(target, String::as_str));
        self.targets.insert(name.clone(), target.to_owned());
        name
    }

    /// Gives a join a name of its own.
    pub(super) fn rename(&mut self, taken: &mut Taken, of: &str, join: &mut Join) {
        let wishes = wishes(of, &join.columns[0].0, &join.cube);
        join.name = self.name(taken, &wishes, &join.cube);
    }
}

/// The joins of each table's cube.
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

/// `billing_customer_id` plays the role `billing_customer`.
fn role(column: &str) -> String {
    let name = snake(column);
    let ends = ["_id", "_key", "_code", "_uuid", "_no", "_number", "_fk"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end)).filter(|stem| !stem.is_empty());
    stem.unwrap_or(&name).to_owned()
}

/// `origin` of flights to airports may be `origin_airport`, `manager_id` may be `manager`.
fn wishes(of: &str, column: &str, target: &str) -> Vec<String> {
    let (role, one, owner) = (role(column), singular(target), singular(of));
    let full = if role == one || role.ends_with(&format!("_{one}")) { role.clone() } else { format!("{role}_{one}") };
    let of_owner = format!("{owner}_{full}");
    let is_noun = role != snake(column);
    // A role that says no more than its target is told from others by whose it is.
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
    fn roles_are_named_by_their_columns() {
        let first = |of: &str, column: &str, target: &str| wishes(of, column, target).remove(0);
        assert_eq!(first("flights", "origin", "airports"), "origin_airport");
        assert_eq!(first("orders", "billing_customer_id", "customers"), "billing_customer");
        assert_eq!(first("employees", "manager_id", "employees"), "manager");
        assert_eq!(first("shipments", "customer_id", "customers"), "shipment_customer");
    }

    #[test]
    fn an_alias_has_one_target() {
        let (mut taken, mut aliases) = (Taken::default(), Aliases::default());
        taken.take("manager");
        let wishes = ["manager".to_owned(), "manager_person".to_owned()];
        assert_eq!(aliases.name(&mut taken, &wishes, "people"), "manager_person");
        assert_eq!(aliases.name(&mut taken, &wishes, "people"), "manager_person");
        assert_eq!(aliases.name(&mut taken, &wishes, "robots"), "manager_person_2");
    }
}
