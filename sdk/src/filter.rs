//! Conditions on columns in the form of the contract's arena, for row filters of governance hooks and predicates of
//! checks.
//!
//! In: names of members and values. Out: an [`Arena`] with one root per condition. A condition tests one column, or
//! combines conditions by `all`, `any` and `not`. The contract allows nothing else.

use crate::LogicalType;
use crate::bindings::terrane::types::ir::{Arena, Node, Op, Scalar};

/// A condition.
///
/// ```
/// use terrane_sdk::filter::{all, any, column, not};
///
/// let own_region = column("region").in_list(["EMEA", "APAC"]);
/// let is_small = any([column("amount").lt(1_000), column("amount").is_null()]);
/// let arena = all([own_region, not(column("status").eq("draft")), is_small]).to_arena();
/// assert_eq!(arena.columns, ["region", "status", "amount"]);
/// assert_eq!(arena.roots.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Filter(Condition);

#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Test { op: Op, column: String, values: Vec<Scalar> },
    Group { op: Op, parts: Vec<Filter> },
    Constant(bool),
}

/// Returns a column to test: a member's name within its cube, such as `region`.
pub fn column(name: &str) -> Column {
    Column(name.to_owned())
}

/// Returns a filter that holds if all conditions hold. Without conditions, it always holds.
pub fn all(parts: impl IntoIterator<Item = Filter>) -> Filter {
    group(Op::And, parts, true)
}

/// Returns a filter that holds if at least one condition holds. Without conditions, it never holds.
pub fn any(parts: impl IntoIterator<Item = Filter>) -> Filter {
    group(Op::Or, parts, false)
}

/// Returns a filter that holds if the condition does not hold.
pub fn not(part: Filter) -> Filter {
    Filter(Condition::Group { op: Op::Not, parts: vec![part] })
}

/// Returns a filter that holds for no row.
pub fn never() -> Filter {
    Filter(Condition::Constant(false))
}

fn group(op: Op, parts: impl IntoIterator<Item = Filter>, of_none: bool) -> Filter {
    let mut parts: Vec<Filter> = parts.into_iter().collect();
    match parts.len() {
        0 => Filter(Condition::Constant(of_none)),
        1 => parts.remove(0),
        _ => Filter(Condition::Group { op, parts }),
    }
}

/// A column to test; see [`column`].
#[derive(Debug, Clone)]
pub struct Column(String);

impl Column {
    pub fn eq(self, value: impl Into<Scalar>) -> Filter {
        self.test(Op::Eq, [value.into()])
    }

    /// Returns a filter that holds for all other values and for null.
    pub fn ne(self, value: impl Into<Scalar>) -> Filter {
        self.test(Op::Ne, [value.into()])
    }

    pub fn lt(self, value: impl Into<Scalar>) -> Filter {
        self.test(Op::Lt, [value.into()])
    }

    pub fn le(self, value: impl Into<Scalar>) -> Filter {
        self.test(Op::Le, [value.into()])
    }

    pub fn gt(self, value: impl Into<Scalar>) -> Filter {
        self.test(Op::Gt, [value.into()])
    }

    pub fn ge(self, value: impl Into<Scalar>) -> Filter {
        self.test(Op::Ge, [value.into()])
    }

    /// Returns a filter that holds for values from `lowest` to `highest`, both included.
    pub fn between(self, lowest: impl Into<Scalar>, highest: impl Into<Scalar>) -> Filter {
        self.test(Op::Between, [lowest.into(), highest.into()])
    }

    /// Returns a filter that holds for each of the values. Without values, it never holds.
    pub fn in_list<S: Into<Scalar>>(self, values: impl IntoIterator<Item = S>) -> Filter {
        let values: Vec<Scalar> = values.into_iter().map(Into::into).collect();
        if values.is_empty() { never() } else { self.test(Op::InList, values) }
    }

    pub fn is_null(self) -> Filter {
        self.test(Op::IsNull, [])
    }

    pub fn is_not_null(self) -> Filter {
        self.test(Op::IsNotNull, [])
    }

    /// Returns a filter that holds for strings that contain `part`. Case matters, and `%` and `_` are ordinary
    /// characters. The same applies to the next two functions.
    pub fn contains(self, part: &str) -> Filter {
        self.test(Op::Contains, [part.into()])
    }

    pub fn starts_with(self, part: &str) -> Filter {
        self.test(Op::StartsWith, [part.into()])
    }

