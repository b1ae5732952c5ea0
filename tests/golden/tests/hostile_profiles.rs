//! Tests profiles that differ from the DuckDB profile by one mistake. Each must be refused with the place of the
//! mistake and the reason.

use terrane_compiler::sql::dialect_profile::{
    DialectProfile, Op, PlaceholderStyle, ProfileError, ProfileFault, RawOp, RawProfile,
};
use terrane_compiler::sql::template::TemplateError;
use terrane_compiler::types::{Granularity, LogicalType};
use terrane_golden_tests::duckdb_raw_profile;

fn spoiled(spoil: impl FnOnce(&mut RawProfile)) -> Vec<ProfileError> {
    let mut raw = duckdb_raw_profile();
    spoil(&mut raw);
    DialectProfile::check(raw).expect_err("the profile should be refused")
}

fn raw_op(op: Op, sql: &str) -> RawOp {
    RawOp { op, name: None, arity: None, ty: None, sql: sql.to_owned() }
}

/// Replaces the only template of an operator.
fn set(raw: &mut RawProfile, op: Op, sql: &str) {
    raw.ops.retain(|o| o.op != op);
    raw.ops.push(raw_op(op, sql));
}

fn value(text: &str) -> ProfileFault {
    ProfileFault::Value(text.to_owned())
}

type Spoil = Box<dyn FnOnce(&mut RawProfile)>;

