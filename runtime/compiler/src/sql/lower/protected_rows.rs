//! Applies row filters to cubes: only rows that pass exist, wherever the cube occurs.
//!
//! A filter on the cube's own columns becomes a part of the WHERE or ON of the select that reads the cube. A filter
//! that names other cubes becomes a select of its own around the cube, so that its joins affect nothing else.

use super::{Lowering, Name, Query, Select, Source, SqlExpr};
use crate::model::CubeId;
use crate::plan::{JoinTree, RowGuard};
use crate::sql::ast::{JoinClause, JoinKind};
use crate::sql::predicate::Connective;
use crate::sql::scope::{PASSES, RowScope};

impl<'a> Lowering<'a> {
    pub(super) fn scope(&self, tree: &'a JoinTree<'a>) -> RowScope<'a> {
        self.expressions.scope(tree)
    }

    /// Returns the source of a cube's rows with an alias, and the conditions that these rows must still meet.
    pub(super) fn guarded(&self, cube: CubeId, alias: &'a str) -> (Source<'a>, Vec<SqlExpr<'a>>) {
        let definition = self.plan.model.cube(cube);
        let rows = |alias| Source::Cube { cube: definition, alias };
        let (tree, all, predicates) = match self.protection.rows(cube) {
            None => return (rows(alias), Vec::new()),
            Some(RowGuard::Never) => return (rows(alias), vec![SqlExpr::Boolean(false)]),
            Some(RowGuard::Filters { tree, all, predicates }) => (tree, all, predicates),
        };
        if tree.joins.is_empty() {
            return (rows(alias), self.scope(tree).judging(Some(alias)).row_filters(all, predicates));
        }
        let own = &*definition.name;
        let scope = self.scope(tree).judging(None);
        let conditions = scope.row_filters(all, predicates);
        // The column is the filter itself and not a constant. If an engine merges the selects, a CASE over the column
        // must still test the filter.
        let passes = Connective::And.join(conditions.clone());
        let items = vec![(SqlExpr::Star(own), Name::Key(own)), (passes, Name::Fixed(PASSES))];
        let mut query = Select::new(items, rows(own));
        query.filters = conditions;
        query.joins = self.joins(scope);
        (Source::Rows { query: Box::new(Query::Select(Box::new(query))), alias }, Vec::new())
    }

    pub(super) fn joins(&self, scope: RowScope<'a>) -> Vec<JoinClause<'a>> {
        let joins = scope.tree.joins.iter().enumerate().map(|(index, planned)| {
            let (source, guards) = self.guarded(planned.join.target, &planned.alias);
            let on = std::iter::once(scope.join_condition(index + 1)).chain(guards).collect();
            let kind = if scope.is_always_joined(index + 1) { JoinKind::Inner } else { JoinKind::Left };
            JoinClause { source, kind, on }
        });
        joins.collect()
    }
}
