//! The report of `terrane test` as JUnit XML, which CI servers read.
//!
//! In: the outcomes. Out: one suite for each file, with a case for each outcome. Not here: writing the file.

use std::io;
use std::time::Duration;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use terrane_expectations::ExpectationOutcome;

/// Returns the report as a file of JUnit XML.
///
/// # Errors
/// Never in practice, because the report is written to memory.
pub(super) fn report(outcomes: &[ExpectationOutcome]) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let [tests, failures, time] = totals(outcomes.iter());
    let root = writer.create_element("testsuites");
    let root =
        root.with_attributes([("name", "terrane test"), ("tests", &tests), ("failures", &failures), ("time", &time)]);
    root.write_inner_content(|writer| {
        let mut files: Vec<&str> = outcomes.iter().map(|outcome| &*outcome.place.file).collect();
        files.sort_unstable();
        files.dedup();
        files.into_iter().try_for_each(|file| suite(writer, file, outcomes))
    })?;
    let mut text = writer.into_inner();
    text.push(b'\n');
    Ok(text)
}

fn suite(writer: &mut Writer<Vec<u8>>, file: &str, outcomes: &[ExpectationOutcome]) -> io::Result<()> {
    let own = || outcomes.iter().filter(|outcome| &*outcome.place.file == file);
    let [tests, failures, time] = totals(own());
    let suite = writer.create_element("testsuite");
    let suite = suite.with_attributes([("name", file), ("tests", &tests), ("failures", &failures), ("time", &time)]);
    suite.write_inner_content(|writer| own().try_for_each(|outcome| case(writer, outcome)))?;
    Ok(())
}

fn case(writer: &mut Writer<Vec<u8>>, outcome: &ExpectationOutcome) -> io::Result<()> {
    let (line, time, name) = (outcome.place.line.to_string(), seconds(outcome.duration), plain(&outcome.name));
    let case = writer.create_element("testcase");
    let case = case.with_attributes([
        ("name", &*name),
        ("classname", &*outcome.place.file),
        ("file", &*outcome.place.file),
        ("line", &line),
        ("time", &time),
    ]);
    let Some(mismatch) = &outcome.mismatch else {
        case.write_empty()?;
        return Ok(());
    };
    let text = plain(&mismatch.to_string());
    let first = text.lines().next().unwrap_or_default().to_owned();
    let sql = outcome.sql.as_ref().map(|sql| format!("\nSQL:\n{}", plain(sql))).unwrap_or_default();
    case.write_inner_content(|writer| {
        let failure = writer.create_element("failure").with_attribute(("message", &*first));
        failure.write_text_content(BytesText::new(&format!("{text}{sql}")))?;
        Ok(())
    })?;
    Ok(())
}

/// Returns the number of outcomes, the number of failures, and the total duration in seconds.
fn totals<'o>(outcomes: impl Iterator<Item = &'o ExpectationOutcome> + Clone) -> [String; 3] {
    let failures = outcomes.clone().filter(|outcome| outcome.mismatch.is_some()).count();
    let time = seconds(outcomes.clone().map(|outcome| outcome.duration).sum());
    [outcomes.count().to_string(), failures.to_string(), time]
}

fn seconds(duration: Duration) -> String {
    format!("{:.3}", duration.as_secs_f64())
}

/// Replaces the control characters that XML does not allow.
fn plain(text: &str) -> String {
    let is_valid = |c: char| matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'));
    text.chars().map(|c| if is_valid(c) { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
    use terrane_expectations::Mismatch;

    use super::*;

    #[test]
    fn outcomes_are_grouped_by_file_and_escaped() {
        let outcome = |name: &str, file: &str, problem: Option<&str>| ExpectationOutcome {
            name: name.to_owned(),
            description: None,
            place: Span { file: file.into(), line: 3, column: 1, length: 1 },
            mismatch: problem.map(|message| Mismatch::Values(Diagnostic::error(Code::NullValue, message))),
            sql: Some("SELECT 1 < 2".to_owned()),
            duration: Duration::from_millis(20),
        };
        let outcomes = [
            outcome("a", "tests/a.yml", None),
            outcome("b \u{1}", "cubes/b.yml", Some("x < \"y\"")),
            outcome("c", "tests/a.yml", None),
        ];
        let text = String::from_utf8(report(&outcomes).unwrap()).unwrap();
        assert_eq!(text, EXPECTED);
    }

    const EXPECTED: &str = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites name=\"terrane test\" tests=\"3\" failures=\"1\" time=\"0.060\">
  <testsuite name=\"cubes/b.yml\" tests=\"1\" failures=\"1\" time=\"0.020\">
    <testcase name=\"b \u{fffd}\" classname=\"cubes/b.yml\" file=\"cubes/b.yml\" line=\"3\" time=\"0.020\">
      <failure message=\"x &lt; &quot;y&quot;\">x &lt; &quot;y&quot;
SQL:
SELECT 1 &lt; 2</failure>
    </testcase>
  </testsuite>
  <testsuite name=\"tests/a.yml\" tests=\"2\" failures=\"0\" time=\"0.040\">
    <testcase name=\"a\" classname=\"tests/a.yml\" file=\"tests/a.yml\" line=\"3\" time=\"0.020\"/>
    <testcase name=\"c\" classname=\"tests/a.yml\" file=\"tests/a.yml\" line=\"3\" time=\"0.020\"/>
  </testsuite>
</testsuites>
";
}
