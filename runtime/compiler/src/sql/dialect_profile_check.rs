//! Checks the profile of a dialect component.
//!
//! In: an untrusted [`RawProfile`]. Out: a [`DialectProfile`], or every fault with its place. A checked profile has all
//! operators, granularities and types that the printer needs. Its quotes are from a short list of known pairs. Its
//! templates use each of their arguments, so that no filter can disappear. Not here: whether a template has the
//! *meaning* of its operator; conformance cases test that.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use crate::sql::dialect_profile::{
    DialectProfile, LimitStyle, Op, OpOverload, PlaceholderStyle, ProfileError, ProfileFault, Quoting, RawOp,
    RawProfile, RawTime, TimeTemplates,
};
use crate::sql::template::{QUERY_WORDS, Segment, Template, TemplateError};
use crate::types::{Granularity, LogicalType};

const MAX_OPS: usize = 512;
const MAX_RESERVED: usize = 2_000;
const MAX_EXTRA: usize = 64;
const MAX_NAME_BYTES: usize = 64;
const MAX_WORD_BYTES: usize = 128;
const MAX_EXTRA_BYTES: usize = 4 * 1024;

/// Operators that every profile must have for any argument type, each with its number of arguments; `None` for any
/// number.
const REQUIRED_OPS: &[(Op, Option<usize>)] = &[
    (Op::Not, Some(1)),
    (Op::Eq, Some(2)),
    (Op::Ne, Some(2)),
    (Op::Lt, Some(2)),
    (Op::Le, Some(2)),
    (Op::Gt, Some(2)),
    (Op::Ge, Some(2)),
    (Op::NullSafeEq, Some(2)),
    (Op::IsNull, Some(1)),
    (Op::IsNotNull, Some(1)),
    (Op::Contains, Some(2)),
    (Op::StartsWith, Some(2)),
    (Op::EndsWith, Some(2)),
    (Op::Add, Some(2)),
    (Op::Sub, Some(2)),
    (Op::Mul, Some(2)),
    (Op::Div, Some(2)),
    (Op::Negate, Some(1)),
    (Op::Coalesce, None),
    (Op::NullIf, Some(2)),
    (Op::Cast, Some(2)),
    (Op::Collate, Some(1)),
    (Op::Count, Some(0)),
    (Op::Count, Some(1)),
    (Op::CountDistinct, Some(1)),
    (Op::ApproxDistinct, Some(1)),
    (Op::Sum, Some(1)),
    (Op::Avg, Some(1)),
    (Op::Min, Some(1)),
    (Op::Max, Some(1)),
];

/// The types for which a profile needs conversions to local time.
const ZONED_TYPES: [LogicalType; 2] = [LogicalType::TimestampTz, LogicalType::Timestamp];

/// Types that a profile may leave out. They then have the name of the string type.
const OPTIONAL_TYPES: [LogicalType; 3] = [LogicalType::Geo, LogicalType::Binary, LogicalType::Unknown];

/// The known quotes of names: the opening one, the closing one, and the escape of the closing one.
const NAME_QUOTES: &[(&str, &str, &str)] =
    &[("\"", "\"", "\"\""), ("\"", "\"", "\\\""), ("`", "`", "``"), ("`", "`", "\\`"), ("[", "]", "]]")];

impl DialectProfile {
    /// Validates a profile as a component returned it.
    ///
    /// # Errors
    /// Returns every fault, in the order of the profile; at least one.
    pub fn check(raw: RawProfile) -> Result<DialectProfile, Vec<ProfileError>> {
        let mut faults = Faults::default();
        if !is_dialect_name(&raw.name) {
            faults.value("name", &raw.name);
        }
        if raw.max_params == 0 && raw.placeholders != PlaceholderStyle::None {
            faults.value("max-params", "0");
        }
        // The printer does not support these styles yet, and a dialect that cannot page would fail at each query.
        if let LimitStyle::Top | LimitStyle::Rownum = raw.limit {
            faults.value("limit", if raw.limit == LimitStyle::Top { "top" } else { "rownum" });
        }
        check_extra(&raw.extra, &mut faults);
        let checked = Checked {
            quoting: check_quoting(raw.quoting.clone(), &mut faults),
            ops: check_ops(&raw.ops, &mut faults),
            times: check_times(&raw.times, &mut faults),
            types: check_types(&raw.types, &mut faults),
            date_literal: literal("date-literal", &raw.date_literal, &mut faults),
            timestamp_literal: literal("timestamp-literal", &raw.timestamp_literal, &mut faults),
            timestamp_tz_literal: literal("timestamp-tz-literal", &raw.timestamp_tz_literal, &mut faults),
            true_literal: atom("true-literal", &raw.true_literal, &mut faults),
            false_literal: atom("false-literal", &raw.false_literal, &mut faults),
            explain: check_explain(&raw.explain, &mut faults),
        };
        if raw.quoting.ident_open == "[" {
            refuse_square_brackets(&raw, &mut faults);
        }
        checked.into_profile(raw, faults)
    }
}

