//! Filters behind to-many joins as semi-joins, if nothing else is read behind these joins.
//!
//! In: a fact's row filters. Out: the filters that require a joined row of one branch, as semi-joins over a set of
//! keys, so that rows of the fact are neither repeated nor counted twice. A filter stays in the join tree in four
//! cases: a row of nulls passes it; it reads several branches; the join is not an equality of two columns; or the
//! joined cube itself would take another path.

use super::NodeId;
use super::join_path::{Asker, JoinTree, path};
use crate::model::{ColumnName, CubeId, Join, Model, SqlPart};
use crate::query::{Operand, Predicate, QueryError, Test};

/// Selects the rows whose column `outer` is among the values of `inner` in the joined rows that pass the filters.
#[derive(Debug)]
pub struct SemiJoin<'m> {
    /// The node of the fact's tree from which the join leads.
    pub from: NodeId,
    pub outer: &'m ColumnName,
    pub inner: &'m ColumnName,
    /// The joined cube with the joins that its filters need.
    pub tree: JoinTree<'m>,
    /// The filters of the joined rows, combined with AND.
    pub filters: Vec<Predicate>,
}

/// The filters of one branch, before they are planned.
struct Branch<'m> {
    /// The cube from which the to-many join leads, and the join.
    from: CubeId,
    join: &'m Join,
    filters: Vec<Predicate>,
}

/// Removes the filters behind to-many joins from `filters` and returns them as semi-joins, or leaves all of them.
///
/// # Errors
/// The joined cube cannot reach a cube of a filter. An earlier check of the path rules this out.
pub(super) fn take<'m>(
    model: &'m Model,
    tree: &mut JoinTree<'m>,
    filters: &mut Vec<Predicate>,
    asker: Asker<'_>,
) -> Result<Vec<SemiJoin<'m>>, QueryError> {
    let fact = tree.cube;
    let mut branches: Vec<Branch<'m>> = Vec::new();
    let mut own = Vec::new();
    for filter in filters.iter() {
        match behind(model, fact, filter) {
            Behind::Nothing => own.push(filter.clone()),
            Behind::Branch(from, join) => match branches.iter_mut().find(|branch| std::ptr::eq(branch.join, join)) {
                Some(branch) => branch.filters.push(filter.clone()),
                None => branches.push(Branch { from, join, filters: vec![filter.clone()] }),
            },
            Behind::Mixed => return Ok(Vec::new()),
        }
    }
    let rejects_nulls = |branch: &Branch<'_>| branch.filters.iter().any(|filter| !holds_for_nulls(filter));
    let columns: Option<Vec<_>> = branches.iter().map(|branch| compared(branch.from, branch.join)).collect();
    let Some(columns) = columns.filter(|_| branches.iter().all(rejects_nulls)) else { return Ok(Vec::new()) };
    let mut semi_joins = Vec::with_capacity(branches.len());
    for (branch, (outer, inner)) in branches.into_iter().zip(columns) {
        let from = tree.reach(model, 0, branch.from, asker)?;
        let mut inside = JoinTree::new(branch.join.target);
        for filter in &branch.filters {
            for id in operands(filter) {
                inside.reach_dimension(model, 0, id, asker)?;
            }
        }
        semi_joins.push(SemiJoin { from, outer, inner, tree: inside, filters: branch.filters });
    }
    *filters = own;
    Ok(semi_joins)
}

enum Behind<'m> {
    Nothing,
    /// The first to-many join on the way to all members that the filter reads.
    Branch(CubeId, &'m Join),
    Mixed,
}

fn operands(filter: &Predicate) -> Vec<crate::model::DimensionId> {
    let mut ids = Vec::new();
    filter.for_each_operand(&mut |operand| {
        if let Operand::Dimension { id, .. } = operand {
            ids.push(*id);
        }
    });
    ids
}

fn behind<'m>(model: &'m Model, fact: CubeId, filter: &Predicate) -> Behind<'m> {
    let mut found: Option<(CubeId, &'m Join)> = None;
    let mut is_own = false;
    for id in operands(filter) {
        let Some(hops) = path(model, fact, id.cube) else { return Behind::Mixed };
        let join = |(from, index): &(CubeId, usize)| &model.cube(*from).joins[*index];
        let Some(first) = hops.iter().position(|hop| !join(hop).relationship.is_to_one()) else {
            is_own = true;
            continue;
        };
        let root = join(&hops[first]);
        // The joined cube's own path must be the rest of the fact's path.
        if path(model, root.target, id.cube).as_deref() != Some(&hops[first + 1..]) {
            return Behind::Mixed;
        }
        match found {
            Some((_, known)) if !std::ptr::eq(known, root) => return Behind::Mixed,
            _ => found = Some((hops[first].0, root)),
        }
    }
    match (found, is_own) {
        (None, _) => Behind::Nothing,
        (Some((from, join)), false) => Behind::Branch(from, join),
        (Some(_), true) => Behind::Mixed,
    }
}

/// Returns the two columns of a join whose condition is one equality, the column of `from` first.
fn compared(from: CubeId, join: &Join) -> Option<(&ColumnName, &ColumnName)> {
    let [
        SqlPart::Column { cube: left, name: first },
        SqlPart::Text(text),
        SqlPart::Column { cube: right, name: second },
    ] = &join.on.parts[..]
    else {
        return None;
    };
    match (text.trim() == "=", *left == from && *right == join.target, *left == join.target && *right == from) {
        (true, true, false) => Some((first, second)),
        (true, false, true) => Some((second, first)),
        _ => None,
    }
}

/// Returns whether a filter lets a row pass if every column that it reads is null.
fn holds_for_nulls(filter: &Predicate) -> bool {
    fn of_test(test: &Test) -> bool {
        match test {
            Test::IsNull | Test::NoRow => true,
            Test::InList { or_null, .. } => *or_null,
            Test::AnyOf(tests) => tests.iter().any(of_test),
            Test::Not(inner) => !of_test(inner),
            Test::Never | Test::Equals(_) | Test::Match { .. } | Test::Range { .. } => false,
        }
    }
    match filter {
        Predicate::Test { test, .. } => of_test(test),
        Predicate::And(all) => all.iter().all(holds_for_nulls),
        Predicate::Or(all) => all.iter().any(holds_for_nulls),
        Predicate::Not(inner) => !holds_for_nulls(inner),
    }
}
