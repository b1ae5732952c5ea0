//! Builds a profile as a list of exceptions: it starts as standard SQL, and every call replaces one entry.
//!
//! In: tables of templates. Out: the contract's [`Profile`]. The host validates it when it loads the component.

use super::{
    CaseFolding, Feature, Granularity, LimitStyle, LogicalType, NullOrder, Op, OpTemplate, PlaceholderStyle, Profile,
    Quoting, TimeTemplate, TypeName, ansi,
};

/// Builds a [`Profile`]. The contract describes the grammar of templates (`op-template`).
///
/// ```
/// use terrane_sdk::dialect::{Feature, Granularity, LogicalType, Op, ProfileBuilder};
///
/// let profile = ProfileBuilder::ansi("quack")
///     .op(Op::Avg, "avg({0})")
///     .op_for(Op::Sum, LogicalType::Integer, "sum(CAST({0} AS HUGEINT))")
///     .times(|unit, time| time.add = format!("{{0}} + INTERVAL ({{1}}) {unit}"))
///     .type_name(LogicalType::Float, "DOUBLE")
///     .with_features(Feature::QUALIFY)
///     .build();
/// let week = profile.times.iter().find(|t| t.granularity == Granularity::Week).unwrap();
/// assert_eq!(week.add, "{0} + INTERVAL ({1}) week");
/// ```
#[derive(Debug, Clone)]
pub struct ProfileBuilder {
    profile: Profile,
}

impl ProfileBuilder {
    /// Starts with standard SQL: names in `"…"` folded to upper case, `?` placeholders, LIMIT and OFFSET, `date_trunc`,
    /// no explain statement.
    pub fn ansi(name: &str) -> ProfileBuilder {
        let plain = ansi::OPS.iter().map(|(op, sql)| template(*op, None, None, sql));
        let counts = ansi::COUNTS.iter().map(|(arity, sql)| template(Op::Count, Some(*arity), None, sql));
        let functions = ansi::FUNCTIONS.iter().map(|(name, arity, sql)| function(name, *arity, sql));
        let zones = ansi::TO_TIME_ZONE.iter().map(|(ty, sql)| template(Op::ToTimeZone, None, Some(*ty), sql));
        ProfileBuilder {
            profile: Profile {
                name: name.to_owned(),
                quoting: quoting(),
                placeholders: PlaceholderStyle::Question,
                max_params: 32_767,
                limit: LimitStyle::LimitOffset,
                default_null_order: NullOrder::NullsHigh,
                features: Feature::NULLS_FIRST_LAST
                    | Feature::FILTER_CLAUSE
                    | Feature::GROUPING_SETS
                    | Feature::CTES
                    | Feature::RECURSIVE_CTES
                    | Feature::WINDOW_FUNCTIONS
                    | Feature::BOOLEAN_LITERALS
                    | Feature::FULL_OUTER_JOIN
                    | Feature::INTERVAL_ARITHMETIC
                    | Feature::PUNCTUATED_NAMES,
                ops: plain.chain(counts).chain(zones).chain(functions).collect(),
                times: ansi::GRANULARITIES.into_iter().map(ansi::time).collect(),
                types: ansi::TYPES.iter().map(|(ty, sql)| TypeName { ty: *ty, sql: (*sql).to_owned() }).collect(),
                date_literal: "DATE {0}".to_owned(),
                timestamp_literal: "TIMESTAMP {0}".to_owned(),
                timestamp_tz_literal: "TIMESTAMP {0}".to_owned(),
                true_literal: "TRUE".to_owned(),
                false_literal: "FALSE".to_owned(),
                explain: String::new(),
                extra: Vec::new(),
            },
        }
    }

    /// Sets the operator's template for all types and numbers of arguments.
    pub fn op(self, op: Op, sql: &str) -> Self {
        self.replace(template(op, None, None, sql))
    }

    /// Sets the templates of several operators.
    pub fn ops(self, ops: &[(Op, &str)]) -> Self {
        ops.iter().fold(self, |builder, (op, sql)| builder.op(*op, sql))
    }

    /// Sets the operator's template for a first argument of this type.
    pub fn op_for(self, op: Op, ty: LogicalType, sql: &str) -> Self {
        self.replace(template(op, None, Some(ty), sql))
    }

    /// Sets the operator's template for this number of arguments.
    pub fn op_with(self, op: Op, arity: u32, sql: &str) -> Self {
        self.replace(template(op, Some(arity), None, sql))
    }

    /// Sets the template of a function that the host calls by name, for a number of arguments.
    pub fn function(self, name: &str, arity: u32, sql: &str) -> Self {
        self.replace(function(name, arity, sql))
    }

