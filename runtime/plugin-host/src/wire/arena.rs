//! Converts conditions of a guest to trees.
//!
//! In: an arena of the contract, untrusted. Every index, count and value is checked before it is used. The size of the
//! trees is limited too, because shared nodes let a small arena stand for a huge tree. Out: one condition per root,
//! over names of members. Not here: whether the members exist, and the number of values that an operator takes
//! (compiler, `check`).

use terrane_compiler::governance::{HookCondition, TestOperator};
use terrane_compiler::types::Value;

use super::values::scalar_bytes;
use crate::bindings::ir::{Arena, Node, Op, Scalar};

pub(crate) const MAX_NODES: usize = 512;
pub(crate) const MAX_DEPTH: usize = 32;
pub(crate) const MAX_LITERAL_BYTES: usize = 256 * 1024;
const MAX_TREE: usize = 4_096;
const MAX_OF_COLUMNS: usize = 65_536;
const MAX_NAME_BYTES: usize = 512;
/// The valid dates, in days since 1970-01-01: 0001-01-01 to 9999-12-31.
const DAYS: std::ops::RangeInclusive<i32> = -719_162..=2_932_896;
const DAY_MICROS: i64 = 86_400_000_000;

/// The size limits of an arena.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    nodes: usize,
    /// The number of nodes and values of all roots, with shared nodes counted for each reference.
    tree: usize,
}

impl Room {
    /// The limits that do not depend on the number of columns.
    pub(crate) const PLAIN: Room = Room { nodes: MAX_NODES, tree: MAX_TREE };

    /// Returns the limits for conditions over this number of columns.
    pub(crate) fn of_columns(columns: usize) -> Room {
        let more = |least: usize, each: usize| least.saturating_add(columns.saturating_mul(each)).min(MAX_OF_COLUMNS);
        Room { nodes: more(MAX_NODES, 64), tree: more(MAX_TREE, 128) }
    }
}

/// Returns the conditions of an arena, in the order of its roots.
///
/// # Errors
/// Returns the violated rule of the contract.
pub(crate) fn conditions(arena: &Arena, room: Room) -> Result<Vec<HookCondition>, String> {
    check(arena, room)?;
    let literals = arena.literals.iter().map(value).collect();
    let reading = ArenaReader { arena, literals };
    arena.roots.iter().map(|root| reading.condition(*root)).collect()
}

/// Checks that all indexes are in range, including those of unreachable nodes, and that the trees are small.
fn check(arena: &Arena, room: Room) -> Result<(), String> {
    let Arena { nodes, args, columns, literals, names, roots } = arena;
    if nodes.len() > room.nodes {
        return Err(format!("the conditions have {} nodes; at most {}", nodes.len(), room.nodes));
    }
    let bytes: usize = literals.iter().map(scalar_bytes).sum();
    if bytes > MAX_LITERAL_BYTES {
        return Err(format!("the literals of the conditions are {bytes} bytes; at most {MAX_LITERAL_BYTES}"));
    }
    let sizes = [args.len(), columns.len(), literals.len(), names.len(), roots.len()];
    if sizes.into_iter().any(|size| size > room.tree) {
        return Err(format!("the conditions have lists of more than {} entries", room.tree));
    }
    if let Some(long) = columns.iter().find(|name| name.len() > MAX_NAME_BYTES) {
        return Err(format!("a column's name is {} bytes; at most {MAX_NAME_BYTES}", long.len()));
    }
    // The depth and the size of the tree of each node so far.
    let mut seen: Vec<(usize, usize)> = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let (mut depth, mut size) = (0, 0_usize);
        for child in children(arena, node)? {
            let (of_child, below) = seen
                .get(*child as usize)
                .ok_or_else(|| format!("node {index} has the child {child}, but children must precede their parent"))?;
            depth = depth.max(*of_child);
            size = size.saturating_add(*below);
        }
        seen.push((depth + 1, size.saturating_add(1)));
    }
    let mut whole = 0_usize;
    for root in roots {
        let (depth, size) = *seen.get(*root as usize).ok_or_else(|| format!("root {root} does not exist"))?;
        if depth > MAX_DEPTH {
            return Err(format!("a condition is {depth} levels deep; at most {MAX_DEPTH}"));
        }
        whole = whole.saturating_add(size);
    }
    if whole > room.tree {
        return Err(format!("the conditions expand to more than {} nodes and values", room.tree));
    }
    Ok(())
}

fn children<'a>(arena: &'a Arena, node: &Node) -> Result<&'a [u32], String> {
    let first = node.first as usize;
    let end = first.checked_add(node.count as usize);
    // A node without children may have any value as `first`.
    if node.count == 0 {
        return Ok(&[]);
    }
    end.and_then(|end| arena.args.get(first..end)).ok_or_else(|| {
        format!("a node has {} arguments from {}, and there are {}", node.count, node.first, arena.args.len())
    })
}

/// Reads the trees of an arena whose indexes and sizes were checked.
struct ArenaReader<'a> {
    arena: &'a Arena,
    /// Each literal once, shared by all references to it.
    literals: Vec<Result<Value, String>>,
}

impl ArenaReader<'_> {
    fn node(&self, index: u32) -> Result<&Node, String> {
        self.arena.nodes.get(index as usize).ok_or_else(|| format!("node {index} does not exist"))
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
                    return Err("a literal used as a condition is neither true nor false".to_owned());
                }
            },
            op => {
                let operator = operator(op).ok_or_else(|| format!("a condition has the operator {op:?}"))?;
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
                name.map(String::as_str).ok_or_else(|| format!("column {} does not exist", node.aux))
            }
            _ => Err(format!("the first argument of `{}` is not a column", operator.as_str())),
        }
    }

    fn value(&self, index: u32) -> Result<Value, String> {
        let node = self.node(index)?;
        match (node.op, node.count) {
            (Op::Literal, 0) => self.literal(node),
            _ => Err("a column is compared with something other than a literal".to_owned()),
        }
    }

    fn literal(&self, node: &Node) -> Result<Value, String> {
        let literal = self.literals.get(node.aux as usize);
        literal.ok_or_else(|| format!("literal {} does not exist", node.aux))?.clone()
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
        Scalar::Float(value) => return Err(format!("a literal is not finite: {value}")),
        Scalar::Decimal(digits) if is_decimal(digits) => Value::Decimal(digits.as_str().into()),
        Scalar::Decimal(_) => {
            return Err("a decimal literal is not valid: expected a sign, digits, at most one point".to_owned());
        }
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

/// Returns whether the text is a decimal number: an optional sign, then digits. A point may separate the digits; it
/// must have digits on both sides.
fn is_decimal(digits: &str) -> bool {
    let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.len() <= 39 && are_digits(whole) && are_digits(fraction)
}

#[cfg(test)]
mod tests;