#[test]
fn single_profile_fault_is_reported_with_its_place() {
    use ProfileFault::{Duplicate, Missing, Template, TooLong, TooMany};
    let cases: Vec<(Spoil, &str, ProfileFault)> = vec![
        // Operators.
        (Box::new(|p| p.ops.retain(|o| o.op != Op::Contains)), "ops.contains", Missing),
        (Box::new(|p| p.ops.retain(|o| o.arity != Some(0))), "ops.count.0", Missing),
        (Box::new(|p| p.ops.retain(|o| o.ty != Some(LogicalType::Timestamp))), "ops.to-time-zone.timestamp", Missing),
        (
            Box::new(|p| p.ops.iter_mut().filter(|o| o.op == Op::Sum).for_each(|o| o.ty = Some(LogicalType::Text))),
            "ops.sum",
            Missing,
        ),
        (
            Box::new(|p| {
                p.ops.retain(|o| o.op != Op::Coalesce);
                p.ops.push(RawOp { arity: Some(2), ..raw_op(Op::Coalesce, "COALESCE({0}, {1})") });
            }),
            "ops.coalesce",
            Missing,
        ),
        (Box::new(|p| p.ops.push(raw_op(Op::Eq, "{0} = {1}"))), "ops.eq", Duplicate),
        (
            Box::new(|p| p.ops.push(RawOp { arity: Some(3), ..raw_op(Op::Eq, "{0} = {1}") })),
            "ops.eq.3.arity",
            value("3"),
        ),
        (
            Box::new(|p| p.ops.push(RawOp { name: Some("f".to_owned()), ..raw_op(Op::Eq, "{0} = {1}") })),
            "ops.eq.f.name",
            value("f"),
        ),
        (Box::new(|p| p.ops.push(raw_op(Op::Call, "f({*})"))), "ops.call.name", Missing),
        (
            Box::new(|p| p.ops.push(RawOp { name: Some("f(".to_owned()), ..raw_op(Op::Call, "f({*})") })),
            "ops.call.name",
            value("f("),
        ),
        // A comparison that is always true, or that omits an argument.
        (Box::new(|p| set(p, Op::Eq, "TRUE")), "ops.eq", Template(TemplateError::UnusedHole { hole: 0 })),
        (
            Box::new(|p| set(p, Op::Contains, "{0} IS NOT NULL")),
            "ops.contains",
            Template(TemplateError::UnusedHole { hole: 1 }),
        ),
        (Box::new(|p| set(p, Op::Coalesce, "NULL")), "ops.coalesce", Template(TemplateError::AllArguments { at: 0 })),
        (
            Box::new(|p| set(p, Op::Sum, "(SELECT sum(x) FROM salaries WHERE {0} = 1)")),
            "ops.sum",
            Template(TemplateError::Word { at: 1, word: "SELECT".to_owned() }),
        ),
        (
            Box::new(|p| {
                let op = raw_op(Op::StdDev, "f({0})");
                p.ops.extend((0..600).map(|n| RawOp {
                    op: Op::Call,
                    name: Some(format!("f{n}")),
                    arity: Some(1),
                    ..op.clone()
                }));
            }),
            "ops",
            TooMany { found: 600 + duckdb_raw_profile().ops.len(), limit: 512 },
        ),
        // Times.
        (Box::new(|p| p.times.retain(|t| t.granularity != Granularity::Week)), "times.week", Missing),
        (
            Box::new(|p| {
                let again = p.times[0].clone();
                p.times.push(again);
            }),
            "times.second",
            Duplicate,
        ),
        (
            Box::new(|p| p.times[3].trunc_instant = Some("{0} - {1}".to_owned())),
            "times.day.trunc-instant",
            value("day"),
        ),
        (
            Box::new(|p| p.times[4].add = "{0}".to_owned()),
            "times.week.add",
            Template(TemplateError::UnusedHole { hole: 1 }),
        ),
        (
            Box::new(|p| p.times[4].trunc = "date_trunc('{0}', 1)".to_owned()),
            "times.week.trunc",
            Template(TemplateError::HoleInQuotes { at: 12 }),
        ),
        // Types.
        (Box::new(|p| p.types.retain(|(ty, _)| *ty != LogicalType::Float)), "types.float", Missing),
        (Box::new(|p| p.types.push((LogicalType::Text, "TEXT".to_owned()))), "types.text", Duplicate),
        (
            Box::new(|p| p.types.push((LogicalType::Unknown, "INT) OR (1".to_owned()))),
            "types.unknown",
            value("INT) OR (1"),
        ),
        (Box::new(|p| p.types.push((LogicalType::Unknown, "INT -- ".to_owned()))), "types.unknown", value("INT -- ")),
        // Quotes.
        (Box::new(|p| p.quoting.ident_open = String::new()), "quoting.ident-open", value("")),
        (Box::new(|p| p.quoting.ident_open = "<".to_owned()), "quoting.ident-open", value("<")),
        (Box::new(|p| p.quoting.ident_close = "]".to_owned()), "quoting.ident-open", value("\\\"")),
        (Box::new(|p| p.quoting.ident_escape = "\"".to_owned()), "quoting.ident-escape", value("\\\"")),
        (Box::new(|p| p.quoting.ident_escape = String::new()), "quoting.ident-escape", value("")),
        (Box::new(|p| p.quoting.string_quote = "\"".to_owned()), "quoting.string-quote", value("\\\"")),
        (Box::new(|p| p.quoting.string_prefix = "E".to_owned()), "quoting.string-prefix", value("E")),
        (Box::new(|p| p.quoting.string_prefix = "(SELECT ".to_owned()), "quoting.string-prefix", value("(SELECT ")),
        (Box::new(|p| p.quoting.string_escape = "\\'".to_owned()), "quoting.string-escape", value("\\\\\\'")),
        (Box::new(|p| p.quoting.string_escape = "\\u0027".to_owned()), "quoting.string-escape", value("\\\\u0027")),
        (Box::new(|p| p.quoting.string_escape = String::new()), "quoting.string-escape", value("")),
        (Box::new(|p| p.quoting.max_ident_bytes = 0), "quoting.max-ident-bytes", value("0")),
        (Box::new(|p| p.quoting.reserved.push("a b".to_owned())), "quoting.reserved", value("a b")),
        (
            Box::new(|p| p.quoting.reserved = vec!["x".to_owned(); 2_001]),
            "quoting.reserved",
            TooMany { found: 2_001, limit: 2_000 },
        ),
        // Literals.
        (Box::new(|p| p.date_literal = "{0} + 1".to_owned()), "date-literal", value("{0} + 1")),
        (Box::new(|p| p.date_literal = "NOT {0}".to_owned()), "date-literal", value("NOT {0}")),
        (
            Box::new(|p| p.timestamp_tz_literal = "now()".to_owned()),
            "timestamp-tz-literal",
            Template(TemplateError::UnusedHole { hole: 0 }),
        ),
        (Box::new(|p| p.true_literal = "1 = 1".to_owned()), "true-literal", value("1 = 1")),
        (Box::new(|p| p.false_literal = String::new()), "false-literal", Template(TemplateError::Empty)),
        // The explain statement.
        (Box::new(|p| p.explain = "EXPLAIN ANALYZE {0}".to_owned()), "explain", value("EXPLAIN ANALYZE {0}")),
        (Box::new(|p| p.explain = "CREATE TABLE t AS {0}".to_owned()), "explain", value("CREATE TABLE t AS {0}")),
        (Box::new(|p| p.explain = "EXPLAIN PLAN INTO t {0}".to_owned()), "explain", value("EXPLAIN PLAN INTO t {0}")),
        (Box::new(|p| p.explain = "EXPLAIN SELECT 1; {0}".to_owned()), "explain", value("EXPLAIN SELECT 1; {0}")),
        // Other fields.
        (Box::new(|p| p.name = "../duckdb".to_owned()), "name", value("../duckdb")),
        (Box::new(|p| p.name = String::new()), "name", value("")),
        (Box::new(|p| p.max_params = 0), "max-params", value("0")),
        (Box::new(|p| p.extra = vec![(String::new(), String::new()); 65]), "extra", TooMany { found: 65, limit: 64 }),
        (Box::new(|p| p.extra = vec![("k".to_owned(), "v".repeat(4_096))]), "extra", TooLong(4_096)),
    ];
    for (spoil, place, fault) in cases {
        let found = spoiled(spoil);
        assert_eq!(found, [ProfileError { place: place.to_owned(), fault }]);
    }
}

