//! Reads inputs one after the other, from a terminal with history, or from lines.
//!
//! In: lines of a terminal, a file or a pipe. Out: inputs, each of one line or several. A file of the project contains
//! the history of a terminal. Not here: the meaning of an input.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor, Helper};

use super::print_error;
use crate::failure::Failure;

/// The largest number of lines of the history.
const MAX_HISTORY: usize = 1_000;

/// The source of inputs.
pub(super) struct Prompt<H: Helper> {
    source: Source<H>,
    settings: PromptSettings,
}

pub(super) struct PromptSettings {
    /// The text before each input on a terminal.
    pub(super) label: &'static str,
    /// The file of the history.
    pub(super) history: PathBuf,
    /// Returns whether lines are a whole input.
    pub(super) is_complete: fn(&str) -> bool,
}

enum Source<H: Helper> {
    Terminal(Box<Editor<H, FileHistory>>),
    /// The lines of standard input that are not yet read, if it is a file or a pipe.
    Lines(std::io::Lines<std::io::StdinLock<'static>>),
}

impl<H: Helper> Prompt<H> {
    /// Opens standard input. `helper` completes and delimits inputs on a terminal.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub(super) fn open(settings: PromptSettings, helper: H) -> Result<Self, Failure> {
        let source = match std::io::stdin().is_terminal() {
            true => Source::Terminal(Box::new(editor(helper, &settings.history)?)),
            false => Source::Lines(std::io::stdin().lines()),
        };
        Ok(Prompt { source, settings })
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.source, Source::Terminal(_))
    }

    /// Returns the next input, or `None` at the end. An interrupted line (Ctrl-C) is an empty input. Blocks this thread
    /// until a line is entered, so the runtime moves other tasks to other threads.
    ///
    /// # Errors
    /// The input cannot be read.
    pub(super) fn read(&mut self) -> Result<Option<String>, Failure> {
        tokio::task::block_in_place(|| self.input())
    }

    fn input(&mut self) -> Result<Option<String>, Failure> {
        match &mut self.source {
            Source::Terminal(editor) => match editor.readline(self.settings.label) {
                Ok(text) => Ok(Some(text)),
                Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
                Err(ReadlineError::Eof) => Ok(None),
                Err(error) => Err(Failure::new(format!("reading a line: {error}"))),
            },
            Source::Lines(lines) => {
                let mut text = String::new();
                for line in lines {
                    let line = line.map_err(|error| Failure::new(format!("reading standard input: {error}")))?;
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&line);
                    if (self.settings.is_complete)(&text) {
                        return Ok(Some(text));
                    }
                }
                Ok((!text.is_empty()).then_some(text))
            }
        }
    }

    /// Adds an input to the history of a terminal.
    ///
    /// # Errors
    /// The history refuses the input.
    pub(super) fn remember(&mut self, text: &str) -> Result<(), Failure> {
        let Source::Terminal(editor) = &mut self.source else { return Ok(()) };
        editor.add_history_entry(text).map_err(|error| Failure::new(format!("the history: {error}")))?;
        Ok(())
    }

    /// Writes the history of a terminal, or prints a warning if its file cannot be written.
    pub(super) fn close(mut self) {
        let Source::Terminal(editor) = &mut self.source else { return };
        let history = &self.settings.history;
        let saved = match history.parent().map(std::fs::create_dir_all) {
            Some(Err(error)) => Err(error.to_string()),
            _ => editor.save_history(history).map_err(|error| error.to_string()),
        };
        if let Err(error) = saved {
            print_error(&format!("warning: {} cannot be written: {error}\n", history.display()));
        }
    }
}

fn editor<H: Helper>(helper: H, history: &Path) -> Result<Editor<H, FileHistory>, Failure> {
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
