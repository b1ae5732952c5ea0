//! The SQL of a project's author as a typed node.
//!
//! In: `sql:` text whose Jinja is rendered. Out: a [`Snippet`]: parts of SQL text between resolved references, so that
//! no later stage has to find names in text. Bare columns are qualified with their cube, divisions are separate nodes
//! (exact, and null on zero), and comments are removed.

pub(crate) mod aggregate;
pub mod allowed;
mod calculation_words;
pub mod calls;
pub(crate) mod form;
pub(crate) mod grammar;
mod parquet_files;
pub(crate) mod parser_error;
pub(crate) mod stand_in;
mod table_functions;
pub(crate) mod table_names;
mod tables;
mod units;

use std::fmt;
use std::sync::Arc;

pub use aggregate::is_aggregate;
pub(crate) use calculation_words::likely_word;
pub use grammar::{Problem, column_name, grammar, is_space, offset_of, tokenize};
pub use parquet_files::parquet_reads;
pub use tables::tables_named_in;
pub(crate) use tables::{CreatedView, created_views, names_in};
pub use units::{is_unit, takes_unit};

use crate::ids::{CubeId, DimensionId, MeasureId, MetricId};
use crate::types::LogicalType;

/// A name in the warehouse, as the author wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnName {
    pub text: Arc<str>,
    /// True if the author quoted the name, so that its case matters.
    pub quoted: bool,
}

/// An expression of the author, ready to be printed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snippet {
    pub parts: Vec<SqlPart>,
    /// True for a column, a literal or a call, which needs no parentheses as an operand.
    pub is_atomic: bool,
    /// True if an expression of this form cannot fail on any row. Its dimensions and the types of callers' values may
    /// still make it fail.
    pub is_infallible: bool,
    /// True if it contains a subquery, which may read anything.
    pub has_query: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SqlPart {
    Text(Box<str>),
    /// `amount` or `{orders}.amount`.
    Column {
        cube: CubeId,
        name: ColumnName,
    },
    /// `{status}` or `{customers.region}`: the expression of that dimension.
    Dimension(DimensionId),
    /// `{revenue}`: only in `number` measures and metrics.
    Measure(MeasureId),
    /// `cost`: only in metrics.
    Metric(MetricId),
    /// `SUM(a)` inside a `number`: a hidden aggregate over the current cube.
    Aggregate(Box<Aggregate>),
    /// `{{ user.… }}`, only in policies. It is bound when the caller is known. `is_list` is true after `IN`.
    User(UserPart),
    /// `a / b`: exact division, null if `b` is zero.
    Divide(Box<Snippet>, Box<Snippet>),
}

/// A caller's value inside a policy's condition.
#[derive(Debug, Clone, PartialEq)]
pub struct UserPart {
    pub value: UserValue,
    pub is_list: bool,
    /// The other operand of its comparison; `None` inside a call, or if it is another value of the caller.
    pub compared: Option<Box<Compared>>,
}

/// The other side of a comparison. The caller's value is converted to the type of this side, so that no engine casts
/// one of the two sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    pub sql: Snippet,
    /// The type that the warehouse reports.
    pub ty: LogicalType,
}

/// The property of a caller that a policy refers to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UserValue {
    Id,
    Email,
    Roles,
    Groups,
    AuthMethod,
    Attribute(Arc<str>),
}

/// An aggregation over the rows of the measure's own cube.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub function: AggregateFunction,
    /// The aggregated expression; `None` only for `count`, which counts rows.
    pub argument: Option<Snippet>,
    /// The conditions that rows must meet to be aggregated.
    pub filters: Vec<Snippet>,
    /// The type of `argument` that the warehouse reports; `Unknown` until types are read.
    pub argument_type: LogicalType,
    /// True if the argument has a type of the engine's own, and is converted to a string.
    pub is_converted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    Count,
    CountDistinct,
    CountDistinctApprox,
    Sum,
    Avg,
    Min,
    Max,
    /// The value below which a share of the values lie, interpolated between two of them.
    Percentile(Fraction, Precision),
    StdDev(Spread),
    /// The square of [`AggregateFunction::StdDev`].
    Variance(Spread),
}