#[test]
fn every_fault_is_reported_at_once() {
    let found = spoiled(|p| {
        p.ops.clear();
        p.times.clear();
        p.types.clear();
    });
    let places: Vec<&str> = found.iter().map(|e| e.place.as_str()).collect();
    assert!(places.contains(&"ops.null-safe-eq") && places.contains(&"times.year") && places.contains(&"types.date"));
    assert_eq!(places.len(), 30 + 8 + 8, "{places:?}");
}

/// A dialect that quotes names with `[…]` must not use these brackets in its templates.
#[test]
fn brackets_are_either_quotes_or_syntax() {
    let found = spoiled(|p| {
        (p.quoting.ident_open, p.quoting.ident_close) = ("[".to_owned(), "]".to_owned());
        p.quoting.ident_escape = "]]".to_owned();
        set(p, Op::Contains, "list_contains([{0}], {1})");
    });
    assert_eq!(found, [ProfileError { place: "ops.contains".to_owned(), fault: value("[") }]);
}

#[test]
fn valid_profiles_of_other_warehouses_are_accepted() {
    let mut raw = duckdb_raw_profile();
    raw.name = "other-1".to_owned();
    raw.placeholders = PlaceholderStyle::None;
    raw.max_params = 0;
    (raw.quoting.ident_open, raw.quoting.ident_close) = ("`".to_owned(), "`".to_owned());
    raw.quoting.ident_escape = "\\`".to_owned();
    raw.quoting.string_escape_backslash = true;
    raw.quoting.string_prefix = "E".to_owned();
    raw.date_literal = "toDate({0})".to_owned();
    raw.timestamp_literal = "{0}::TIMESTAMP".to_owned();
    raw.true_literal = "1".to_owned();
    raw.explain = String::new();
    raw.types.push((LogicalType::Unknown, "Nullable(DateTime64(6, 'UTC'))".to_owned()));
    set(&mut raw, Op::Sum, "sum({0})");
    raw.ops.push(RawOp { ty: Some(LogicalType::Boolean), ..raw_op(Op::Cast, "{0} <> 0") });
    raw.ops.push(RawOp { arity: Some(3), ..raw_op(Op::Concat, "{0} || {1} || {2}") });
    raw.ops.push(RawOp { name: Some("md5".to_owned()), ..raw_op(Op::Call, "hex(md5({*}))") });
    let profile = DialectProfile::check(raw).unwrap();
    assert!(profile.explain.is_none());
    assert!(profile.timestamp_literal.is_closed);
    assert!(profile.function("md5", 1, None).is_some() && profile.function("sha", 1, None).is_none());
    let mut written = String::new();
    profile.quoting.write_name(&mut written, "a`b\\");
    assert_eq!(written, "`a\\`b\\\\`");
}
