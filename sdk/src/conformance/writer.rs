//! Fills in a profile's templates by the same rules as the host's printer.
//!
//! In: operators, values, names. Out: SQL. Like the host, the writer puts an argument into parentheses. It omits them
//! if the argument is an atom or a call, or if the template encloses the argument in parentheses or commas.

use crate::dialect::{Feature, LimitStyle, NullOrder, Op, Profile, TimeTemplate};
use crate::{Granularity, LogicalType};

/// A piece of SQL, and whether it needs parentheses as an operand.
#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub(super) sql: String,
    is_closed: bool,
}

impl Expr {
    /// Creates an atom or a call, which needs no parentheses as an operand.
    pub(super) fn closed(sql: impl Into<String>) -> Expr {
        Expr { sql: sql.into(), is_closed: true }
    }

    fn of_template(sql: String) -> Expr {
        let is_closed = is_call(&sql) || sql.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        Expr { sql, is_closed }
    }
}

/// Returns column `x` of [`Writer::table`].
pub(super) fn x() -> Expr {
    Expr::closed("t.x")
}

pub(super) fn y() -> Expr {
    Expr::closed("t.y")
}

const COLUMNS: [&str; 4] = ["x", "y", "z", "w"];

#[derive(Clone, Copy)]
pub(super) struct Writer<'p> {
    pub(super) profile: &'p Profile,
}

impl<'p> Writer<'p> {
    pub(super) fn new(profile: &'p Profile) -> Writer<'p> {
        Writer { profile }
    }

    pub(super) fn has(&self, feature: Feature) -> bool {
        self.profile.features.contains(feature)
    }

    pub(super) fn op(&self, op: Op, args: &[Expr]) -> Option<Expr> {
        self.op_for(op, None, args)
    }

    /// Returns the overload that the host selects: for the type, else for the number of arguments, else for neither.
    pub(super) fn op_for(&self, op: Op, ty: Option<LogicalType>, args: &[Expr]) -> Option<Expr> {
        let templates = self.profile.ops.iter().filter(|t| {
            t.op == op
                && t.name.is_none()
                && t.arity.is_none_or(|arity| arity as usize == args.len())
                && t.ty.is_none_or(|found| Some(found) == ty)
        });
        let best = templates.max_by_key(|t| (u8::from(t.ty.is_some()) << 1) | u8::from(t.arity.is_some()))?;
        Some(fill(&best.sql, args))
    }

    /// Returns the call of a function that the host calls by name.
    pub(super) fn function(&self, name: &str, args: &[Expr]) -> Option<Expr> {
        let mut templates = self.profile.ops.iter().filter(|t| t.op == Op::Call && t.name.as_deref() == Some(name));
        templates.next().map(|t| fill(&t.sql, args))
    }

    pub(super) fn time(&self, granularity: Granularity) -> Option<&'p TimeTemplate> {
        self.profile.times.iter().find(|time| time.granularity == granularity)
    }

    pub(super) fn cast(&self, value: Expr, ty: LogicalType) -> Expr {
        let name = self.profile.types.iter().find(|t| t.ty == ty).map_or("", |t| t.sql.as_str());
        let args = [value, Expr::closed(name)];
        self.op(Op::Cast, &args).unwrap_or_else(|| args[0].clone())
    }

    pub(super) fn null(&self, ty: LogicalType) -> Expr {
        self.cast(Expr::closed("NULL"), ty)
    }

    pub(super) fn integer(&self, integer: i64) -> Expr {
        self.cast(Expr::closed(integer.to_string()), LogicalType::Integer)
    }

    pub(super) fn float(&self, float: f64) -> Expr {
        self.cast(Expr::closed(format!("{float:e}")), LogicalType::Float)
    }

    pub(super) fn decimal(&self, digits: &str) -> Expr {
        self.cast(self.decimal_literal(digits), LogicalType::Decimal)
    }

    /// Returns a string, cast to the type of a string column.
    pub(super) fn text(&self, text: &str) -> Expr {
        self.cast(self.text_literal(text), LogicalType::Text)
    }

