//! Proves from the foreign keys of the warehouse that a join always finds a row.
//!
//! In: the foreign keys that the warehouse enforces. Out: the model, with a mark on each proven join. A join is proven
//! if it leads from one table to another, its condition consists of comparisons of columns, and the compared pairs are
//! pairs of one key. Not here: reading the keys, and deciding which of them hold for all rows (the warehouse's
//! adapter).

use std::collections::HashMap;
use std::sync::Arc;

use super::join_columns::{JoinOperand, equalities};
use super::{ColumnName, Cube, Join, Model, Relation, SqlPart, TableName};
use crate::sql::dialect_profile::CaseFolding;

/// A foreign key that holds for each row of its table: the warehouse enforces it, and no referencing column is null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    pub from: CatalogNames,
    pub to: CatalogNames,
    /// The pairs of a referencing column and the referenced one, in the catalog's spelling.
    pub columns: Vec<[Arc<str>; 2]>,
}

/// The names by which a statement refers to this table and to no other relation. The parts of a name are in the
/// catalog's spelling, outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogNames(pub Vec<Vec<Arc<str>>>);

impl Model {
    /// Returns whether the model has joins that a foreign key could prove.
    pub fn has_joins_to_prove(&self) -> bool {
        let is_table = |cube: &Cube| matches!(cube.relation, Relation::Table(_));
        let is_open = |join: &Join| join.relationship.is_to_one() && !join.always && is_table(self.cube(join.target));
        self.cubes.iter().any(|cube| is_table(cube) && cube.joins.iter().any(is_open))
    }

    /// Returns the model with a mark on each join that a foreign key proves.
    #[must_use]
    pub fn with_foreign_keys(mut self, keys: &[ForeignKey], folding: CaseFolding) -> Model {
        let mut by_table: HashMap<String, Vec<&ForeignKey>> = HashMap::new();
        for key in keys {
            if let Some(table) = key.from.0.first().and_then(|name| name.last()) {
                by_table.entry(table.to_lowercase()).or_default().push(key);
            }
        }
        let mut proven = Vec::new();
        for cube in &self.cubes {
            let Relation::Table(table) = &cube.relation else { continue };
            let Some(keys) = table.printed().last().and_then(|name| by_table.get(&name.text.to_lowercase())) else {
                continue;
            };
            let keys: Vec<&ForeignKey> = keys.iter().copied().filter(|key| key.from.contains(table, folding)).collect();
            let joins = cube.joins.iter().enumerate().filter(|(_, join)| self.is_proven(cube, join, &keys, folding));
            proven.extend(joins.map(|(at, _)| (cube.id, at)));
        }
        for (cube, at) in proven {
            self.cubes[cube.0 as usize].joins[at].is_enforced = true;
        }
        self
    }

    fn is_proven(&self, cube: &Cube, join: &Join, keys: &[&ForeignKey], folding: CaseFolding) -> bool {
        let Relation::Table(target) = &self.cube(join.target).relation else { return false };
        // `equalities` reads operands and words in their order, and parentheses can group them differently.
        let has_parentheses =
            join.on.parts.iter().any(|part| matches!(part, SqlPart::Text(text) if text.contains(['(', ')'])));
        if has_parentheses || !join.relationship.is_to_one() {
            return false;
        }
        let Some(pairs) = equalities(&join.on, join.target) else { return false };
        let pairs: Option<Vec<[&ColumnName; 2]>> = pairs
            .into_iter()
            .map(|[found, own]| {
                let is_own = own.cube() == cube.id;
                Some([self.column_of(own).filter(|_| is_own)?, self.column_of(found)?])
            })
            .collect();
        let Some(pairs) = pairs.filter(|pairs| !pairs.is_empty()) else { return false };
        let has_pair = |key: &ForeignKey, [own, found]: [&ColumnName; 2]| {
            key.columns.iter().any(|[from, to]| is_same(own, from, folding) && is_same(found, to, folding))
        };
        keys.iter().any(|key| key.to.contains(target, folding) && pairs.iter().all(|pair| has_pair(key, *pair)))
    }

    /// Returns the column of an operand, or the column that its dimension shows unchanged. `None` for other dimensions.
    pub(super) fn column_of<'m>(&'m self, operand: JoinOperand<'m>) -> Option<&'m ColumnName> {
        match operand {
            JoinOperand::Column(_, name) => Some(name),
            JoinOperand::Dimension(id) => match &self.dimension(id).sql.parts[..] {
                [SqlPart::Column { cube, name }] if *cube == id.cube => Some(name),
                _ => None,
            },
        }
    }
}

impl CatalogNames {
    /// Returns whether a table's name in a project refers to this table.
    fn contains(&self, table: &TableName, folding: CaseFolding) -> bool {
        self.0.iter().any(|name| match &table.catalog_name {
            Some(full) => full.iter().map(|part| &part.text).eq(name),
            None => {
                table.len() == name.len() && table.iter().zip(name).all(|(part, name)| is_same(part, name, folding))
            }
        })
    }
}

/// Returns whether a name of an author refers to this name of the catalog. Names that cannot be compared are different.
fn is_same(declared: &ColumnName, name: &str, folding: CaseFolding) -> bool {
    match folding {
        _ if declared.quoted => *declared.text == *name,
        CaseFolding::ToLower => declared.text.to_ascii_lowercase() == name,
        CaseFolding::ToUpper => declared.text.to_ascii_uppercase() == name,
        CaseFolding::Keep => declared.text.eq_ignore_ascii_case(name),
    }
}
