//! Conditions between trees and the contract's arenas.
//!
//! Out of the host: trusted trees, which may be too large for an arena. Into the host: nothing is trusted:
//! every index, count and value is looked at before it is used, and sharing of nodes can't make a small
//! arena a huge tree.

use terrane_compiler::governance::{Condition, FilterFact, HookCondition, TestOperator};
use terrane_compiler::query::{Test, TextMatch};
use terrane_compiler::types::{LogicalType, Value};

use super::to_wire::{empty_arena, logical_type};
use crate::bindings::ir::{Arena, Node, Op, Scalar};

const MAX_NODES: usize = 512;
const MAX_DEPTH: usize = 32;
const MAX_LITERAL_BYTES: usize = 256 * 1024;
/// Nodes once those with several parents are written out: each reference to a value counts.
const MAX_TREE: usize = 4_096;
const MAX_NAME_BYTES: usize = 512;
/// 0001-01-01 and 9999-12-31 in days since 1970-01-01.
const DAYS: std::ops::RangeInclusive<i32> = -719_162..=2_932_896;
const DAY_MICROS: i64 = 86_400_000_000;

/// Conditions, a root each; `None` where they pass an arena's limits.
pub(super) fn of_conditions(conditions: &[Condition], with_values: bool) -> Option<Arena> {
    let mut writing = Writing { arena: empty_arena(), with_values, literal_bytes: 0, blank: None };
    for condition in conditions {
        let (root, _) = writing.condition(condition)?;
        writing.arena.roots.push(root);
    }
    Some(writing.arena)
}

struct Writing {
    arena: Arena,
    with_values: bool,
    literal_bytes: usize,
    /// The one node that stands for every value that is not told.
    blank: Option<u32>,
}

/// A node and its depth.
type Written = (u32, usize);

impl Writing {
    fn node(&mut self, op: Op, ty: LogicalType, aux: u32, children: &[Written]) -> Option<Written> {
        let depth = 1 + children.iter().map(|(_, depth)| *depth).max().unwrap_or(0);
        if self.arena.nodes.len() >= MAX_NODES || depth > MAX_DEPTH {
            return None;
        }
        let (first, count) = (u32::try_from(self.arena.args.len()).ok()?, u32::try_from(children.len()).ok()?);
        self.arena.args.extend(children.iter().map(|(index, _)| *index));
        self.arena.nodes.push(Node { op, ty: logical_type(ty), first, count, aux });
        Some((u32::try_from(self.arena.nodes.len() - 1).ok()?, depth))
    }

    fn logic(&mut self, op: Op, children: &[Written]) -> Option<Written> {
        self.node(op, LogicalType::Boolean, 0, children)
    }

    fn condition(&mut self, condition: &Condition) -> Option<Written> {
        let (op, inner) = match condition {
            Condition::All(inner) => (Op::And, inner.iter().collect::<Vec<_>>()),
            Condition::Any(inner) => (Op::Or, inner.iter().collect()),
            Condition::Not(inner) => (Op::Not, vec![&**inner]),
            Condition::Test(fact) => return self.test(fact, &fact.test),
        };
        let children = inner.into_iter().map(|inner| self.condition(inner)).collect::<Option<Vec<_>>>()?;
        self.logic(op, &children)
    }

