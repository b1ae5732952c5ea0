//! The forms in which a command prints rows.
//!
//! In: the answer of a query, and the formats of its members. Out: a readable table, with formatted numbers and
//! optional bars; or JSON, CSV, Markdown and Arrow for programs, with unformatted values.

mod format;
mod plot;

use terrane_app::metadata;
use terrane_app::query::Answer;
use terrane_compiler::Access;
use terrane_expectations::Rows;
use terrane_terminal::TerminalText;
use terrane_wire::RowEncoder;
use terrane_wire::json::{Numbers, write_rows};

use crate::commands::{Terminal, print, print_error};
use crate::failure::Failure;
use crate::output_file::OutputFile;
use crate::report::plural;
use crate::table;
pub(crate) use format::NumberFormat;

/// The form of the rows. On a terminal the default is a table, else JSON.
#[derive(Debug, Default, clap::Args)]
#[group(id = "output", multiple = false)]
pub struct OutputArguments {
    /// Print the rows as JSON even on a terminal
    #[arg(long)]
    pub json: bool,
    /// Print the rows as CSV with a header
    #[arg(long)]
    pub csv: bool,
    /// Print the rows as a Markdown table
    #[arg(long)]
    pub md: bool,
    /// Write the rows to a file as an Arrow stream
    #[arg(long, value_name = "FILE")]
    pub arrow: Option<OutputFile>,
    /// Print a table with a bar for each row, and a line of each measure over time
    #[arg(long)]
    pub plot: bool,
}

/// Prints the rows of an answer. With a table, also prints the number of rows to standard error.
///
/// # Errors
/// The rows cannot be encoded, or the file cannot be written.
pub(crate) fn write(
    arguments: &OutputArguments,
    answer: &Answer,
    access: &Access<'_>,
    terminal: Terminal,
) -> Result<(), Failure> {
    let is_for_people = terminal.is_stdout_terminal || arguments.plot;
    if let Some(file) = &arguments.arrow {
        let bytes = encoded(RowEncoder::arrow(answer.columns.clone(), &answer.schema, Numbers::Plain), answer)?;
        return file.write(bytes, "--arrow");
    }
    if arguments.csv {
        let bytes = encoded(RowEncoder::csv(answer.columns.clone(), Numbers::Plain), answer)?;
        print(&String::from_utf8_lossy(&bytes));
        return Ok(());
    }
    if !arguments.md && (arguments.json || !is_for_people) {
        let mut bytes = Vec::new();
        write_rows(&answer.columns, &answer.batches, Numbers::Plain, &mut bytes);
        bytes.push(b'\n');
        print(&String::from_utf8_lossy(&bytes));
        return Ok(());
    }
    let rows = Rows::of_answer(answer).map_err(|error| Failure::new(format!("{error:#}")))?;
    if arguments.md {
        print(&markdown(&rows));
        return Ok(());
    }
    let formats: Vec<NumberFormat> = answer.columns.iter().map(|column| format_of(column, access)).collect();
    let formatted = format::apply(&rows, &formats);
    let plotted = arguments.plot.then(|| plot::bars(&rows, answer));
    print(&format!("{}\n", table::draw(&formatted, plotted.flatten().as_ref())));
    if arguments.plot {
        print(&plot::lines(&rows, answer));
    }
    print_error(&summary(&rows, answer));
    Ok(())
}

fn encoded(encoder: RowEncoder, answer: &Answer) -> Result<Vec<u8>, Failure> {
    encoder.encode(Vec::new(), &answer.batches, b"").map_err(|error| Failure::new(error.to_string()))
}

fn summary(rows: &Rows, answer: &Answer) -> String {
    let of = match answer.total_rows {
        Some(total) if total != answer.returned_rows => format!(" of {total}"),
        _ => String::new(),
    };
    let shown = plural(rows.rows.len(), "row");
    format!("{shown}{of}, {:.1} ms\n", answer.duration.as_secs_f64() * 1_000.0)
}

/// Returns the format of a column's numbers. Numbers of dimensions, such as years and ids, are unchanged.
fn format_of(column: &terrane_compiler::sql::ResultColumn, access: &Access<'_>) -> NumberFormat {
    if !column.is_measure {
        return NumberFormat::Unchanged;
    }
    let member = column.key.strip_suffix(".previous").unwrap_or(&column.key);
    let of_measure = member.split_once('.').and_then(|(cube, name)| {
        let cube = metadata::cube(access, cube)?;
        metadata::measures(access, cube).find(|measure| &*measure.name == name)
    });
    let presentation = of_measure.map(|measure| &measure.presentation).or_else(|| {
        let metric = metadata::metrics(access).find(|metric| &*metric.name == member);
        metric.map(|metric| &metric.presentation)
    });
    NumberFormat::named(presentation.and_then(|presentation| presentation.format.as_deref()))
}

/// Draws rows as a Markdown table. Numbers are aligned to the right.
fn markdown(rows: &Rows) -> String {
    let text = |text: &str| TerminalText::line(text).into_string().replace('\\', "\\\\").replace('|', "\\|");
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut table = line(rows.columns.iter().map(|name| text(name)).collect());
    let side = |column: usize| if table::is_numeric(rows, column) { "---:".to_owned() } else { "---".to_owned() };
    table.push_str(&line((0..rows.columns.len()).map(side).collect()));
    for row in &rows.rows {
        let cells = row.iter().map(|value| match value {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(value) => text(value),
            other => other.to_string(),
        });
        table.push_str(&line(cells.collect()));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn markdown_escapes_its_own_characters() {
        let rows = Rows {
            columns: vec!["na|me".to_owned(), "n".to_owned()],
            is_double: vec![false, false],
            rows: vec![vec![json!("a|b\nc\\"), json!(1)], vec![json!(null), json!(2.5)]],
        };
        let expected = "| na\\|me | n |\n| --- | ---: |\n| a\\|b c\\\\ | 1 |\n|  | 2.5 |\n";
        assert_eq!(markdown(&rows).replace('\u{fffd}', " "), expected);
    }
}
