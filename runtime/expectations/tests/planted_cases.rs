//! Plants several mistakes at random places of expectations, and expects a problem for each, and no other, in one run.
//! A mistake must neither hide another one, nor cause a problem where a broken definition is used.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fmt::Write as _;

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::build;
use terrane_compiler::project::{Inputs, SourceTree, read as read_project};
use terrane_expectations::{check_names, read};

const ROUNDS: u64 = 300;
const CUBES: &str = r#"cubes:
  - name: visits
    sql_table: raw.visits
    joins:
      - {name: countries, relationship: many_to_one, sql: "{CUBE}.country = {countries}.code"}
    measures:
      - {name: count, type: count}
      - {name: broken, type: sum, sql: "{no_such_member}"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: day, type: time, sql: day, primary_time: true}
      - {name: country, type: string, sql: country}
    segments:
      - {name: german, sql: "country = 'de'"}
  - name: countries
    sql_table: raw.countries
    dimensions:
      - {name: code, type: string, sql: code, primary_key: true}
"#;

/// A part of a case: its name in the template, a valid form, and mistakes with a part of their messages.
type CasePart = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// The parts of a case: a valid form of each, and mistakes with a part of their messages. An empty message stands for a
/// form that depends on a broken definition, and is not reported.
const PARTS: [CasePart; 12] = [
    ("NAME", "name: NUMBER", &[("description: a", "has no `name`")]),
    (
        "MEASURE",
        "visits.count",
        &[
            ("visits.cuont", "unknown measure `visits.cuont`"),
            ("visits.german", "is a segment"),
            ("a.b.c.d", "is not a member"),
            ("visits.broken", ""),
        ],
    ),
    (
        "DIMENSION",
        "visits.country",
        &[("visits.contry", "unknown dimension `visits.contry`"), ("[a]", "dimensions[0]")],
    ),
    ("MEMBER", "visits.country", &[("visits.nation", "unknown dimension `visits.nation`"), ("3", "a member")]),
    ("OPERATOR", "equals", &[("eqals", "unknown filter operator `eqals`")]),
    ("NUMBER_VALUE", "1", &[("{a: 1}", "filters[1].or[0].value"), ("one", "`one`")]),
    ("ZONE", "Europe/Berlin", &[("Mars", "unknown time zone `Mars`")]),
    ("LIMIT", "10", &[("-1", "`limit`"), ("many", "`limit`")]),
    ("FIELD", "visits.count", &[("visits.tootal", "`visits.tootal`")]),
    ("DIRECTION", "desc", &[("down", "`down`")]),
    ("SEGMENT", "visits.german", &[("visits.germn", "unknown segment `visits.germn`")]),
    ("RANGE", "\"2024\"", &[("sometime", "`sometime`"), ("{start: \"2024-01-01\", granularity: dya}", "`dya`")]),
];

const CASE: &str = "  - NAME
    rows: []
    query:
      measures: [visits.count, MEASURE]
      dimensions: [DIMENSION]
      filters:
        - {dimension: MEMBER, operator: OPERATOR, value: de}
        - or: [{dimension: visits.id, operator: gt, value: NUMBER_VALUE}, {dimension: visits.id, operator: set}]
      segments: [SEGMENT]
      order_by: [{field: FIELD, direction: DIRECTION}]
      time_range: RANGE
      timezone: ZONE
      limit: LIMIT
";

/// A source of numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn tree(path: &str, text: &str) -> SourceTree {
    SourceTree { files: [(path.into(), text.into())].into_iter().collect() }
}

fn problems(cases: &str) -> Vec<Diagnostic> {
    let mut project = tree("service_project.yml", "name: a\n");
    project.files.extend(tree("cubes/visits.yml", CUBES).files);
    let (definitions, _) = read_project(&project, &Inputs { warehouse: "duckdb".into(), ..Inputs::default() });
    let (model, _) = build(&definitions);
    let (cases, mut problems) = read(&tree("tests/a.yml", cases));
    problems.extend(check_names(&model, &definitions, &cases));
    problems
}

/// Returns a case with some mistakes, and parts of the messages that it causes.
fn planted(number: usize, random: &mut Random) -> (String, Vec<&'static str>) {
    let (mut case, mut expected) = (CASE.to_owned(), Vec::new());
    for (part, valid, mistakes) in PARTS {
        let text = if random.below(4) == 0 {
            let (text, message) = mistakes[random.below(mistakes.len())];
            expected.extend((!message.is_empty()).then_some(message));
            text
        } else {
            valid
        };
        case = case.replacen(part, text, 1);
    }
    (case.replace("name: NUMBER", &format!("name: case_{number}")), expected)
}

#[test]
fn exactly_the_planted_mistakes_are_reported() {
    for round in 1..=ROUNDS {
        let mut random = Random(round.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (mut text, mut expected) = ("tests:\n".to_owned(), Vec::new());
        for number in 0..1 + random.below(3) {
            let (case, messages) = planted(number, &mut random);
            write!(text, "{case}").unwrap();
            expected.extend(messages);
        }
        let mut found: Vec<String> = problems(&text).iter().map(ToString::to_string).collect();
        let report = found.join("\n");
        for message in &expected {
            let at = found.iter().position(|found| found.contains(message));
            let at = at.unwrap_or_else(|| panic!("round {round}: no problem has `{message}`\n{text}\n{report}"));
            found.remove(at);
        }
        assert_eq!(found, Vec::<String>::new(), "round {round}\n{text}\nexpected: {expected:?}");
    }
}

#[test]
fn all_problems_of_a_case_are_reported() {
    for (query, expected) in [
        ("{measures: [visits.cuont], timezone: Mars}", &["`visits.cuont`", "`Mars`"][..]),
        (
            "{measures: [visits.count, visits.cuont], filters: [{dimension: visits.nation, operator: eqals, value: 1}]}",
            &["`eqals`", "`visits.cuont`", "`visits.nation`"],
        ),
        ("{cube: visists, measures: [count], dimensions: [visits.contry]}", &["unknown cube", "`visits.contry`"]),
        ("{measures: [visits.count], colour: red, limt: 3, timezone: Mars}", &["`colour`", "`limt`", "`Mars`"]),
        (
            "{measures: [visits.count], filters: [{dimension: visits.nation, operater: equals}]}",
            &["`operater`", "nation"],
        ),
        (
            "{measures: [visits.count], filters: [{dimension: visits.nation}, {operator: eqals}]}",
            &["filters[0]", "nation", "filters[1]", "eqals"],
        ),
        (
            "{measures: [visits.count], filters: [{or: [{dimension: visits.id, operator: gt, value: a}, {dimension: visits.id, operator: lt, value: b}]}]}",
            &["`a`", "`b`"],
        ),
        (
            "{measures: [visits.count], time_dimensions: [{dimension: visits.dya, granularity: x}]}",
            &["`x`", "visits.dya"],
        ),
    ] {
        let mut found: Vec<String> = problems(&format!("tests:\n  - name: a\n    rows: []\n    query: {query}\n"))
            .iter()
            .map(ToString::to_string)
            .collect();
        let report = found.join("\n");
        for message in expected {
            let at = found.iter().position(|found| found.contains(message));
            found.remove(at.unwrap_or_else(|| panic!("no problem has `{message}`\n{query}\n{report}")));
        }
        assert_eq!(found, Vec::<String>::new(), "{query}");
    }
}