/// The checked parts of a profile. All optional parts are present if no fault was found.
struct Checked {
    quoting: Quoting,
    ops: Vec<Vec<OpOverload>>,
    times: Vec<Option<TimeTemplates>>,
    types: Vec<String>,
    date_literal: Option<Template>,
    timestamp_literal: Option<Template>,
    timestamp_tz_literal: Option<Template>,
    true_literal: Option<Template>,
    false_literal: Option<Template>,
    explain: Option<Template>,
}

impl Checked {
    fn into_profile(self, raw: RawProfile, faults: Faults) -> Result<DialectProfile, Vec<ProfileError>> {
        let digest = digest(&raw);
        let times: Option<Vec<TimeTemplates>> = self.times.into_iter().collect();
        match (
            times,
            self.date_literal,
            self.timestamp_literal,
            self.timestamp_tz_literal,
            self.true_literal,
            self.false_literal,
        ) {
            (
                Some(times),
                Some(date_literal),
                Some(timestamp_literal),
                Some(timestamp_tz_literal),
                Some(true_literal),
                Some(false_literal),
            ) if faults.found.is_empty() => Ok(DialectProfile {
                name: raw.name,
                quoting: self.quoting,
                placeholders: raw.placeholders,
                max_params: raw.max_params,
                limit: raw.limit,
                default_null_order: raw.default_null_order,
                features: raw.features,
                date_literal,
                timestamp_literal,
                timestamp_tz_literal,
                true_literal,
                false_literal,
                explain: self.explain,
                extra: raw.extra,
                digest,
                ops: self.ops,
                times,
                types: self.types,
            }),
            _ => Err(faults.found),
        }
    }
}

