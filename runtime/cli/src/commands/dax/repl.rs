//! A session of DAX on a terminal: queries one after the other, with history and completions.
//!
//! In: lines; a query ends with `;` or an empty line. Out: the rows of each query, or its problems. Without a terminal,
//! lines are read without editing, so that a script can be piped in. The file `.terrane/dax_history` of the project
//! contains the history.

use std::path::Path;
use std::sync::Arc;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use terrane_app::catalog::Snapshot;
use terrane_app::query::RequestContext;
use terrane_app::services::Services;
use terrane_compiler::Access;

use super::super::prompt::{Prompt, PromptSettings};
use super::super::{print, print_error};
use super::{Output, answer};
use crate::failure::Failure;

/// The file of the history in a project.
const HISTORY: &str = ".terrane/dax_history";

/// Completes and delimits queries.
struct DaxHelper {
    snapshot: Arc<Snapshot>,
    caller: RequestContext,
}

impl Helper for DaxHelper {}

impl Highlighter for DaxHelper {}

impl Hinter for DaxHelper {
    type Hint = String;
}

impl Completer for DaxHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let access = Access::of(&self.snapshot.model, &self.caller.caller);
        let items = terrane_dax::complete(line, position, &access);
        let start = items.first().map_or(position, |item| item.replaces.start as usize);
        let pairs = items.into_iter().filter(|item| item.replaces.start as usize == start);
        Ok((start, pairs.map(|item| Pair { display: item.label, replacement: item.insert_text }).collect()))
    }
}

impl Validator for DaxHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_complete(context.input()) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

/// Returns whether lines are a whole query: they end with `;` or an empty line.
fn is_complete(lines: &str) -> bool {
    let text = lines.trim();
    text.is_empty()
        || is_command(text)
        || text.ends_with(';')
        || lines.rsplit('\n').next().is_some_and(|last| last.trim().is_empty())
}

fn is_command(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "exit" | "quit" | "help")
}

/// Reads queries until the end of the input, and answers each. Returns whether a script had no problems.
///
/// # Errors
/// The input cannot be read.
pub(super) async fn run(
    engine: &Services,
    caller: &RequestContext,
    folder: &Path,
    output: Output,
) -> Result<bool, Failure> {
    let settings = PromptSettings { label: "dax> ", history: folder.join(HISTORY), is_complete };
    let helper = DaxHelper { snapshot: engine.catalog.snapshot(), caller: caller.clone() };
    let mut prompt = Prompt::open(settings, helper)?;
    let is_terminal = prompt.is_terminal();
    if is_terminal {
        print_error("DAX: end a query with `;` or an empty line. `help` shows more, `exit` ends.\n");
    }
    let mut is_answered = true;
    while let Some(text) = prompt.read()? {
        let text = text.trim();
        match text.to_ascii_lowercase().as_str() {
            "" => continue,
            "exit" | "quit" => break,
            "help" => {
                print(
                    "EVALUATE orders;   shows the rows of a table\nTab completes names; the arrows show earlier queries.\n",
                );
                continue;
            }
            _ => {}
        }
        // A query that fails is remembered too, so that the user can correct it.
        prompt.remember(text)?;
        match answer(engine, caller, text, output).await {
            Ok(is_valid) => is_answered &= is_valid,
            Err(failure) => {
                is_answered = false;
                print_error(&format!("{failure}\n"));
            }
        }
    }
    prompt.close();
    Ok(is_terminal || is_answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_end_with_a_semicolon_or_an_empty_line() {
        for text in ["", "exit", "EVALUATE orders;", "EVALUATE\n  orders\n  ;  ", "EVALUATE orders\n", "a\n\n"] {
            assert!(is_complete(text), "{text:?}");
        }
        for text in ["EVALUATE orders", "EVALUATE\n orders", "DEFINE VAR a = 1"] {
            assert!(!is_complete(text), "{text:?}");
        }
    }
}
