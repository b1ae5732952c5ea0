//! The validated profile of a dialect component: quoting, placeholders, templates, type names.
//!
//! In: a [`RawProfile`] with untrusted strings of a component. Out: a [`DialectProfile`] whose templates are split into
//! segments. Not here: the component itself (plugin-host), and code for a particular warehouse; a dialect is data.

use std::fmt;

use crate::sql::template::{Template, TemplateError};
use crate::types::{Granularity, LogicalType};

/// Operators for which a dialect supplies templates, in the order of the contract (`terrane:types/ir.op`).
macro_rules! ops {
    ($($variant:ident $name:literal $arity:expr),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Op { $($variant),* }

        impl Op {
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];

            /// Returns the kebab-case name in the contract.
            pub fn name(self) -> &'static str {
                match self { $(Op::$variant => $name),* }
            }

            /// Returns the number of holes of a template; `None` if any number of arguments is allowed.
            pub fn arity(self) -> Option<u8> {
                match self { $(Op::$variant => $arity),* }
            }
        }
    };
}

ops! {
    Column "column" Some(1), Literal "literal" Some(1), Param "param" Some(1), Star "star" Some(0),
    And "and" None, Or "or" None, Not "not" Some(1),
    Eq "eq" Some(2), Ne "ne" Some(2), Lt "lt" Some(2), Le "le" Some(2), Gt "gt" Some(2), Ge "ge" Some(2),
    Between "between" Some(3), InList "in-list" None, IsNull "is-null" Some(1), IsNotNull "is-not-null" Some(1),
    Contains "contains" Some(2), StartsWith "starts-with" Some(2), EndsWith "ends-with" Some(2),
    Add "add" Some(2), Sub "sub" Some(2), Mul "mul" Some(2), Div "div" Some(2), Modulo "modulo" Some(2),
    Negate "negate" Some(1), Concat "concat" None, Coalesce "coalesce" None, NullIf "nullif" Some(2),
    CaseWhen "case-when" None, Cast "cast" Some(2),
    Count "count" None, CountDistinct "count-distinct" Some(1), ApproxDistinct "approx-distinct" Some(1),
    Sum "sum" Some(1), Avg "avg" Some(1), Min "min" Some(1), Max "max" Some(1),
    Percentile "percentile" Some(2), StdDev "stddev" Some(1),
    DateTrunc "date-trunc" Some(2), DateLabel "date-label" Some(2), DateAdd "date-add" Some(3),
    DateDiff "date-diff" Some(3), DatePart "date-part" Some(2), ToTimeZone "to-time-zone" Some(2),
    CurrentTimestamp "current-timestamp" Some(0),
    RunningSum "running-sum" None, Lag "lag" None, RowNumber "row-number" None,
    NullSafeEq "null-safe-eq" Some(2), Collate "collate" Some(1), Call "call" None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderStyle {
    Question,
    DollarN,
    ColonN,
    AtPn,
    Pyformat,
    /// The dialect has no bound parameters; values are printed as literals.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullOrder {
    NullsLow,
    NullsHigh,
    NullsFirst,
    NullsLast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitStyle {
    LimitOffset,
    FetchFirst,
    Top,
    Rownum,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseFolding {
    ToLower,
    ToUpper,
    Keep,
}

/// The capabilities of the warehouse; each is one flag of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    pub nulls_first_last: bool,
    pub ilike: bool,
    pub filter_clause: bool,
    pub grouping_sets: bool,
    pub ctes: bool,
    pub recursive_ctes: bool,
    pub lateral: bool,
    pub qualify: bool,
    pub window_functions: bool,
    pub boolean_literals: bool,
    pub full_outer_join: bool,
    pub interval_arithmetic: bool,
    pub explain_json: bool,
    pub cancel_by_query_id: bool,
    pub punctuated_names: bool,
}

/// The quotes of names and strings. In a checked profile the delimiters are one of a few known pairs, and `reserved` is
/// in upper case, sorted and without duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoting {
    pub ident_open: String,
    pub ident_close: String,
    /// The escape of `ident_close` inside a name. If it starts with a backslash, a backslash in
    /// a name is doubled too.
    pub ident_escape: String,
    pub string_quote: String,
    pub string_prefix: String,
    /// The escape of `'` inside a string literal: `''`, or `\u0027`, in which case control characters and `$` are
    /// escaped in the same way.
    pub string_escape: String,
    pub string_escape_backslash: bool,
    pub folding: CaseFolding,
    pub max_ident_bytes: u32,
    pub reserved: Vec<String>,
}

/// A template of an operator, as the component returned it. `arity` and `ty` restrict it to an overload.
#[derive(Debug, Clone)]
pub struct RawOp {
    pub op: Op,
    /// The name of the function, for [`Op::Call`].
    pub name: Option<String>,
    pub arity: Option<u32>,
    pub ty: Option<LogicalType>,
    pub sql: String,
}

#[derive(Debug, Clone)]
pub struct RawTime {
    pub granularity: Granularity,
    pub trunc: String,
    pub trunc_instant: Option<String>,
    pub add: String,
    pub diff: String,
    pub part: String,
    pub label: Option<String>,
}

/// A profile as a component returned it, which has not been checked.
#[derive(Debug, Clone)]
pub struct RawProfile {
    pub name: String,
    pub quoting: Quoting,
    pub placeholders: PlaceholderStyle,
    pub max_params: u32,
    pub limit: LimitStyle,
    pub default_null_order: NullOrder,
    pub features: Features,
    pub ops: Vec<RawOp>,
    pub times: Vec<RawTime>,
    pub types: Vec<(LogicalType, String)>,
    pub date_literal: String,
    pub timestamp_literal: String,
    pub timestamp_tz_literal: String,
    pub true_literal: String,
    pub false_literal: String,
    pub explain: String,
    pub extra: Vec<(String, String)>,
}

/// The templates of one granularity. `trunc`: {0} is a timestamp in the query's time zone. `add`: {0} is an expression,
/// {1} a number of steps. `diff`: {0} and {1} are timestamps. `part`: {0} is a timestamp.
#[derive(Debug, Clone)]
pub struct TimeTemplates {
    pub trunc: Template,
    /// The template that truncates to an hour or a shorter granularity if the query's time zone is not UTC: `{0}` is an
    /// instant and `{1}` the same time as local time; the result is the start of the local bucket as an instant. `None`
    /// if truncating the instant has the same result.
    pub trunc_instant: Option<Template>,
    pub add: Template,
    pub diff: Template,
    pub part: Template,
    /// The template of a bucket's label; `None` if the host prints the label itself.
    pub label: Option<Template>,
}

#[derive(Debug, Clone)]
pub(super) struct OpOverload {
    pub(super) name: Option<String>,
    pub(super) arity: Option<u32>,
    pub(super) ty: Option<LogicalType>,
    pub(super) template: Template,
}

/// A validated dialect. Only [`DialectProfile::check`] creates one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DialectProfile {
    pub name: String,
    pub quoting: Quoting,
    pub placeholders: PlaceholderStyle,
    pub max_params: u32,
    pub limit: LimitStyle,
    pub default_null_order: NullOrder,
    pub features: Features,
    /// A date: {0} is a string literal such as `'2024-01-31'`. Needs no parentheses as an operand.
    pub date_literal: Template,
    /// A timestamp: {0} is a string literal such as `'2024-01-31 15:00:00.000000'`. Needs no parentheses as an operand.
    pub timestamp_literal: Template,
    /// An instant: {0} is a string literal such as `'2024-01-31 15:00:00.000000+00:00'`. Needs no parentheses as an
    /// operand.
    pub timestamp_tz_literal: Template,
    pub true_literal: Template,
    pub false_literal: Template,
    /// The statement for the warehouse's plan: {0}, at the end, is the whole query. `None` if the warehouse cannot
    /// explain queries.
    pub explain: Option<Template>,
    pub extra: Vec<(String, String)>,
    /// A digest of the profile. Different profiles have different digests.
    pub(crate) digest: u64,
    /// The overloads by operator, so that a lookup visits few of them.
    pub(super) ops: Vec<Vec<OpOverload>>,
    /// The templates of time functions, by granularity.
    pub(super) times: Vec<TimeTemplates>,
    /// The names of types, by logical type.
    pub(super) types: Vec<String>,
}

