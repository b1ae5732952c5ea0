//! Joins by the columns that they compare.
//!
//! In: a column of a cube, and a column of another cube that it joins, perhaps under an alias. Out: the join that
//! compares these columns. Not here: paths of several joins (`join_graph`).

use super::join_columns::equalities;
use super::{DimensionId, Join, Model};

impl Model {
    /// Returns the to-one join of a cube that compares the cube's column `many` with the column `one` of a cube, or of
    /// an alias of the latter cube.
    pub fn join_over(&self, many: DimensionId, one: DimensionId) -> Option<&Join> {
        let leads_there = |join: &&Join| {
            let target = self.cube(join.target);
            join.relationship.is_to_one() && (target.id == one.cube || target.alias_of == Some(one.cube))
        };
        self.cube(many.cube).joins.iter().filter(leads_there).find(|join| self.compares(join, many, one))
    }

    fn compares(&self, join: &Join, many: DimensionId, one: DimensionId) -> bool {
        use super::join_columns::JoinOperand::Dimension;
        let column = |id| self.column_of(Dimension(id));
        let is_pair = |[found, own]: &[super::join_columns::JoinOperand<'_>; 2]| {
            let [found, own] = [self.column_of(*found), self.column_of(*own)];
            own.is_some() && own == column(many) && found.is_some() && found == column(one)
        };
        equalities(&join.on, join.target).is_some_and(|pairs| pairs.len() == 1 && pairs.iter().all(is_pair))
    }
}