/// The set that the values of a deviation or a variance represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spread {
    /// The values are the whole population: the squares are divided by their number.
    Population,
    /// The values are a sample of it: the squares are divided by their number less one, which leaves null for one value.
    Sample,
}

/// The precision that a percentile must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    Exact,
    /// Exact where the warehouse can compute it, otherwise the warehouse's approximation.
    Approximate,
}

impl AggregateFunction {
    /// Returns whether the result is a double, computed from doubles, that cannot be merged from results of parts of
    /// the rows.
    pub fn is_of_distribution(self) -> bool {
        use AggregateFunction::{Percentile, StdDev, Variance};
        matches!(self, Percentile(..) | StdDev(_) | Variance(_))
    }
}

/// A share between 0 and 1, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fraction(u32);

impl Fraction {
    pub const HALF: Fraction = Fraction(500_000);
    const ONE: u32 = 1_000_000;

    /// Parses a decimal number from 0 to 1 with at most six places, such as `0.95`.
    pub fn parse(text: &str) -> Option<Fraction> {
        let (units, digits) = match text.trim().split_once('.') {
            Some((units, digits)) => (units, Some(digits)),
            None => (text.trim(), None),
        };
        let places =
            |digits: &str| (1..=6).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
        let units = match units {
            "" if digits.is_some() => 0,
            "0" => 0,
            "1" => Fraction::ONE,
            _ => return None,
        };
        let millionths: u32 = match digits {
            Some(digits) => format!("{digits:0<6}").parse().ok().filter(|_| places(digits))?,
            None => 0,
        };
        Some(Fraction(units + millionths)).filter(|fraction| fraction.0 <= Fraction::ONE)
    }
}

impl fmt::Display for Fraction {
    /// Writes decimal digits, such as `0.95` or `1.0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:06}", self.0 % Fraction::ONE);
        let digits = digits.trim_end_matches('0');
        write!(f, "{}.{}", self.0 / Fraction::ONE, if digits.is_empty() { "0" } else { digits })
    }
}

impl Snippet {
    /// Visits every part, also inside divisions, in reading order.
    pub fn for_each<'a>(&'a self, visit: &mut impl FnMut(&'a SqlPart)) {
        for part in &self.parts {
            visit(part);
            if let SqlPart::Divide(left, right) = part {
                left.for_each(visit);
                right.for_each(visit);
            }
        }
    }

    /// Returns the caller's values in reading order. Only conditions of policies have any.
    pub fn user_parts(&self) -> Vec<&UserPart> {
        let mut found = Vec::new();
        self.for_each(&mut |part| {
            if let SqlPart::User(user) = part {
                found.push(user);
            }
        });
        found
    }

    /// Returns the caller's values so that their types can be set. Conditions of policies contain no
    /// [`SqlPart::Divide`].
    pub(crate) fn user_parts_mut(&mut self) -> impl Iterator<Item = &mut UserPart> {
        self.parts.iter_mut().filter_map(|part| match part {
            SqlPart::User(user) => Some(user),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Fraction;

    #[test]
    fn fractions_are_digits_from_zero_to_one() {
        for (text, shown) in [
            ("0.95", "0.95"),
            (".5", "0.5"),
            ("0.500", "0.5"),
            (" 0.000001 ", "0.000001"),
            ("0", "0.0"),
            ("0.0", "0.0"),
            ("1", "1.0"),
            ("1.000", "1.0"),
        ] {
            assert_eq!(Fraction::parse(text).map(|fraction| fraction.to_string()).as_deref(), Some(shown), "{text}");
        }
        for text in ["", "1.000001", "2", "95", "0.9999999", "-0.5", "0.5e1", "0.", ".", "00.5", "0.+5", "½"] {
            assert_eq!(Fraction::parse(text), None, "{text}");
        }
    }
}