impl DialectProfile {
    /// Returns the profile for a connection that cannot bind parameters. Values are then printed as literals.
    #[must_use]
    pub fn without_parameters(&self) -> DialectProfile {
        // The digest of the same profile with parameters must differ.
        let digest = self.digest.rotate_left(1) ^ 1;
        DialectProfile { placeholders: PlaceholderStyle::None, max_params: 0, digest, ..self.clone() }
    }
}

/// The reason why a profile was refused: the place in the profile, and the fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ProfileError {
    /// The place, such as `ops.contains`, `times.week.trunc` or `quoting.ident-open`.
    pub place: String,
    pub fault: ProfileFault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileFault {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("is missing")]
    Missing,
    #[error("is a duplicate")]
    Duplicate,
    #[error("may not be `{0}`")]
    Value(String),
    #[error("is longer than {0} bytes")]
    TooLong(usize),
    #[error("has {found} entries, the limit is {limit}")]
    TooMany { found: usize, limit: usize },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.place, self.fault)
    }
}

impl Quoting {
    /// Writes a name, without quotes if the warehouse reads it as the same name, else with quotes.
    pub fn write_name(&self, out: &mut String, name: &str) {
        if self.is_plain(name) {
            out.push_str(name);
        } else {
            self.write_quoted_name(out, name);
        }
    }