    /// Returns a decimal as plain digits, or with the profile's template if the engine reads plain digits as a double.
    pub(super) fn decimal_literal(&self, digits: &str) -> Expr {
        let quoted = [self.text_literal(digits)];
        let typed = self.profile.ops.iter().find(|t| t.op == Op::Literal && t.ty == Some(LogicalType::Decimal));
        typed.map_or_else(|| Expr::closed(digits), |t| Expr::closed(fill(&t.sql, &quoted).sql))
    }

    pub(super) fn text_literal(&self, text: &str) -> Expr {
        let quoting = &self.profile.quoting;
        let mut sql = format!("{}{}", quoting.string_prefix, quoting.string_quote);
        let writes_code_points = quoting.string_escape.starts_with('\\');
        for c in text.chars() {
            match c {
                '\'' => sql.push_str(&quoting.string_escape),
                '\\' if quoting.string_escape_backslash => sql.push_str("\\\\"),
                _ if writes_code_points && (c.is_control() || c == '$') => {
                    sql.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                _ => sql.push(c),
            }
        }
        sql.push_str(&quoting.string_quote);
        Expr::closed(sql)
    }

    pub(super) fn boolean(&self, truth: bool) -> Expr {
        let sql = if truth { &self.profile.true_literal } else { &self.profile.false_literal };
        Expr::closed(sql.as_str())
    }

    pub(super) fn date(&self, day: &str) -> Expr {
        self.literal(&self.profile.date_literal, day)
    }

    /// Returns a timestamp such as `2024-01-31 15:00:00`, with an optional fraction.
    pub(super) fn timestamp(&self, time: &str) -> Expr {
        self.literal(&self.profile.timestamp_literal, &micros(time))
    }

    /// Returns the literal of an instant in UTC.
    pub(super) fn timestamp_tz(&self, time: &str) -> Expr {
        self.literal(&self.profile.timestamp_tz_literal, &format!("{}+00:00", micros(time)))
    }

    /// Fills the template of a literal. The host treats literals as atoms.
    fn literal(&self, template: &str, text: &str) -> Expr {
        Expr::closed(fill(template, &[self.text_literal(text)]).sql)
    }

    /// Returns a name as the host writes it, without quotes if that is safe.
    pub(super) fn name(&self, name: &str) -> String {
        let plain = name
            .bytes()
            .enumerate()
            .all(|(i, b)| b == b'_' || b.is_ascii_alphabetic() || (i > 0 && b.is_ascii_digit()));
        let quoting = &self.profile.quoting;
        let is_folded = match quoting.folding {
            crate::dialect::CaseFolding::ToLower => name.bytes().any(|b| b.is_ascii_uppercase()),
            crate::dialect::CaseFolding::ToUpper => name.bytes().any(|b| b.is_ascii_lowercase()),
            crate::dialect::CaseFolding::Keep => false,
        };
        let is_reserved = quoting.reserved.iter().any(|word| word.eq_ignore_ascii_case(name));
        if plain && !is_folded && !is_reserved { name.to_owned() } else { self.quoted_name(name) }
    }

    pub(super) fn quoted_name(&self, name: &str) -> String {
        let quoting = &self.profile.quoting;
        let mut sql = quoting.ident_open.clone();
        for c in name.chars() {
            if quoting.ident_close.starts_with(c) {
                sql.push_str(&quoting.ident_escape);
            } else if c == '\\' && quoting.ident_escape.starts_with('\\') {
                sql.push_str("\\\\");
            } else {
                sql.push(c);
            }
        }
        sql.push_str(&quoting.ident_close);
        sql
    }

    /// Returns `(SELECT … UNION ALL SELECT …) AS t` with the columns `x`, `y`, ….
    pub(super) fn table(&self, rows: &[&[Expr]]) -> String {
        let selects = rows.iter().map(|row| {
            let items = row.iter().zip(COLUMNS).map(|(value, column)| format!("{} AS {column}", value.sql));
            format!("SELECT {}", items.collect::<Vec<_>>().join(", "))
        });
        format!("({}) AS t", selects.collect::<Vec<_>>().join(" UNION ALL "))
    }

    /// Returns the truth value of a condition as one of the strings `true`, `false` and `null`.
    pub(super) fn three_valued(&self, test: &Expr) -> Option<Expr> {
        let not = self.op(Op::Not, std::slice::from_ref(test))?;
        let sql = format!("CASE WHEN {} THEN 'true' WHEN {} THEN 'false' ELSE 'null' END", test.sql, not.sql);
        Some(Expr::closed(sql))
    }

    /// Returns ORDER BY with nulls last in either direction, as the host prints it. `by` is the name of a select item.
    pub(super) fn order(&self, by: &str, is_descending: bool) -> String {
        let direction = if is_descending { "DESC" } else { "ASC" };
        if self.has(Feature::NULLS_FIRST_LAST) {
            return format!("ORDER BY {by} {direction} NULLS LAST");
        }
        let puts_nulls_last = match self.profile.default_null_order {
            NullOrder::NullsLast => true,
            NullOrder::NullsFirst => false,
            NullOrder::NullsHigh => !is_descending,
            NullOrder::NullsLow => is_descending,
        };
        let first = if puts_nulls_last { String::new() } else { format!("CASE WHEN {by} IS NULL THEN 1 ELSE 0 END, ") };
        format!("ORDER BY {first}{by} {direction}")
    }

    /// Returns the clause of a page; `None` if the host does not print the profile's style.
    pub(super) fn page(&self, limit: u64, offset: u64) -> Option<String> {
        match self.profile.limit {
            LimitStyle::LimitOffset if offset == 0 => Some(format!("LIMIT {limit}")),
            LimitStyle::LimitOffset => Some(format!("LIMIT {limit} OFFSET {offset}")),
            LimitStyle::FetchFirst if offset == 0 => Some(format!("FETCH NEXT {limit} ROWS ONLY")),
            LimitStyle::FetchFirst => Some(format!("OFFSET {offset} ROWS FETCH NEXT {limit} ROWS ONLY")),
            LimitStyle::Top | LimitStyle::Rownum => None,
        }
    }
}

fn micros(time: &str) -> String {
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!("{seconds}.{fraction:0<6}")
}

/// Replaces `{0}` … `{9}` and `{*}` with arguments, and `{{` and `}}` with single braces.
pub(super) fn fill(template: &str, args: &[Expr]) -> Expr {
    let mut sql = String::new();
    let mut rest = template.trim();
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        sql.push_str(before);
        let (hole, after) = brace.split_at(brace.char_indices().nth(2).map_or(brace.len(), |(i, _)| i));
        match hole {
            "{{" => sql.push('{'),
            "}}" => sql.push('}'),
            "{*" => sql.push_str(&args.iter().map(|arg| arg.sql.as_str()).collect::<Vec<_>>().join(", ")),
            _ => {
                let arg = hole[1..].parse::<usize>().ok().and_then(|number| args.get(number));
                let is_enclosed =
                    sql.trim_end().ends_with(['(', ',']) && after[1..].trim_start().starts_with([')', ',']);
                match arg {
                    Some(arg) if arg.is_closed || is_enclosed => sql.push_str(&arg.sql),
                    Some(arg) => sql.push_str(&format!("({})", arg.sql)),
                    None => {}
                }
            }
        }
        rest = if matches!(hole, "{{" | "}}") { after } else { &after[1..] };
    }
    sql.push_str(rest);
    Expr::of_template(sql)
}

/// Returns whether the SQL is `name(…)` or `(…)`: its last character closes its first parenthesis.
fn is_call(sql: &str) -> bool {
    let Some(open) = sql.find('(') else { return false };
    let name = &sql[..open];
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_name || ["NOT", "INTERVAL"].iter().any(|word| name.eq_ignore_ascii_case(word)) {
        return false;
    }
    let (mut depth, mut quote) = (0_usize, None);
    for (at, c) in sql.char_indices().skip(open) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth -= 1;
                if depth == 0 {
                    return at == sql.len() - 1;
                }
            }
            _ => {}
        }
    }
    false
}
