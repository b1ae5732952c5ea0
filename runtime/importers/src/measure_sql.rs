//! Differences between the SQL of measures in other tools and in a project.
//!
//! In: the translated SQL of a measure, and the members that it reads. Out: the findings for values that may differ in
//! a project.

use std::collections::BTreeSet;

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::{Diagnostic, Span};

use crate::draft::Reference;
use crate::finding::changed;

/// Reports the SQL of a measure of type `number` that may divide integers.
pub(crate) fn report_division(what: &str, sql: &str, span: Span, findings: &mut Vec<Diagnostic>) {
    if may_divide_integers(sql) {
        let what = format!("{what} divides, and the project divides exactly: 3 / 2 is 1.5");
        let cure = "If the warehouse divides integers and you rely on it, write floor(a / b).";
        findings.push(changed(span, what, cure));
    }
}

/// A percentile in the SQL of a measure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Percentile<'s> {
    /// The share in decimal digits.
    pub(crate) share: &'s str,
    pub(crate) argument: &'s str,
}

/// Makes a measure a `median` or a `percentile`.
pub(crate) fn set_percentile(found: &Percentile<'_>, yaml: &mut Yaml) {
    match found.share.trim_end_matches('0') {
        "0.5" => yaml.set("type", Yaml::text("median")),
        _ => {
            yaml.set("type", Yaml::text("percentile"));
            yaml.set("percentile", Yaml::Number(found.share.to_owned()));
        }
    }
    yaml.set("sql", Yaml::Text(found.argument.to_owned()));
}

/// Reads SQL that is one call such as `PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY amount)`.
pub(crate) fn percentile(sql: &str) -> Option<Percentile<'_>> {
    let rest = after_word(sql, "PERCENTILE_CONT")?.strip_prefix('(')?;
    let (share, rest) = rest.split_once(')')?;
    let share = share.trim();
    let is_share = share.starts_with(['0', '1']) && share.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let rest = after_word(after_word(rest, "WITHIN")?, "GROUP")?.strip_prefix('(')?;
    let argument = after_word(after_word(rest, "ORDER")?, "BY")?.trim_end().strip_suffix(')')?.trim();
    let mut depth = 0_usize;
    let is_closed = argument.chars().all(|c| match c {
        '(' => {
            depth += 1;
            true
        }
        ')' if depth == 0 => false,
        ')' => {
            depth -= 1;
            true
        }
        _ => true,
    });
    let is_plain = [" DESC", " ASC", " NULLS FIRST", " NULLS LAST"]
        .iter()
        .all(|end| !argument.to_ascii_uppercase().ends_with(end));
    (is_share && is_closed && depth == 0 && is_plain && !argument.is_empty()).then_some(Percentile { share, argument })
}

/// Returns the text after a word at the beginning, without the spaces around the word.
fn after_word<'s>(text: &'s str, word: &str) -> Option<&'s str> {
    let text = text.trim_start();
    let (start, rest) = (text.get(..word.len())?, text.get(word.len()..)?);
    let is_end = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    (start.eq_ignore_ascii_case(word) && is_end).then(|| rest.trim_start())
}

/// Reports a measure of the cube `own` that combines measures of other cubes. The other tools join the cubes and then
/// aggregate the joined rows. `measures` are the measures that the measure reads.
pub(crate) fn report_other_cubes<'r>(
    what: &str,
    own: &str,
    measures: impl Iterator<Item = &'r Reference>,
    span: Span,
    findings: &mut Vec<Diagnostic>,
) {
    let others: BTreeSet<String> =
        measures.filter(|need| need.cube != own).map(|need| format!("`{}`", need.cube)).collect();
    if !others.is_empty() {
        let others = Vec::from_iter(others).join(", ");
        let what = format!(
            "{what} reads measures of other cubes, which aggregate all rows of their cubes, also those that no row joins: {others}"
        );
        findings.push(changed(span, what, "Filter the query if only joined rows count."));
    }
}

/// Returns true if the SQL divides and nothing before the division makes an operand a fraction. The warehouse of the
/// model may then have divided integers. A fraction after the division, as in `a / b * 1.0`, does not prevent this.
fn may_divide_integers(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    let is_division = |at: usize| {
        let (before, divisor) = (&lower[..at], lower[at + 1..].trim_start());
        let has_fraction = before.as_bytes().windows(2).any(|pair| pair[0] == b'.' && pair[1].is_ascii_digit());
        let digits = divisor.trim_start_matches(|c: char| c.is_ascii_digit());
        let by_fraction = digits.len() < divisor.len() && digits.starts_with('.');
        let is_cast = ["::", "cast(", "float", "decimal", "avg"].iter().any(|word| before.contains(word));
        !has_fraction && !by_fraction && !is_cast
    };
    lower.match_indices('/').any(|(at, _)| is_division(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_cubes_are_named_once() {
        let need = |cube: &str, member: &str| Reference { cube: cube.to_owned(), member: Some(member.to_owned()) };
        let span = Span { file: "m.yml".into(), line: 3, column: 5, length: 1 };
        let report = |needs: &[Reference]| {
            let mut findings = Vec::new();
            report_other_cubes("measure `a`", "orders", needs.iter(), span.clone(), &mut findings);
            findings
        };
        assert!(report(&[need("orders", "count"), need("orders", "revenue")]).is_empty());
        let found = report(&[need("users", "count"), need("orders", "count"), need("items", "a"), need("users", "b")]);
        assert_eq!(found.len(), 1);
        let names: Vec<&str> = found[0].message.split('`').skip(1).step_by(2).collect();
        assert_eq!(names, ["a", "items", "users"]);
    }

    #[test]
    fn percentiles_are_single_calls() {
        for (sql, expected) in [
            ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age)", Some(("0.5", "age"))),
            (" percentile_cont ( 0.95 )\n within group (order by (a + f(b))) ", Some(("0.95", "(a + f(b))"))),
            ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age DESC)", None),
            ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) / SUM(a)", None),
            ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) + (1)", None),
            ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age)", None),
            ("PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY age)", None),
            ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY )", None),
            ("", None),
        ] {
            let found = percentile(sql).map(|found| (found.share, found.argument));
            assert_eq!(found, expected, "{sql}");
        }
    }

    #[test]
    fn fraction_must_precede_the_quotient() {
        for (sql, expected) in [
            ("{a} / {b}", true),
            ("{a} / {b} * 1.0", true),
            ("{a} / NULLIF({b}, 0)::float", true),
            ("1.0 * {a} / {b}", false),
            ("{a}::float / {b}", false),
            ("{a} / 100.0", false),
            ("{a} / 100", true),
            ("1.0 * {a} / {b} - {c}", false),
            ("{a}", false),
        ] {
            assert_eq!(may_divide_integers(sql), expected, "{sql}");
        }
    }
}