    /// Writes a name in quotes, and escapes quotes inside it.
    pub fn write_quoted_name(&self, out: &mut String, name: &str) {
        let escapes_backslash = self.ident_escape.starts_with('\\');
        let close = self.ident_close.chars().next();
        out.push_str(&self.ident_open);
        if name.contains(|c| Some(c) == close || c == '\\') {
            for c in name.chars() {
                match c {
                    _ if Some(c) == close => out.push_str(&self.ident_escape),
                    '\\' if escapes_backslash => out.push_str("\\\\"),
                    _ => out.push(c),
                }
            }
        } else {
            out.push_str(name);
        }
        out.push_str(&self.ident_close);
    }

    /// Writes a string literal. Values are bound as parameters; this is for warehouses without them, for the names of
    /// time zones, and for SQL that is only shown.
    pub fn write_text(&self, out: &mut String, text: &str) {
        out.push_str(&self.string_prefix);
        out.push_str(&self.string_quote);
        let writes_code_points = self.string_escape.starts_with('\\');
        for c in text.chars() {
            match c {
                '\'' => out.push_str(&self.string_escape),
                '\\' if self.string_escape_backslash => out.push_str("\\\\"),
                _ if writes_code_points && (c.is_control() || c == '$') => {
                    out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                _ => out.push(c),
            }
        }
        out.push_str(&self.string_quote);
    }

    /// Returns whether the name needs no quotes: it is a word that is not reserved, and the warehouse does not change
    /// its case.
    pub fn is_plain(&self, name: &str) -> bool {
        let is_word_byte = |b: u8| match self.folding {
            CaseFolding::ToLower => b.is_ascii_lowercase() || b == b'_',
            CaseFolding::ToUpper => b.is_ascii_uppercase() || b == b'_',
            CaseFolding::Keep => b.is_ascii_alphabetic() || b == b'_',
        };
        let mut bytes = name.bytes();
        bytes.next().is_some_and(is_word_byte)
            && bytes.all(|b| is_word_byte(b) || b.is_ascii_digit())
            && !self.is_reserved(name)
    }

    /// Returns whether the word, in any case, is reserved.
    pub fn is_reserved(&self, word: &str) -> bool {
        // Reserved words are short: this compares slices of bytes, without an allocation for each name of a statement.
        let mut buffer = [0; 32];
        let Some(upper) = buffer.get_mut(..word.len()) else {
            return self.reserved.iter().any(|reserved| reserved.eq_ignore_ascii_case(word));
        };
        upper.copy_from_slice(word.as_bytes());
        upper.make_ascii_uppercase();
        self.reserved.binary_search_by(|reserved| reserved.as_bytes().cmp(upper)).is_ok()
    }
}

impl DialectProfile {
    /// Returns the template of `op` for `arity` arguments of type `ty`. An overload for both the type and the arity is
    /// preferred, then one for the type, then one for the arity, then one for neither.
    pub fn op(&self, op: Op, arity: usize, ty: Option<LogicalType>) -> Option<&Template> {
        self.best(op, None, arity, ty)
    }

    /// Returns the template of the named function (operator `call`).
    pub fn function(&self, name: &str, arity: usize, ty: Option<LogicalType>) -> Option<&Template> {
        self.best(Op::Call, Some(name), arity, ty)
    }

    fn best(&self, op: Op, name: Option<&str>, arity: usize, ty: Option<LogicalType>) -> Option<&Template> {
        self.ops[op as usize]
            .iter()
            .filter(|o| o.name.as_deref() == name)
            .filter(|o| o.arity.is_none_or(|a| a as usize == arity))
            .filter(|o| o.ty.is_none_or(|t| Some(t) == ty))
            .max_by_key(|o| (u8::from(o.ty.is_some()) << 1) | u8::from(o.arity.is_some()))
            .map(|o| &o.template)
    }

    pub fn time(&self, granularity: Granularity) -> &TimeTemplates {
        &self.times[granularity as usize]
    }

    /// Returns the warehouse's name of a type, for casts.
    pub fn type_name(&self, ty: LogicalType) -> &str {
        &self.types[ty as usize]
    }
}