/// Returns the digest of everything that a component returned.
fn digest(raw: &RawProfile) -> u64 {
    let digest = Sha256::digest(format!("{raw:?}"));
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

#[derive(Default)]
struct Faults {
    found: Vec<ProfileError>,
}

impl Faults {
    fn add(&mut self, place: impl Into<String>, fault: impl Into<ProfileFault>) {
        self.found.push(ProfileError { place: place.into(), fault: fault.into() });
    }

    /// Reports an invalid value, shortened and printable.
    fn value(&mut self, place: impl Into<String>, value: &str) {
        let shown: String = value.chars().take(40).flat_map(char::escape_debug).collect();
        self.add(place, ProfileFault::Value(shown));
    }

    /// Splits a template into segments, and checks that it uses each of its first `needed` arguments.
    fn template(&mut self, place: &str, sql: &str, holes: Option<u8>, needed: u8) -> Option<Template> {
        match Template::parse(sql, holes) {
            Ok(template) => match (0..needed).find(|hole| !template.uses(*hole)) {
                None => Some(template),
                Some(hole) => {
                    self.add(place, TemplateError::UnusedHole { hole });
                    None
                }
            },
            Err(error) => {
                self.add(place, error);
                None
            }
        }
    }
}

fn is_dialect_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= MAX_NAME_BYTES
        && bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

fn is_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= MAX_WORD_BYTES
        && bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn check_extra(extra: &[(String, String)], faults: &mut Faults) {
    if extra.len() > MAX_EXTRA {
        faults.add("extra", ProfileFault::TooMany { found: extra.len(), limit: MAX_EXTRA });
    }
    for (key, value) in extra.iter().take(MAX_EXTRA) {
        if key.len() + value.len() > MAX_EXTRA_BYTES {
            faults.add("extra", ProfileFault::TooLong(MAX_EXTRA_BYTES));
        }
    }
}

fn check_quoting(mut quoting: Quoting, faults: &mut Faults) -> Quoting {
    let pair = (quoting.ident_open.as_str(), quoting.ident_close.as_str(), quoting.ident_escape.as_str());
    if !NAME_QUOTES.contains(&pair) {
        let known_pair = NAME_QUOTES.iter().any(|(open, close, _)| (*open, *close) == (pair.0, pair.1));
        let place = if known_pair { "quoting.ident-escape" } else { "quoting.ident-open" };
        faults.value(place, if known_pair { pair.2 } else { pair.0 });
    }
    if quoting.string_quote != "'" {
        faults.value("quoting.string-quote", &quoting.string_quote);
    }
    // `E'…'` always reads backslashes as escapes. A profile that denies this is wrong about the end of its strings.
    let prefix_is_sound = match quoting.string_prefix.as_str() {
        "" | "N" => true,
        "E" => quoting.string_escape_backslash,
        _ => false,
    };
    if !prefix_is_sound {
        faults.value("quoting.string-prefix", &quoting.string_prefix);
    }
    // `\'` would end the string in an engine that reads backslashes as ordinary characters. `\u0027` never ends it.
    let escape_is_sound = match quoting.string_escape.as_str() {
        "''" => true,
        "\\u0027" => quoting.string_escape_backslash,
        _ => false,
    };
    if !escape_is_sound {
        faults.value("quoting.string-escape", &quoting.string_escape);
    }
    if !(16..=65_535).contains(&quoting.max_ident_bytes) {
        faults.value("quoting.max-ident-bytes", &quoting.max_ident_bytes.to_string());
    }
    if quoting.reserved.len() > MAX_RESERVED {
        faults.add("quoting.reserved", ProfileFault::TooMany { found: quoting.reserved.len(), limit: MAX_RESERVED });
        quoting.reserved.truncate(MAX_RESERVED);
    }
    for word in quoting.reserved.iter().filter(|w| !is_word(w)) {
        faults.value("quoting.reserved", word);
    }
    for word in &mut quoting.reserved {
        word.make_ascii_uppercase();
    }
    quoting.reserved.sort_unstable();
    quoting.reserved.dedup();
    quoting
}

fn op_place(op: &RawOp) -> String {
    let mut place = format!("ops.{}", op.op.name());
    if let Some(name) = op.name.as_deref().filter(|n| is_word(n)) {
        place.push('.');
        place.push_str(name);
    }
    if let Some(arity) = op.arity {
        place.push_str(&format!(".{arity}"));
    }
    if let Some(ty) = op.ty {
        place.push('.');
        place.push_str(type_word(ty));
    }
    place
}

fn check_ops(raw: &[RawOp], faults: &mut Faults) -> Vec<Vec<OpOverload>> {
    if raw.len() > MAX_OPS {
        faults.add("ops", ProfileFault::TooMany { found: raw.len(), limit: MAX_OPS });
    }
    let mut ops: Vec<Vec<OpOverload>> = vec![Vec::new(); Op::ALL.len()];
    let mut seen = HashSet::new();
    for op in raw.iter().take(MAX_OPS) {
        let place = op_place(op);
        if !seen.insert((op.op, op.name.as_deref(), op.arity, op.ty)) {
            faults.add(place, ProfileFault::Duplicate);
        } else if let Some(overload) = check_op(op, &place, faults) {
            ops[op.op as usize].push(overload);
        }
    }
    let missing = REQUIRED_OPS.iter().filter(|(op, arity)| {
        // No overload takes `usize::MAX` arguments, so only a template for any number of arguments is found.
        !has_template(&ops, *op, arity.unwrap_or(usize::MAX), None) && !is_faulty(faults, *op)
    });
    let missing: Vec<String> = missing
        .map(|(op, arity)| match arity {
            Some(arity) if *op == Op::Count => format!("ops.{}.{arity}", op.name()),
            _ => format!("ops.{}", op.name()),
        })
        .collect();
    for place in missing {
        faults.add(place, ProfileFault::Missing);
    }
    // The profile of an engine without time zones lacks the operator. Offsets are then added to the times.
    let has_zones = raw.iter().any(|op| op.op == Op::ToTimeZone);
    for ty in ZONED_TYPES.into_iter().filter(|_| has_zones) {
        if !has_template(&ops, Op::ToTimeZone, 2, Some(ty)) && !is_faulty(faults, Op::ToTimeZone) {
            faults.add(format!("ops.to-time-zone.{}", type_word(ty)), ProfileFault::Missing);
        }
    }
    ops
}

/// Returns whether a fault of this operator was reported, so that it is not reported as missing as well.
fn is_faulty(faults: &Faults, op: Op) -> bool {
    faults.found.iter().any(|e| {
        e.place
            .strip_prefix("ops.")
            .and_then(|p| p.strip_prefix(op.name()))
            .is_some_and(|rest| e.fault != ProfileFault::Missing && (rest.is_empty() || rest.starts_with('.')))
    })
}

fn has_template(ops: &[Vec<OpOverload>], op: Op, arity: usize, ty: Option<LogicalType>) -> bool {
    ops[op as usize].iter().any(|o| o.arity.is_none_or(|a| a as usize == arity) && (o.ty.is_none() || o.ty == ty))
}

fn check_op(op: &RawOp, place: &str, faults: &mut Faults) -> Option<OpOverload> {
    match (op.op, op.name.as_deref()) {
        (Op::Call, Some(name)) if is_word(name) => {}
        (Op::Call, None) => {
            faults.add(format!("{place}.name"), ProfileFault::Missing);
            return None;
        }
        (_, None) => {}
        (_, Some(name)) => {
            faults.value(format!("{place}.name"), name);
            return None;
        }
    }
    let holes = match (op.op.arity(), op.arity) {
        (Some(fixed), None) => Some(fixed),
        (Some(fixed), Some(arity)) if u32::from(fixed) == arity => Some(fixed),
        (None, None) => None,
        (None, Some(arity @ 0..=10)) => Some(arity as u8),
        (_, Some(arity)) => {
            faults.value(format!("{place}.arity"), &arity.to_string());
            return None;
        }
    };
    let needed = match (op.op, holes) {
        // A cast for one type may name the type itself, or compare instead of casting.
        (Op::Cast, _) => 1,
        (_, Some(holes)) => holes,
        // A template for any number of arguments uses `{*}`, the only hole that prints all of them.
        (_, None) => 0,
    };
    if op.op == Op::Literal {
        if op.ty != Some(LogicalType::Decimal) {
            faults.value(place, &op.sql);
            return None;
        }
        let template = literal(place, &op.sql, faults)?;
        return Some(OpOverload { name: None, arity: op.arity, ty: op.ty, template });
    }
    let template = faults.template(place, &op.sql, holes, needed)?;
    let prints_all = template.segments.contains(&Segment::AllArguments);
    if holes.is_none() && !prints_all {
        faults.add(place, TemplateError::AllArguments { at: 0 });
        return None;
    }
    Some(OpOverload { name: op.name.clone(), arity: op.arity, ty: op.ty, template })
}

fn check_times(raw: &[RawTime], faults: &mut Faults) -> Vec<Option<TimeTemplates>> {
    let mut times: Vec<Option<TimeTemplates>> = vec![None; Granularity::ALL.len()];
    let mut seen = HashSet::new();
    for time in raw.iter().take(2 * Granularity::ALL.len()) {
        if seen.insert(time.granularity) {
            times[time.granularity as usize] = check_time(time, faults);
        } else {
            faults.add(format!("times.{}", time.granularity), ProfileFault::Duplicate);
        }
    }
    for granularity in Granularity::ALL.into_iter().filter(|g| !seen.contains(g)) {
        faults.add(format!("times.{granularity}"), ProfileFault::Missing);
    }
    times
}

fn check_time(raw: &RawTime, faults: &mut Faults) -> Option<TimeTemplates> {
    let place = |part: &str| format!("times.{}.{part}", raw.granularity);
    if raw.trunc_instant.is_some() && !raw.granularity.is_sub_day() {
        faults.value(place("trunc-instant"), raw.granularity.as_str());
    }
    // Read every part before the first `?`, so that all faults are reported at once.
    let trunc = faults.template(&place("trunc"), &raw.trunc, Some(1), 1);
    let trunc_instant = raw.trunc_instant.as_ref().map(|t| faults.template(&place("trunc-instant"), t, Some(2), 1));
    let add = faults.template(&place("add"), &raw.add, Some(2), 2);
    let diff = faults.template(&place("diff"), &raw.diff, Some(2), 2);
    let part = faults.template(&place("part"), &raw.part, Some(1), 1);
    let label = raw.label.as_ref().map(|t| faults.template(&place("label"), t, Some(1), 1));
    Some(TimeTemplates {
        trunc: trunc?,
        trunc_instant: lift(trunc_instant)?,
        add: add?,
        diff: diff?,
        part: part?,
        label: lift(label)?,
    })
}

/// Flattens an optional template. The inner `None` is a refused template, the outer one a template that is not given.
fn lift(checked: Option<Option<Template>>) -> Option<Option<Template>> {
    match checked {
        None => Some(None),
        Some(found) => found.map(Some),
    }
}

fn check_types(raw: &[(LogicalType, String)], faults: &mut Faults) -> Vec<String> {
    let mut types = vec![String::new(); LogicalType::ALL.len()];
    let mut seen = HashSet::new();
    for (ty, name) in raw.iter().take(2 * LogicalType::ALL.len()) {
        let place = format!("types.{}", type_word(*ty));
        if !seen.insert(*ty) {
            faults.add(place, ProfileFault::Duplicate);
        } else if is_type_name(name) {
            types[*ty as usize].clone_from(name);
        } else {
            faults.value(place, name);
        }
    }
    for ty in LogicalType::ALL.into_iter().filter(|t| !seen.contains(t)) {
        if OPTIONAL_TYPES.contains(&ty) {
            types[ty as usize] = types[LogicalType::Text as usize].clone();
        } else {
            faults.add(format!("types.{}", type_word(ty)), ProfileFault::Missing);
        }
    }
    types
}

/// Returns whether a string is a type's name: words with arguments, such as `DOUBLE PRECISION`, `DECIMAL(38, 6)` or
/// `Nullable(DateTime64(6, 'UTC'))`.
fn is_type_name(name: &str) -> bool {
    name.len() <= MAX_WORD_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_ (),'".contains(&b))
        && Template::parse(name, Some(0)).is_ok()
}

/// Checks the template of a literal: `DATE {0}`, a call or a cast, which needs no parentheses as an operand.
fn literal(place: &str, sql: &str, faults: &mut Faults) -> Option<Template> {
    let mut template = faults.template(place, sql, Some(1), 1)?;
    let is_typed = matches!(
        template.segments.as_slice(),
        [Segment::Text(ty), Segment::Hole(0)] if ty.split(' ').all(|w| w.is_empty() || is_word(w)) && !ty.trim().eq_ignore_ascii_case("not")
    );
    if !(template.is_closed || is_typed) {
        faults.value(place, sql);
        return None;
    }
    template.is_closed = true;
    Some(template)
}

fn atom(place: &str, sql: &str, faults: &mut Faults) -> Option<Template> {
    let template = faults.template(place, sql, Some(0), 0)?;
    if !template.is_closed {
        faults.value(place, sql);
        return None;
    }
    Some(template)
}

/// Checks the template `EXPLAIN … {0}`: its words must neither run the statement nor write anything.
fn check_explain(sql: &str, faults: &mut Faults) -> Option<Template> {
    if sql.is_empty() {
        return None;
    }
    let head = sql.strip_suffix(" {0}").filter(|head| head.len() <= MAX_WORD_BYTES);
    let is_sound = head.is_some_and(|head| {
        let mut words = head
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .filter(|w| !w.is_empty())
            .map(str::to_ascii_uppercase);
        head.bytes().all(|b| b.is_ascii_alphanumeric() || b"_ (),=".contains(&b))
            && words.next().as_deref() == Some("EXPLAIN")
            && words.all(|w| !QUERY_WORDS.contains(&w.as_str()) && w != "ANALYZE" && w != "ANALYSE")
    });
    match head {
        Some(head) if is_sound => Some(Template {
            segments: vec![Segment::Text(format!("{head} ").into()), Segment::Hole(0)],
            is_closed: false,
        }),
        _ => {
            faults.value("explain", sql);
            None
        }
    }
}

/// Refuses `[` in templates if `[…]` quotes names, because the bracket would hide the text after it.
fn refuse_square_brackets(raw: &RawProfile, faults: &mut Faults) {
    let ops = raw.ops.iter().map(|op| (op_place(op), op.sql.as_str()));
    let times = raw.times.iter().flat_map(|t| {
        let place = format!("times.{}", t.granularity);
        [Some(&t.trunc), t.trunc_instant.as_ref(), Some(&t.add), Some(&t.diff), Some(&t.part), t.label.as_ref()]
            .into_iter()
            .flatten()
            .map(move |sql| (place.clone(), sql.as_str()))
    });
    let literals = [
        ("date-literal", &raw.date_literal),
        ("timestamp-literal", &raw.timestamp_literal),
        ("timestamp-tz-literal", &raw.timestamp_tz_literal),
    ];
    let literals = literals.into_iter().map(|(place, sql)| (place.to_owned(), sql.as_str()));
    let found: Vec<String> =
        ops.chain(times).chain(literals).filter(|(_, sql)| sql.contains(['[', ']'])).map(|(place, _)| place).collect();
    for place in found {
        faults.value(place, "[");
    }
}

/// Returns the kebab-case name of a type in the contract.
fn type_word(ty: LogicalType) -> &'static str {
    match ty {
        LogicalType::Text => "text",
        LogicalType::Integer => "integer",
        LogicalType::Decimal => "decimal",
        LogicalType::Float => "float",
        LogicalType::Boolean => "boolean",
        LogicalType::Date => "date",
        LogicalType::Timestamp => "timestamp",
        LogicalType::TimestampTz => "timestamp-tz",
        LogicalType::Geo => "geo",
        LogicalType::Binary => "binary",
        LogicalType::Unknown => "unknown",
    }
}
