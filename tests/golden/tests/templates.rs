//! Tests that valid templates keep their text, and that harmful templates are refused for the expected reason.

use terrane_compiler::sql::template::{MAX_TEMPLATE_BYTES, Segment, Template, TemplateError};

fn parse(text: &str) -> Result<Template, TemplateError> {
    Template::parse(text, Some(2))
}

#[test]
fn valid_templates_round_trip_and_report_closedness() {
    for (text, is_closed) in [
        ("{0} = {1}", false),
        ("{0}", true),
        ("TRUE", true),
        ("1", true),
        ("''", true),
        ("(1 = 1)", true),
        ("(1) = (1)", false),
        ("f({0})", true),
        ("s.f({0})", true),
        ("f({0}) + 1", false),
        ("f({0}) + g({1})", false),
        ("NOT {0}", false),
        ("NOT ({0})", false),
        ("INTERVAL ({0}) MONTH", false),
        ("- {0}", false),
        ("count(*)", true),
        ("count(DISTINCT {0})", true),
        ("{0} / NULLIF({1}, 0)", false),
        ("CAST({0} AS {1})", true),
        ("CAST({0} AS DECIMAL(38, 6))", true),
        ("{0}::{1}", true),
        ("{0}::DECIMAL(38, 6)", true),
        ("f({0})::DATE", true),
        ("{0} + {1}::DATE", false),
        ("{0} IS NOT DISTINCT FROM {1}", false),
        ("EXTRACT(week FROM {0})", true),
        ("({0} AT TIME ZONE 'UTC') AT TIME ZONE {1}", false),
        ("{0} - ({1} - date_trunc('hour', {1}))", false),
        ("{0} + INTERVAL ({1}) MONTH", false),
        ("CASE WHEN {0} THEN 1 ELSE 0 END", true),
        ("CASE WHEN {0} THEN 1 END + CASE WHEN {1} THEN 1 END", false),
        ("CASE WHEN CASE WHEN {0} THEN {1} END THEN 1 END", true),
        ("sum({0}) FILTER (WHERE {1})", false),
        ("percentile_cont({1}) WITHIN GROUP (ORDER BY {0})", false),
        ("APPROX_QUANTILES({0}, 100)[OFFSET(50)]", false),
        ("to_char({0}, 'IYYY-\"W\"IW')", true),
        ("strpos({0}, 'it''s') > 0", false),
        ("CAST({0} AS TIMESTAMP WITH TIME ZONE)", true),
        ("{0} COLLATE \"C\"", false),
        ("{0} <=> {1}", false),
        ("{0} || {1}", false),
        ("{0}[1]", false),
        ("TRUNCATE({0}, 2)", true),
        ("  f({0})  ", true),
    ] {
        let template = parse(text).unwrap_or_else(|e| panic!("`{text}` {e}"));
        assert_eq!(template.is_closed, is_closed, "{text}");
        let printed: String = template
            .segments
            .iter()
            .map(|s| match s {
                Segment::Text(t) => t.to_string(),
                Segment::Hole(h) => format!("{{{h}}}"),
                Segment::AllArguments => "{*}".to_owned(),
            })
            .collect();
        assert_eq!(printed, text.trim());
    }
}

#[test]
fn all_arguments_and_escapes_are_segments() {
    let template = Template::parse("f({*}, {{}})", None).unwrap();
    assert_eq!(template.segments, [Segment::Text("f(".into()), Segment::AllArguments, Segment::Text(", {})".into())]);
}