    pub fn ends_with(self, part: &str) -> Filter {
        self.test(Op::EndsWith, [part.into()])
    }

    fn test(self, op: Op, values: impl IntoIterator<Item = Scalar>) -> Filter {
        Filter(Condition::Test { op, column: self.0, values: values.into_iter().collect() })
    }
}

impl Filter {
    /// Returns an arena whose only root is this condition.
    pub fn to_arena(&self) -> Arena {
        arena([self])
    }
}

/// Returns an arena with a root for each condition, in their order.
pub fn arena<'a>(filters: impl IntoIterator<Item = &'a Filter>) -> Arena {
    let mut arena = empty_arena();
    for filter in filters {
        let root = add(&mut arena, filter);
        arena.roots.push(root);
    }
    arena
}

pub fn empty_arena() -> Arena {
    Arena { nodes: vec![], args: vec![], columns: vec![], literals: vec![], names: vec![], roots: vec![] }
}

/// Adds the children of a condition and then its node. Returns the index of the node.
fn add(arena: &mut Arena, filter: &Filter) -> u32 {
    match &filter.0 {
        Condition::Constant(value) => add_literal(arena, &Scalar::Boolean(*value)),
        Condition::Group { op, parts } => {
            let children: Vec<u32> = parts.iter().map(|part| add(arena, part)).collect();
            add_node(arena, *op, LogicalType::Boolean, &children, 0)
        }
        Condition::Test { op, column, values } => {
            let slot = arena.columns.iter().position(|known| known == column).unwrap_or_else(|| {
                arena.columns.push(column.clone());
                arena.columns.len() - 1
            });
            let ty = values.first().map_or(LogicalType::Unknown, type_of);
            let mut children = vec![add_node(arena, Op::Column, ty, &[], slot as u32)];
            children.extend(values.iter().map(|value| add_literal(arena, value)));
            add_node(arena, *op, LogicalType::Boolean, &children, 0)
        }
    }
}

fn add_literal(arena: &mut Arena, value: &Scalar) -> u32 {
    arena.literals.push(value.clone());
    let slot = arena.literals.len() - 1;
    add_node(arena, Op::Literal, type_of(value), &[], slot as u32)
}

fn add_node(arena: &mut Arena, op: Op, ty: LogicalType, children: &[u32], aux: u32) -> u32 {
    let first = arena.args.len() as u32;
    arena.args.extend(children);
    arena.nodes.push(Node { op, ty, first, count: children.len() as u32, aux });
    arena.nodes.len() as u32 - 1
}

fn type_of(value: &Scalar) -> LogicalType {
    match value {
        Scalar::Null => LogicalType::Unknown,
        Scalar::Boolean(_) => LogicalType::Boolean,
        Scalar::Integer(_) => LogicalType::Integer,
        Scalar::Float(_) => LogicalType::Float,
        Scalar::Decimal(_) => LogicalType::Decimal,
        Scalar::Text(_) => LogicalType::Text,
        Scalar::DateDays(_) => LogicalType::Date,
        Scalar::TimestampUs(_) => LogicalType::Timestamp,
    }
}

impl From<&str> for Scalar {
    fn from(value: &str) -> Self {
        Scalar::Text(value.to_owned())
    }
}

impl From<String> for Scalar {
    fn from(value: String) -> Self {
        Scalar::Text(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Scalar::Integer(value)
    }
}

impl From<i32> for Scalar {
    fn from(value: i32) -> Self {
        Scalar::Integer(i64::from(value))
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Scalar::Float(value)
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Scalar::Boolean(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_come_before_their_parents() {
        let filter = all([any([column("a").eq(1), column("b").between(0.5, 1.5)]), not(column("a").is_null())]);
        let arena = filter.to_arena();
        for (at, node) in arena.nodes.iter().enumerate() {
            let children = &arena.args[node.first as usize..(node.first + node.count) as usize];
            assert!(children.iter().all(|child| (*child as usize) < at), "{at}");
        }
        assert_eq!(arena.columns, ["a", "b"]);
        assert_eq!(arena.roots, [arena.nodes.len() as u32 - 1]);
    }

    #[test]
    fn empty_choice_matches_no_row() {
        let arena = column("region").in_list(Vec::<String>::new()).to_arena();
        assert_eq!(arena.literals, [Scalar::Boolean(false)]);
        assert_eq!(any([]), never());
    }
}
