//! Converts a query's conditions to the contract's arena.
//!
//! In: trees of conditions, which may be too large for an arena. Out: an arena within the contract's limits, or `None`.
//! `wire::arena` converts arenas to trees.

use terrane_compiler::governance::{Condition, FilterFact};
use terrane_compiler::query::{Test, TextMatch};
use terrane_compiler::types::{LogicalType, Value};

use super::to_wire::empty_arena;
use crate::bindings::ir::{Arena, Node, Op, Scalar};
use crate::wire::arena::{MAX_DEPTH, MAX_LITERAL_BYTES, MAX_NODES};
use crate::wire::values::{logical_type, scalar, scalar_bytes};

/// The choice between sending the values in a query's filters and withholding them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterValues {
    Included,
    /// The plugin lacks the grant `query-values`.
    Withheld,
}

/// Returns an arena with one root for each condition, or `None` if the conditions exceed the limits of an arena.
pub(super) fn of_conditions(conditions: &[Condition], values: FilterValues) -> Option<Arena> {
    let mut builder = ArenaBuilder { arena: empty_arena(), values, literal_bytes: 0, blank: None };
    for condition in conditions {
        let (root, _) = builder.condition(condition)?;
        builder.arena.roots.push(root);
    }
    Some(builder.arena)
}

struct ArenaBuilder {
    arena: Arena,
    values: FilterValues,
    literal_bytes: usize,
    /// The index of the node that replaces every withheld value.
    blank: Option<u32>,
}

/// A node's index, and its depth.
type NodeAndDepth = (u32, usize);

impl ArenaBuilder {
    fn node(&mut self, op: Op, ty: LogicalType, aux: u32, children: &[NodeAndDepth]) -> Option<NodeAndDepth> {
        let depth = 1 + children.iter().map(|(_, depth)| *depth).max().unwrap_or(0);
        if self.arena.nodes.len() >= MAX_NODES || depth > MAX_DEPTH {
            return None;
        }
        let (first, count) = (u32::try_from(self.arena.args.len()).ok()?, u32::try_from(children.len()).ok()?);
        self.arena.args.extend(children.iter().map(|(index, _)| *index));
        self.arena.nodes.push(Node { op, ty: logical_type(ty), first, count, aux });
        Some((u32::try_from(self.arena.nodes.len() - 1).ok()?, depth))
    }

    fn logic(&mut self, op: Op, children: &[NodeAndDepth]) -> Option<NodeAndDepth> {
        self.node(op, LogicalType::Boolean, 0, children)
    }

    fn condition(&mut self, condition: &Condition) -> Option<NodeAndDepth> {
        let (op, inner) = match condition {
            Condition::All(inner) => (Op::And, inner.iter().collect::<Vec<_>>()),
            Condition::Any(inner) => (Op::Or, inner.iter().collect()),
            Condition::Not(inner) => (Op::Not, vec![&**inner]),
            Condition::Test(fact) => return self.test(fact, &fact.test),
        };
        let children = inner.into_iter().map(|inner| self.condition(inner)).collect::<Option<Vec<_>>>()?;
        self.logic(op, &children)
    }

    fn test(&mut self, fact: &FilterFact, test: &Test) -> Option<NodeAndDepth> {
        match test {
            Test::Never => {
                self.arena.literals.push(Scalar::Boolean(false));
                let slot = u32::try_from(self.arena.literals.len() - 1).ok()?;
                self.node(Op::Literal, LogicalType::Boolean, slot, &[])
            }
            Test::IsNull | Test::NoRow => self.on(fact, Op::IsNull, &[]),
            Test::Equals(value) => self.on(fact, Op::Eq, &[value]),
            // The contract has no operator that ignores case. Hooks receive `contains`, the nearest one.
            Test::Match { kind, text } => {
                let op = match kind {
                    TextMatch::Contains | TextMatch::ContainsAnyCase => Op::Contains,
                    TextMatch::StartsWith => Op::StartsWith,
                    TextMatch::EndsWith => Op::EndsWith,
                };
                self.on(fact, op, &[text])
            }
            Test::InList { values, or_null } => {
                let list = self.on(fact, Op::InList, &values.iter().collect::<Vec<_>>())?;
                if !or_null {
                    return Some(list);
                }
                let is_null = self.on(fact, Op::IsNull, &[])?;
                self.logic(Op::Or, &[list, is_null])
            }
            Test::Range { low, high } => {
                let low = match low {
                    Some(bound) => {
                        Some(self.on(fact, if bound.inclusive { Op::Ge } else { Op::Gt }, &[&bound.value])?)
                    }
                    None => None,
                };
                let high = match high {
                    Some(bound) => {
                        Some(self.on(fact, if bound.inclusive { Op::Le } else { Op::Lt }, &[&bound.value])?)
                    }
                    None => None,
                };
                match (low, high) {
                    (Some(low), Some(high)) => self.logic(Op::And, &[low, high]),
                    (one, other) => one.or(other),
                }
            }
            Test::AnyOf(tests) => {
                let tests = tests.iter().map(|test| self.test(fact, test)).collect::<Option<Vec<_>>>()?;
                self.logic(Op::Or, &tests)
            }
            Test::Not(inner) => {
                let inner = self.test(fact, inner)?;
                self.logic(Op::Not, &[inner])
            }
        }
    }

    /// Adds an operator whose operands are the fact's column and these values.
    fn on(&mut self, fact: &FilterFact, op: Op, values: &[&Value]) -> Option<NodeAndDepth> {
        let known = self.arena.columns.iter().position(|column| **column == *fact.member);
        let slot = known.unwrap_or_else(|| {
            self.arena.columns.push(fact.member.to_string());
            self.arena.columns.len() - 1
        });
        let mut children = vec![self.node(Op::Column, fact.ty, u32::try_from(slot).ok()?, &[])?];
        for value in values {
            children.push(self.literal(fact.ty, value)?);
        }
        self.logic(op, &children)
    }

    fn literal(&mut self, ty: LogicalType, value: &Value) -> Option<NodeAndDepth> {
        if let (FilterValues::Withheld, Some(blank)) = (self.values, self.blank) {
            return Some((blank, 1));
        }
        let is_withheld = self.values == FilterValues::Withheld;
        let scalar = if is_withheld { Scalar::Null } else { scalar(value) };
        self.literal_bytes += scalar_bytes(&scalar);
        if self.literal_bytes > MAX_LITERAL_BYTES {
            return None;
        }
        self.arena.literals.push(scalar);
        let ty = if is_withheld { LogicalType::Unknown } else { ty };
        let slot = u32::try_from(self.arena.literals.len() - 1).ok()?;
        let node = self.node(Op::Literal, ty, slot, &[])?;
        if is_withheld {
            self.blank = Some(node.0);
        }
        Some(node)
    }
}

#[cfg(test)]
mod tests;