    /// Removes an operator that the engine lacks and the contract does not require.
    ///
    /// Without [`Op::Stddev`], the functions of variances and of samples are removed as well.
    pub fn without_op(mut self, op: Op) -> Self {
        if op == Op::Stddev {
            let is_spread = |name: &str| ansi::FUNCTIONS.iter().any(|(spread, ..)| *spread == name);
            self.profile.ops.retain(|template| !template.name.as_deref().is_some_and(is_spread));
        }
        self.profile.ops.retain(|template| template.op != op);
        self
    }

    fn replace(mut self, new: OpTemplate) -> Self {
        let same = |o: &OpTemplate| o.op == new.op && o.name == new.name && o.arity == new.arity && o.ty == new.ty;
        self.profile.ops.retain(|o| !same(o));
        self.profile.ops.push(new);
        self
    }

    /// Changes the templates of every granularity. The closure receives the granularity's name, such as `"week"`.
    pub fn times(mut self, mut change: impl FnMut(&str, &mut TimeTemplate)) -> Self {
        for time in &mut self.profile.times {
            change(ansi::unit(time.granularity), time);
        }
        self
    }

    /// Changes the templates of one granularity.
    pub fn time(mut self, granularity: Granularity, change: impl FnOnce(&mut TimeTemplate)) -> Self {
        if let Some(time) = self.profile.times.iter_mut().find(|t| t.granularity == granularity) {
            change(time);
        }
        self
    }

    pub fn type_name(mut self, ty: LogicalType, sql: &str) -> Self {
        self.profile.types.retain(|t| t.ty != ty);
        self.profile.types.push(TypeName { ty, sql: sql.to_owned() });
        self
    }

    pub fn type_names(self, types: &[(LogicalType, &str)]) -> Self {
        types.iter().fold(self, |builder, (ty, sql)| builder.type_name(*ty, sql))
    }

    /// Changes quotes, case folding and reserved words.
    pub fn quoting(mut self, change: impl FnOnce(&mut Quoting)) -> Self {
        change(&mut self.profile.quoting);
        self
    }

    /// Sets the words, separated by white space, that need quotes to be names. They replace the standard's words.
    pub fn reserved(mut self, words: &str) -> Self {
        self.profile.quoting.reserved = words.split_whitespace().map(str::to_owned).collect();
        self
    }

    /// Sets the style of parameters, and the maximum number of parameters in a statement.
    pub fn placeholders(mut self, style: PlaceholderStyle, max_params: u32) -> Self {
        self.profile.placeholders = style;
        self.profile.max_params = max_params;
        self
    }

    pub fn limit(mut self, style: LimitStyle) -> Self {
        self.profile.limit = style;
        self
    }

    pub fn null_order(mut self, order: NullOrder) -> Self {
        self.profile.default_null_order = order;
        self
    }

    pub fn with_features(mut self, features: Feature) -> Self {
        self.profile.features |= features;
        self
    }

    pub fn without_features(mut self, features: Feature) -> Self {
        self.profile.features -= features;
        self
    }

    /// Sets the literals, such as `DATE {0}`; {0} is the quoted text.
    pub fn literals(mut self, date: &str, timestamp: &str, timestamp_tz: &str) -> Self {
        self.profile.date_literal = date.to_owned();
        self.profile.timestamp_literal = timestamp.to_owned();
        self.profile.timestamp_tz_literal = timestamp_tz.to_owned();
        self
    }

    pub fn booleans(mut self, true_literal: &str, false_literal: &str) -> Self {
        self.profile.true_literal = true_literal.to_owned();
        self.profile.false_literal = false_literal.to_owned();
        self
    }

    /// Sets the explain statement, such as `EXPLAIN … {0}`; {0} is the statement.
    pub fn explain(mut self, sql: &str) -> Self {
        self.profile.explain = sql.to_owned();
        self
    }

    pub fn build(self) -> Profile {
        self.profile
    }
}

fn function(name: &str, arity: u32, sql: &str) -> OpTemplate {
    OpTemplate { name: Some(name.to_owned()), ..template(Op::Call, Some(arity), None, sql) }
}

fn template(op: Op, arity: Option<u32>, ty: Option<LogicalType>, sql: &str) -> OpTemplate {
    OpTemplate { op, name: None, arity, ty, sql: sql.to_owned() }
}

fn quoting() -> Quoting {
    Quoting {
        ident_open: "\"".to_owned(),
        ident_close: "\"".to_owned(),
        ident_escape: "\"\"".to_owned(),
        string_quote: "'".to_owned(),
        string_prefix: String::new(),
        string_escape: "''".to_owned(),
        string_escape_backslash: false,
        folding: CaseFolding::ToUpper,
        max_ident_bytes: 128,
        reserved: ansi::RESERVED.split_whitespace().map(str::to_owned).collect(),
    }
}
