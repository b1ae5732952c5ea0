//! A check's conditions: the contract's arena as filters over the cube's own dimensions.
//!
//! In: an arena, untrusted, and the columns that were offered. Out: one filter a root, of the operators that
//! row filters have too: `and`, `or`, `not` over tests of one column and literals. Whether a literal fits its
//! column's type is for the compiler, which reads it as a query's own. Not here: anything that becomes text
//! of SQL.

use std::cell::Cell;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use terrane_app::ports::checks::ProfiledColumn;
use terrane_app::ports::plugins::PluginFault;
use terrane_compiler::query::{Filter, MemberRef, Operator};
use terrane_compiler::types::Value;

use super::plan::fault;
use crate::bindings::ir::{Arena, Node, Op, Scalar};

const MAX_NODES: usize = 512;
const MAX_DEPTH: usize = 32;
const MAX_LITERAL_BYTES: usize = 256 * 1024;
/// A node that several others hold counts as often as they do.
const MAX_TESTS: usize = 1_000;
/// The same with the columns and values of tests: each reference counts.
const MAX_UNFOLDED: usize = 4_096;

/// The conditions, in the order of the roots.
pub(super) fn conditions(arena: &Arena, columns: &[ProfiledColumn]) -> Result<Vec<Filter>, PluginFault> {
    let sizes = [arena.nodes.len(), arena.roots.len(), arena.args.len() / 2, arena.literals.len(), arena.columns.len()];
    if sizes.iter().any(|size| *size > MAX_NODES) {
        return Err(fault(format!("the conditions have more than {MAX_NODES} nodes")));
    }
    let bytes: usize = arena.literals.iter().map(literal_bytes).sum();
    if bytes > MAX_LITERAL_BYTES {
        return Err(fault(format!("the conditions' literals have {bytes} bytes, the limit is {MAX_LITERAL_BYTES}")));
    }
    let literals = arena.literals.iter().map(value).collect();
    let reader = Reader { arena, columns, literals, made: Cell::new(0), unfolded: Cell::new(0) };
    // What isn't a root, or shared between roots, is judged as well.
    for index in 0..arena.nodes.len() {
        reader.args(index)?;
    }
    arena.roots.iter().map(|root| reader.filter(*root as usize, MAX_DEPTH)).collect()
}

/// Tests, their columns and values, and what joins them.
pub(super) fn size(filter: &Filter) -> usize {
    match filter {
        Filter::Condition { values, .. } => 2 + values.len(),
        Filter::And(inner) | Filter::Or(inner) => 1 + inner.iter().map(size).sum::<usize>(),
        Filter::Not(inner) => 1 + size(inner),
    }
}

fn literal_bytes(literal: &Scalar) -> usize {
    match literal {
        Scalar::Text(text) | Scalar::Decimal(text) => text.len(),
        _ => 8,
    }
}

struct Reader<'a> {
    arena: &'a Arena,
    columns: &'a [ProfiledColumn],
    /// Made once each, what refers to a text shares it; or what is wrong with it.
    literals: Vec<Result<Value, &'static str>>,
    /// Nodes of filters so far.
    made: Cell<usize>,
    /// Those, and the columns and values of tests.
    unfolded: Cell<usize>,
}