    fn test(&mut self, fact: &FilterFact, test: &Test) -> Option<Written> {
        match test {
            Test::Never => {
                self.arena.literals.push(Scalar::Boolean(false));
                let slot = u32::try_from(self.arena.literals.len() - 1).ok()?;
                self.node(Op::Literal, LogicalType::Boolean, slot, &[])
            }
            Test::IsNull => self.on(fact, Op::IsNull, &[]),
            Test::Equals(value) => self.on(fact, Op::Eq, &[value]),
            Test::Match { kind, text } => {
                let op = match kind {
                    TextMatch::Contains => Op::Contains,
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

    /// An operator on the fact's column and some values.
    fn on(&mut self, fact: &FilterFact, op: Op, values: &[&Value]) -> Option<Written> {
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

    fn literal(&mut self, ty: LogicalType, value: &Value) -> Option<Written> {
        if let (false, Some(blank)) = (self.with_values, self.blank) {
            return Some((blank, 1));
        }
        let scalar = if self.with_values { scalar(value) } else { Scalar::Null };
        self.literal_bytes += match &scalar {
            Scalar::Text(text) | Scalar::Decimal(text) => text.len(),
            _ => 8,
        };
        if self.literal_bytes > MAX_LITERAL_BYTES {
            return None;
        }
        self.arena.literals.push(scalar);
        let ty = if self.with_values { ty } else { LogicalType::Unknown };
        let slot = u32::try_from(self.arena.literals.len() - 1).ok()?;
        let written = self.node(Op::Literal, ty, slot, &[])?;
        if !self.with_values {
            self.blank = Some(written.0);
        }
        Some(written)
    }
}

fn scalar(value: &Value) -> Scalar {
    match value {
        Value::Null => Scalar::Null,
        Value::Boolean(value) => Scalar::Boolean(*value),
        Value::Integer(value) => Scalar::Integer(*value),
        Value::Float(value) => Scalar::Float(*value),
        Value::Decimal(digits) => Scalar::Decimal(digits.to_string()),
        Value::Text(text) => Scalar::Text(text.to_string()),
        Value::Date(days) => Scalar::DateDays(*days),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => Scalar::TimestampUs(*micros),
    }
}

/// The condition of a row filter.
///
/// # Errors
/// What of the contract the arena breaks.
pub(super) fn condition(arena: &Arena) -> Result<HookCondition, String> {
    let [root] = arena.roots[..] else { return Err(format!("a predicate has {} roots, not one", arena.roots.len())) };
    check(arena, root)?;
    Reading { arena, literals: arena.literals.iter().map(value).collect() }.condition(root)
}

/// Sees that indexes lead somewhere and back, and that the tree is small.
fn check(arena: &Arena, root: u32) -> Result<(), String> {
    if arena.nodes.len() > MAX_NODES {
        return Err(format!("a predicate has {} nodes; at most {MAX_NODES}", arena.nodes.len()));
    }
    let bytes: usize = arena.literals.iter().map(bytes_of).sum();
    if bytes > MAX_LITERAL_BYTES {
        return Err(format!("a predicate's literals are {bytes} bytes; at most {MAX_LITERAL_BYTES}"));
    }
    let sizes = [arena.args.len(), arena.literals.len(), arena.columns.len(), arena.names.len()];
    if sizes.into_iter().any(|size| size > MAX_TREE) {
        return Err(format!("a predicate has lists of more than {MAX_TREE} entries"));
    }
    if let Some(long) = arena.columns.iter().find(|name| name.len() > MAX_NAME_BYTES) {
        return Err(format!("a column's name is {} bytes; at most {MAX_NAME_BYTES}", long.len()));
    }
    // Depth and size of what each node stands for.
    let mut seen: Vec<(usize, usize)> = Vec::with_capacity(arena.nodes.len());
    for (index, node) in arena.nodes.iter().enumerate() {
        let (mut depth, mut size) = (0, 0_usize);
        for child in children(arena, node)? {
            let (of_child, nodes) = seen
                .get(*child as usize)
                .ok_or_else(|| format!("node {index} has the child {child}, and a child stands before its parent"))?;
            depth = depth.max(*of_child);
            size = size.saturating_add(*nodes);
        }
        seen.push((depth + 1, size.saturating_add(1)));
    }
    let (depth, size) = *seen.get(root as usize).ok_or_else(|| format!("the root {root} is no node"))?;
    if depth > MAX_DEPTH {
        return Err(format!("a predicate is {depth} levels deep; at most {MAX_DEPTH}"));
    }
    if size > MAX_TREE {
        return Err(format!("a predicate written out has more than {MAX_TREE} nodes and values"));
    }
    Ok(())
}

fn children<'a>(arena: &'a Arena, node: &Node) -> Result<&'a [u32], String> {
    let first = node.first as usize;
    let end = first.checked_add(node.count as usize);
    // A leaf's `first` says nothing.
    if node.count == 0 {
        return Ok(&[]);
    }
    end.and_then(|end| arena.args.get(first..end)).ok_or_else(|| {
        format!("a node has {} arguments from {}, and there are {}", node.count, node.first, arena.args.len())
    })
}

fn bytes_of(scalar: &Scalar) -> usize {
    match scalar {
        Scalar::Text(text) | Scalar::Decimal(text) => text.len(),
        _ => 8,
    }
}

/// Reads a tree whose shape was checked.
struct Reading<'a> {
    arena: &'a Arena,
    /// Made once each: what refers to a text shares it.
    literals: Vec<Result<Value, String>>,
}

impl Reading<'_> {
    fn node(&self, index: u32) -> Result<&Node, String> {
        self.arena.nodes.get(index as usize).ok_or_else(|| format!("there is no node {index}"))
    }

    fn condition(&self, index: u32) -> Result<HookCondition, String> {
        let node = self.node(index)?;
        let children = children(self.arena, node)?;
        let all = || children.iter().map(|child| self.condition(*child)).collect::<Result<Vec<_>, _>>();
        Ok(match node.op {
            Op::And => HookCondition::All(all()?),
            Op::Or => HookCondition::Any(all()?),
            Op::Not => match children {
                [inner] => HookCondition::Not(Box::new(self.condition(*inner)?)),
                _ => return Err(format!("`not` has {} arguments, not one", children.len())),
            },
            Op::Literal => match self.literal(node)? {
                Value::Boolean(value) => HookCondition::Always(value),
                _ => {
                    return Err("a literal in the place of a condition is neither true nor false".to_owned());
                }
            },
            op => {
                let operator = operator(op).ok_or_else(|| format!("a predicate has the operator {op:?}"))?;
                let [column, values @ ..] = children else {
                    return Err(format!("`{}` has no arguments", operator.as_str()));
                };
                let values = values.iter().map(|value| self.value(*value)).collect::<Result<_, _>>()?;
                HookCondition::Test { member: self.column(*column, operator)?.into(), operator, values }
            }
        })
    }

    fn column(&self, index: u32, operator: TestOperator) -> Result<&str, String> {
        let node = self.node(index)?;
        match (node.op, node.count) {
            (Op::Column, 0) => {
                let name = self.arena.columns.get(node.aux as usize);
                name.map(String::as_str).ok_or_else(|| format!("there is no column {}", node.aux))
            }
            _ => Err(format!("the first argument of `{}` is no column", operator.as_str())),
        }
    }

    fn value(&self, index: u32) -> Result<Value, String> {
        let node = self.node(index)?;
        match (node.op, node.count) {
            (Op::Literal, 0) => self.literal(node),
            _ => Err("a column is compared with something else than a literal".to_owned()),
        }
    }

    fn literal(&self, node: &Node) -> Result<Value, String> {
        let literal = self.literals.get(node.aux as usize);
        literal.ok_or_else(|| format!("there is no literal {}", node.aux))?.clone()
    }
}

fn operator(op: Op) -> Option<TestOperator> {
    Some(match op {
        Op::Eq => TestOperator::Eq,
        Op::Ne => TestOperator::Ne,
        Op::Lt => TestOperator::Lt,
        Op::Le => TestOperator::Le,
        Op::Gt => TestOperator::Gt,
        Op::Ge => TestOperator::Ge,
        Op::Between => TestOperator::Between,
        Op::InList => TestOperator::InList,
        Op::IsNull => TestOperator::IsNull,
        Op::IsNotNull => TestOperator::IsNotNull,
        Op::Contains => TestOperator::Contains,
        Op::StartsWith => TestOperator::StartsWith,
        Op::EndsWith => TestOperator::EndsWith,
        _ => return None,
    })
}

fn value(scalar: &Scalar) -> Result<Value, String> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Boolean(value) => Value::Boolean(*value),
        Scalar::Integer(value) => Value::Integer(*value),
        Scalar::Float(value) if value.is_finite() => Value::Float(*value),
        Scalar::Float(value) => return Err(format!("a literal is {value}")),
        Scalar::Decimal(digits) if is_decimal(digits) => Value::Decimal(digits.as_str().into()),
        Scalar::Decimal(_) => return Err("a decimal literal is no decimal: sign, digits, at most one point".to_owned()),
        Scalar::Text(text) => Value::Text(text.as_str().into()),
        Scalar::DateDays(days) if DAYS.contains(days) => Value::Date(*days),
        Scalar::TimestampUs(micros)
            if DAYS.contains(&i32::try_from(micros.div_euclid(DAY_MICROS)).unwrap_or(i32::MAX)) =>
        {
            Value::Timestamp(*micros)
        }
        Scalar::DateDays(_) | Scalar::TimestampUs(_) => {
            return Err("a time is outside of the years 0001 to 9999".to_owned());
        }
    })
}

fn is_decimal(digits: &str) -> bool {
    let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.len() <= 39 && are_digits(whole) && are_digits(fraction)
}

#[cfg(test)]
mod tests;
