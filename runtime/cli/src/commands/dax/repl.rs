//! A session of DAX on a terminal: queries one after the other, with history and completions.
//!
//! In: lines; a query ends with `;` or an empty line. Out: the rows of each query, or its problems. Without a terminal,
//! lines are read without editing, so that a script can be piped in. The file `.terrane/dax_history` of the project
//! contains the history.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use terrane_app::catalog::Snapshot;
use terrane_app::query::RequestContext;
use terrane_app::services::Services;
use terrane_compiler::Access;

use super::super::{print, print_error};
use super::{Output, answer};
use crate::failure::Failure;

const PROMPT: &str = "dax> ";
/// The file of the history in a project.
const HISTORY: &str = ".terrane/dax_history";
/// The largest number of lines of the history.
const MAX_HISTORY: usize = 1_000;

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

/// The source of queries.
enum Input {
    Terminal(Box<Editor<DaxHelper, FileHistory>>),
    /// The lines of standard input that are not yet read, if it is a file or a pipe.
    Lines(std::io::Lines<std::io::StdinLock<'static>>),
}

impl Input {
    /// Returns the next query, or `None` at the end of the input. An interrupted line (Ctrl-C) is an empty query.
    fn read(&mut self) -> Result<Option<String>, Failure> {
        match self {
            Input::Terminal(editor) => match editor.readline(PROMPT) {
                Ok(text) => Ok(Some(text)),
                Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
                Err(ReadlineError::Eof) => Ok(None),
                Err(error) => Err(Failure::new(format!("reading a line: {error}"))),
            },
            Input::Lines(lines) => {
                let mut text = String::new();
                for line in lines {
                    let line = line.map_err(|error| Failure::new(format!("reading standard input: {error}")))?;
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&line);
                    if is_complete(&text) {
                        return Ok(Some(text));
                    }
                }
                Ok((!text.is_empty()).then_some(text))
            }
        }
    }

    fn remember(&mut self, text: &str) -> Result<(), Failure> {
        let Input::Terminal(editor) = self else { return Ok(()) };
        editor.add_history_entry(text).map_err(|error| Failure::new(format!("the history: {error}")))?;
        Ok(())
    }
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
    let history = folder.join(HISTORY);
    let is_terminal = std::io::stdin().is_terminal();
    let mut input = if is_terminal {
        print_error("DAX: end a query with `;` or an empty line. `help` shows more, `exit` ends.\n");
        let helper = DaxHelper { snapshot: engine.catalog.snapshot(), caller: caller.clone() };
        Input::Terminal(Box::new(editor(helper, &history)?))
    } else {
        Input::Lines(std::io::stdin().lines())
    };
    let mut is_answered = true;
    // Reading blocks this thread until the user types a line, so the runtime moves other tasks to other threads.
    while let Some(text) = tokio::task::block_in_place(|| input.read())? {
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
        input.remember(text)?;
        match answer(engine, caller, text, output).await {
            Ok(is_valid) => is_answered &= is_valid,
            Err(failure) => {
                is_answered = false;
                print_error(&format!("{failure}\n"));
            }
        }
    }
    if let Input::Terminal(editor) = &mut input {
        save(editor, &history);
    }
    Ok(is_terminal || is_answered)
}

fn editor(helper: DaxHelper, history: &Path) -> Result<Editor<DaxHelper, FileHistory>, Failure> {
    let failed = |error: ReadlineError| Failure::new(format!("the terminal: {error}"));
    let config = Config::builder().max_history_size(MAX_HISTORY).map_err(failed)?;
    let config = config.completion_type(CompletionType::List).build();
    let mut editor = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(helper));
    if history.exists()
        && let Err(error) = editor.load_history(history)
    {
        print_error(&format!("warning: {} cannot be read: {error}\n", history.display()));
    }
    Ok(editor)
}

/// Writes the history, or prints a warning if its file cannot be written.
fn save(editor: &mut Editor<DaxHelper, FileHistory>, history: &Path) {
    let saved = match history.parent().map(std::fs::create_dir_all) {
        Some(Err(error)) => Err(error.to_string()),
        _ => editor.save_history(history).map_err(|error| error.to_string()),
    };
    if let Err(error) = saved {
        print_error(&format!("warning: {} cannot be written: {error}\n", history.display()));
    }
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