#[test]
fn hostile_templates_are_refused_for_the_right_reason() {
    use TemplateError as E;
    let word = |at, word: &str| E::Word { at, word: word.to_owned() };
    for (text, expected) in [
        ("", E::Empty),
        ("   ", E::Empty),
        ("{0}; DROP TABLE t", E::Character { at: 3, found: ';' }),
        ("concat({0}, ';')", E::Character { at: 13, found: ';' }),
        ("{0} LIKE '\\'", E::Character { at: 10, found: '\\' }),
        ("{0}\n", E::Character { at: 3, found: '\n' }),
        ("{0}\0", E::Character { at: 3, found: '\0' }),
        ("{0} \u{202e}", E::Character { at: 4, found: '\u{202e}' }),
        ("{0} \u{2212} 1", E::Character { at: 4, found: '\u{2212}' }),
        ("{0} -- x", E::Comment { at: 4 }),
        ("{0} /* x */", E::Comment { at: 4 }),
        ("{0} */ x", E::Comment { at: 4 }),
        ("'--' || {0}", E::Comment { at: 1 }),
        ("{0} # x", E::Character { at: 4, found: '#' }),
        ("$${0}$$", E::Character { at: 0, found: '$' }),
        ("$a${0}$a$", E::Character { at: 0, found: '$' }),
        ("{0} = $1", E::Character { at: 6, found: '$' }),
        ("{0} = ?", E::Character { at: 6, found: '?' }),
        ("{0} = :name", E::Character { at: 6, found: ':' }),
        ("@x := {0}", E::Character { at: 0, found: '@' }),
        ("f('{0}')", E::HoleInQuotes { at: 3 }),
        ("\"{0}\"", E::HoleInQuotes { at: 1 }),
        ("`{0}`", E::HoleInQuotes { at: 1 }),
        ("f('{{x}}')", E::HoleInQuotes { at: 3 }),
        ("f('x)", E::UnclosedQuote { at: 2, quote: '\'' }),
        ("f(\"x)", E::UnclosedQuote { at: 2, quote: '"' }),
        ("f('it''s)", E::UnclosedQuote { at: 2, quote: '\'' }),
        ("q'[' || {0} || ']'", E::Prefix { at: 0 }),
        ("U&'d!0061' || {0}", E::Prefix { at: 0 }),
        ("E'a'", E::Prefix { at: 0 }),
        ("f({0}", E::Unbalanced { at: 1, bracket: '(' }),
        ("{0})", E::Unbalanced { at: 3, bracket: ')' }),
        ("f({0}]", E::Unbalanced { at: 5, bracket: ']' }),
        (") OR ({0}", E::Unbalanced { at: 0, bracket: ')' }),
        ("{{f({0})", E::Unbalanced { at: 0, bracket: '{' }),
        ("{2} = {0}", E::HoleOutOfRange { hole: 2, allowed: 2 }),
        ("{10}", E::NotAHole { at: 0 }),
        ("{a}", E::NotAHole { at: 0 }),
        ("{", E::NotAHole { at: 0 }),
        ("{0", E::NotAHole { at: 0 }),
        ("f({*})", E::AllArguments { at: 2 }),
        ("x{0}", E::FusedHole { at: 1 }),
        ("{0}x", E::FusedHole { at: 0 }),
        ("'a'{0}", E::FusedHole { at: 3 }),
        ("{0}'a'", E::FusedHole { at: 0 }),
        ("{0} 'a'", E::FusedHole { at: 0 }),
        ("{0}{1}", E::FusedHole { at: 0 }),
        ("{0} {1}", E::FusedHole { at: 0 }),
        ("{0}({1})", E::FusedHole { at: 0 }),
        ("{0} ({1})", E::FusedHole { at: 0 }),
        ("-{0}", E::FusedHole { at: 1 }),
        ("1/{0}", E::FusedHole { at: 2 }),
        ("t.{0}", E::FusedHole { at: 2 }),
        ("{0}.x", E::FusedHole { at: 0 }),
        ("{{{0}}}", E::FusedHole { at: 2 }),
        ("{0}, password", E::Comma { at: 3 }),
        ("(SELECT max(x) FROM t)", word(1, "SELECT")),
        ("(FROM t)", word(1, "FROM")),
        ("f(1, FROM t)", word(5, "FROM")),
        ("(table t)", word(1, "table")),
        ("(WITH x AS (FROM t) FROM x)", word(1, "WITH")),
        ("{0} UNION ALL {1}", word(4, "UNION")),
        ("{0} FROM t", word(4, "FROM")),
        ("{0} AS x", word(4, "AS")),
        ("{0} WHERE {1}", word(4, "WHERE")),
        ("{0} GROUP BY {1}", word(4, "GROUP")),
        ("{0} INTO {1}", word(4, "INTO")),
        ("{0} limit 1", word(4, "limit")),
        ("(SELECT.5)", word(1, "SELECT")),
        ("1UNION", E::Character { at: 1, found: 'U' }),
    ] {
        assert_eq!(parse(text).unwrap_err(), expected, "{text}");
    }
    let long = "1".repeat(MAX_TEMPLATE_BYTES + 1);
    assert_eq!(parse(&long).unwrap_err(), E::TooLong { bytes: MAX_TEMPLATE_BYTES + 1 });
    assert_eq!(Template::parse("f({0}) || {*}", None).unwrap_err(), E::AllArguments { at: 10 });
}

#[test]
fn parsing_never_panics() {
    // Tries every combination of four characters of a dangerous alphabet.
    let alphabet = ["{", "}", "0", "*", "'", "\"", "(", ")", "[", ",", "-", " ", "a", ":", "é"];
    for a in alphabet {
        for b in alphabet {
            for c in alphabet {
                for d in alphabet {
                    let _ = Template::parse(&format!("{a}{b}{c}{d}"), None);
                }
            }
        }
    }
}
