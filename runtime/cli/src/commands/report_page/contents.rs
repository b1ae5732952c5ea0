//! The contents of the page, without markup.
//!
//! In: unescaped strings of a project and its data. Out: types that the template reads. Pictures are finished SVG,
//! whose text is escaped; every other string is escaped by the template.

use serde::Serialize;
use serde_json::Value as Json;

use crate::output::NumberFormat;

/// The contents of the page.
#[derive(Debug, Default, Serialize)]
pub(super) struct Contents {
    pub(super) project: String,
    /// The caller for whom the page was made.
    pub(super) caller: String,
    pub(super) made_at: String,
    /// The numbers of cubes and metrics that the caller may see, like `5 cubes, 12 metrics`. Aliases are not counted.
    pub(super) counts: String,
    /// Cubes and metrics as the metadata routes write them.
    pub(super) cubes: Vec<Json>,
    pub(super) metrics: Vec<Json>,
    /// The join graph as SVG.
    pub(super) joins: String,
    pub(super) lineages: Vec<Lineage>,
    /// False if profiles and anomalies were not requested.
    pub(super) has_data: bool,
    pub(super) profiles: Vec<Profile>,
    pub(super) anomalies: Vec<Series>,
    pub(super) notes: Vec<Note>,
}

/// A limit that was reached or a part that is missing, in one section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Note {
    pub(super) section: &'static str,
    pub(super) text: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Lineage {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) svg: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Profile {
    pub(super) cube: String,
    pub(super) title: String,
    pub(super) rows: u64,
    pub(super) score: Option<String>,
    pub(super) columns: Vec<Column>,
    pub(super) insights: Vec<Insight>,
}

#[derive(Debug, Serialize)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) r#type: &'static str,
    pub(super) nulls: String,
    pub(super) distinct: String,
    pub(super) least: String,
    pub(super) most: String,
    pub(super) mean: String,
    /// SVG, or empty.
    pub(super) histogram: String,
    pub(super) frequent: Vec<Frequent>,
}

/// A frequent value with its number of rows, and the number of rows of the most frequent value.
#[derive(Debug, Serialize)]
pub(super) struct Frequent {
    pub(super) value: String,
    pub(super) count: u64,
    pub(super) most: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Insight {
    pub(super) level: &'static str,
    pub(super) class: &'static str,
    pub(super) message: String,
}

/// A measure along time.
#[derive(Debug, Serialize)]
pub(super) struct Series {
    pub(super) measure: String,
    pub(super) title: String,
    pub(super) detector: String,
    pub(super) found: usize,
    pub(super) points: usize,
    pub(super) svg: String,
    /// The anomalous points.
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) time: String,
    pub(super) value: String,
    pub(super) expected: String,
    pub(super) lower: String,
    pub(super) upper: String,
    pub(super) severity: &'static str,
}

/// Writes a number with at most three decimal places; a dash for none.
pub(super) fn number(number: Option<f64>) -> String {
    number.map_or("–".to_owned(), |number| {
        let text = format!("{number:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    })
}

/// Writes a number by the `format` of its member; without one as [`number`] does, with separated thousands.
pub(super) fn formatted(format: Option<&str>, value: Option<f64>) -> String {
    let Some(value) = value else { return number(None) };
    let text = match format {
        Some(_) => NumberFormat::named(format).text(&value.to_string(), true),
        None => NumberFormat::Number.text(&number(Some(value)), false),
    };
    text.unwrap_or_else(|| number(Some(value)))
}

impl Contents {
    pub(super) fn note(&mut self, section: &'static str, text: String) {
        self.notes.push(Note { section, text });
    }
}

/// The largest number of names in a note.
const MAX_NAMES: usize = 10;

/// Parts that are missing, by their reasons. Many parts can have one reason, such as a warehouse that cannot be reached.
#[derive(Debug, Default)]
pub(super) struct Missing {
    reasons: Vec<(String, Vec<String>)>,
}

impl Missing {
    pub(super) fn add(&mut self, part: String, reason: String) {
        match self.reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, parts)) => parts.push(part),
            None => self.reasons.push((reason, vec![part])),
        }
    }

    /// Adds a note for each reason: `No profile of orders, stores: …`.
    pub(super) fn note(self, contents: &mut Contents, section: &'static str, what: &str) {
        for (reason, parts) in self.reasons {
            let others = parts.len().saturating_sub(MAX_NAMES);
            let named = parts[..parts.len() - others].join(", ");
            let others = if others == 0 { String::new() } else { format!(" and {others} more") };
            contents.note(section, format!("No {what} of {named}{others}: {reason}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_series_have_the_format_of_their_measure() {
        for (format, value, expected) in [
            (None, Some(1_234_567.891_23), "1 234 567.891"),
            (None, Some(f64::NAN), "NaN"),
            (None, None, "–"),
            (Some("currency"), Some(1_234.5), "1 234.50"),
            (Some("percent"), Some(0.256), "25.60 %"),
            (Some("emoji"), Some(1_000.25), "1 000.25"),
            (Some("integer"), None, "–"),
        ] {
            assert_eq!(formatted(format, value), expected, "{format:?} {value:?}");
        }
    }

    #[test]
    fn parts_with_one_reason_share_a_note() {
        let (mut contents, mut missing) = (Contents::default(), Missing::default());
        for number in 1..=12 {
            missing.add(format!("m{number}"), "the warehouse cannot be reached".to_owned());
        }
        missing.add("n".to_owned(), "its history is too short".to_owned());
        missing.note(&mut contents, "anomalies", "series");
        let notes: Vec<&str> = contents.notes.iter().map(|note| &*note.text).collect();
        let expected = [
            "No series of m1, m2, m3, m4, m5, m6, m7, m8, m9, m10 and 2 more: the warehouse cannot be reached",
            "No series of n: its history is too short",
        ];
        assert_eq!(notes, expected);
    }
}