impl Reader<'_> {
    fn node(&self, index: usize) -> Result<&Node, PluginFault> {
        self.arena.nodes.get(index).ok_or_else(|| fault(format!("the conditions have no node {index}")))
    }

    /// The children of a node: each before it, so that there is no way round.
    fn args(&self, index: usize) -> Result<&[u32], PluginFault> {
        let node = self.node(index)?;
        let (first, count) = (node.first as usize, node.count as usize);
        let args = first.checked_add(count).and_then(|end| self.arena.args.get(first..end));
        let args = if count == 0 { Some(&[][..]) } else { args };
        match args {
            Some(args) if args.iter().all(|arg| (*arg as usize) < index) => Ok(args),
            _ => Err(fault(format!("node {index} has children that are not before it"))),
        }
    }

    fn filter(&self, index: usize, depth: usize) -> Result<Filter, PluginFault> {
        let depth = depth.checked_sub(1).ok_or_else(|| fault(format!("the conditions are deeper than {MAX_DEPTH}")))?;
        self.made.set(self.made.get() + 1);
        if self.made.get() > MAX_TESTS {
            return Err(fault(format!("the conditions unfold to more than {MAX_TESTS} nodes")));
        }
        self.unfold(1)?;
        let (node, args) = (self.node(index)?, self.args(index)?);
        let inner = || args.iter().map(|arg| self.filter(*arg as usize, depth)).collect::<Result<Vec<_>, _>>();
        match (node.op, args) {
            (Op::And, _) => Ok(Filter::And(inner()?)),
            (Op::Or, _) => Ok(Filter::Or(inner()?)),
            (Op::Not, [arg]) => Ok(Filter::Not(Box::new(self.filter(*arg as usize, depth)?))),
            // An empty AND is true, an empty OR is false.
            (Op::Literal, []) => match self.literal(index)? {
                Value::Boolean(true) => Ok(Filter::And(Vec::new())),
                Value::Boolean(false) => Ok(Filter::Or(Vec::new())),
                _ => Err(fault(format!("node {index} is a literal where a condition belongs"))),
            },
            (op, [column, values @ ..]) => self.test(index, op, *column as usize, values),
            _ => Err(fault(format!("node {index} is no condition"))),
        }
    }

    fn unfold(&self, count: usize) -> Result<(), PluginFault> {
        self.unfolded.set(self.unfolded.get().saturating_add(count));
        if self.unfolded.get() > MAX_UNFOLDED {
            return Err(fault(format!("the conditions unfold to more than {MAX_UNFOLDED} nodes and values")));
        }
        Ok(())
    }

    fn test(&self, index: usize, op: Op, column: usize, values: &[u32]) -> Result<Filter, PluginFault> {
        let operator = match (op, values.len()) {
            (Op::Eq, 1) => Operator::Equals,
            (Op::Ne, 1) => Operator::NotEquals,
            (Op::Lt, 1) => Operator::Lt,
            (Op::Le, 1) => Operator::Lte,
            (Op::Gt, 1) => Operator::Gt,
            (Op::Ge, 1) => Operator::Gte,
            (Op::Between, 2) => Operator::Between,
            (Op::InList, 1..) => Operator::InList,
            (Op::IsNull, 0) => Operator::NotSet,
            (Op::IsNotNull, 0) => Operator::Set,
            (Op::Contains, 1) => Operator::Contains,
            (Op::StartsWith, 1) => Operator::StartsWith,
            (Op::EndsWith, 1) => Operator::EndsWith,
            _ => return Err(fault(format!("node {index} has an operator, or so many arguments, as no condition has"))),
        };
        self.unfold(1 + values.len())?;
        let values = values.iter().map(|value| self.literal(*value as usize)).collect::<Result<_, _>>()?;
        Ok(Filter::Condition { member: self.column(column)?, operator, values })
    }

    fn column(&self, index: usize) -> Result<MemberRef, PluginFault> {
        let node = self.node(index)?;
        let name = (node.op == Op::Column).then(|| self.arena.columns.get(node.aux as usize)).flatten();
        let name = name.ok_or_else(|| fault(format!("node {index} is no column, and a test begins with one")))?;
        let is_it = |column: &&ProfiledColumn| {
            let qualified = name.strip_prefix(&*column.cube).and_then(|rest| rest.strip_prefix('.'));
            !column.is_measure && (&*column.member == name || qualified == Some(&*column.member))
        };
        let column = self.columns.iter().find(is_it);
        let column = column.ok_or_else(|| fault(format!("node {index} names a column that was not offered")))?;
        let member = format!("{}.{}", column.cube, column.member).parse();
        member.map_err(|_| fault(format!("node {index} names a column that can't be asked")))
    }

    fn literal(&self, index: usize) -> Result<Value, PluginFault> {
        let node = self.node(index)?;
        let literal = (node.op == Op::Literal).then(|| self.literals.get(node.aux as usize)).flatten();
        let wrong = |what: &str| fault(format!("node {index} {what}"));
        let literal = literal.ok_or_else(|| wrong("is no literal, and one belongs there"))?;
        literal.clone().map_err(wrong)
    }
}

/// A literal, as a query's own value: dates and times are text there.
fn value(literal: &Scalar) -> Result<Value, &'static str> {
    Ok(match literal {
        Scalar::Null => Value::Null,
        Scalar::Boolean(value) => Value::Boolean(*value),
        Scalar::Integer(value) => Value::Integer(*value),
        Scalar::Float(value) if value.is_finite() => Value::Float(*value),
        Scalar::Float(_) => return Err("is a number that is none"),
        Scalar::Decimal(digits) if is_decimal(digits) => Value::Decimal(digits.as_str().into()),
        Scalar::Decimal(_) => return Err("is a decimal that is none"),
        Scalar::Text(text) => Value::Text(text.as_str().into()),
        Scalar::DateDays(days) => Value::Text(date(*days).ok_or("is a date out of range")?),
        Scalar::TimestampUs(micros) => Value::Text(time(*micros).ok_or("is a time out of range")?),
    })
}

/// Sign, digits, at most one point.
fn is_decimal(digits: &str) -> bool {
    let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let is_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    !(whole.is_empty() && fraction.is_empty()) && is_digits(whole) && is_digits(fraction)
}

fn date(days: i32) -> Option<Arc<str>> {
    let midnight = Timestamp::from_second(i64::from(days) * 86_400).ok()?;
    Some(TimeZone::UTC.to_datetime(midnight).date().to_string().into())
}

fn time(micros: i64) -> Option<Arc<str>> {
    let instant = Timestamp::from_microsecond(micros).ok()?;
    Some(TimeZone::UTC.to_datetime(instant).to_string().into())
}

#[cfg(test)]
mod tests;
