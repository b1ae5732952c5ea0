//! `terrane ask`: reads a question in words as a query, and measures a suite of questions.
//!
//! In: a project and a question, questions of a terminal, or a file of questions. Out: the query with the meaning of
//! each word and, on request, its rows; or choices; or the figures of a suite.

mod suite;

use std::path::PathBuf;

use serde_json::Value as Json;
use terrane_app::query::{Answer, RequestContext};
use terrane_app::questions::{Method, QuestionService, WordedQuestion};
use terrane_app::services::Services;
use terrane_compiler::Access;
use terrane_terminal::{TerminalText, Tree};
use terrane_wire::ErrorBody;
use terrane_wire::questions::NaturalLanguageAnswer;

use super::prompt::{Prompt, PromptSettings};
use super::query::{filtered_note, refused};
use super::{Terminal, json_line, load_for_queries, print, print_error, print_warning};
use crate::caller;
use crate::failure::Failure;
use crate::output::{self, OutputArguments};
use crate::project::Project;
use crate::wiring::{self, CommandDuration};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane ask examples/flights 'cancellation rate by carrier in 2013-02'
  terrane ask examples/flights 'top 5 carriers by flights' --run
  terrane ask examples/flights 'top 5 carriers by flights' --json | jq .query
  terrane ask examples/flights
  terrane ask examples/flights --suite examples/questions/flights.yml

A suite is a list of {question, query} or {question, clarification: true}. `query` is a query, or a list of queries of
which each answers the question. The command fails if a question becomes another query than the expected one.

Without a question, questions are read from the terminal, one in each line; .terrane/ask_history holds the earlier ones.
With --run, the rows are printed as `terrane query` prints them, and the meaning goes to standard error.")]
pub struct AskArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The question. Without it, questions are read one after the other
    pub words: Vec<String>,
    /// The language of the question
    #[arg(long, default_value = "en", value_parser = ["en", "de"])]
    pub language: String,
    /// The reader: the grammar, the language model of `search.llm`, or the choice of `search.llm.use`
    #[arg(long, default_value = "auto")]
    pub method: AskMethod,
    /// Run the query and print its rows
    #[arg(long, conflicts_with = "suite")]
    pub run: bool,
    /// Read the questions of this file, and compare their queries with the expected ones
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    pub suite: Option<PathBuf>,
    /// Ask as this caller: a JSON file with user_id, email, roles, groups and attributes
    #[arg(long = "as", value_name = "FILE")]
    pub caller: Option<PathBuf>,
    /// Print JSON: the response of POST /api/v1/search/nl-query, or the figures of the suite
    #[arg(long)]
    pub json: bool,
}

/// The method of interpreting a question.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum AskMethod {
    Auto,
    Grammar,
    Model,
}

impl From<AskMethod> for Method {
    fn from(method: AskMethod) -> Self {
        match method {
            AskMethod::Auto => Method::Auto,
            AskMethod::Grammar => Method::Grammar,
            AskMethod::Model => Method::Model,
        }
    }
}

/// Reads a question, questions of a terminal, or a suite. Returns true if each question is clear, or if no question of
/// the suite was read wrongly.
///
/// # Errors
/// The project has errors, or the question or the suite is invalid.
pub async fn run(arguments: &AskArguments, project: Project, terminal: Terminal) -> Result<bool, Failure> {
    let caller = caller::read(arguments.caller.as_deref())?;
    // The project's folder becomes the working folder, so the file is read first.
    let cases = arguments.suite.as_deref().map(suite::cases).transpose()?;
    let history = project.folder.root().join(HISTORY);
    let is_short = cases.is_some() || !arguments.words.is_empty();
    let duration = if is_short { CommandDuration::Short } else { CommandDuration::Long };
    let engine = load_for_queries(&project, duration).await?;
    let model = wiring::language_model(&project)?.map(|backend| engine.model_reader(backend));
    let service = QuestionService::new(engine.queries.clone(), engine.search.clone(), model);
    let asker = Asker { arguments, engine: &engine, service: &service, caller: &caller, terminal };
    match cases {
        Some(cases) => {
            let figures = suite::measure(cases, &asker.question(String::new()), &service, &caller).await?;
            print(&if arguments.json { json_line(&figures) } else { figures.listing() });
            print_error(&format!("{}\n", figures.summary()));
            Ok(figures.wrong.is_empty())
        }
        None if arguments.words.is_empty() => asker.answer_each(history).await,
        None => asker.answer(arguments.words.join(" ")).await,
    }
}

/// The file of the history in a project.
const HISTORY: &str = ".terrane/ask_history";

/// Answers questions of one caller.
struct Asker<'a> {
    arguments: &'a AskArguments,
    engine: &'a Services,
    service: &'a QuestionService,
    caller: &'a RequestContext,
    terminal: Terminal,
}

impl Asker<'_> {
    fn question(&self, text: String) -> WordedQuestion {
        WordedQuestion {
            text,
            language: Some(self.arguments.language.clone()),
            method: self.arguments.method.into(),
            runs: self.arguments.run,
        }
    }

    /// Answers one question. Returns whether it is clear.
    async fn answer(&self, text: String) -> Result<bool, Failure> {
        let answer = self.service.ask(&self.question(text), self.caller).await;
        let answer = answer.map_err(|error| refused(ErrorBody::from_question(error, self.caller.scopes)))?;
        let body = NaturalLanguageAnswer::from(&answer);
        match &answer.rows {
            _ if self.arguments.json => print(&json_line(&body)),
            None => print(&tree(&body).to_string()),
            Some(rows) => {
                print_error(&tree(&body).to_string());
                self.print_rows(rows)?;
            }
        }
        Ok(answer.query.is_some())
    }

    fn print_rows(&self, rows: &Answer) -> Result<(), Failure> {
        let snapshot = self.engine.catalog.snapshot();
        let access = Access::of(&snapshot.model, &self.caller.caller);
        output::write(&OutputArguments::default(), rows, &access, self.terminal)?;
        rows.warnings.iter().for_each(|warning| print_warning(warning));
        if self.arguments.caller.is_none() {
            print_error(&filtered_note(&access, rows));
        }
        Ok(())
    }

    /// Answers the questions of a terminal, or of the lines of standard input. Returns whether all lines are clear.
    async fn answer_each(&self, history: PathBuf) -> Result<bool, Failure> {
        let settings = PromptSettings { label: "ask> ", history, is_complete: |_| true };
        let mut prompt = Prompt::open(settings, ())?;
        let is_terminal = prompt.is_terminal();
        if is_terminal {
            print_error("Ask a question in each line, such as `flights by carrier last month`. `exit` ends.\n");
        }
        let (mut is_clear, mut is_asked) = (true, false);
        while let Some(text) = prompt.read()? {
            let text = text.trim();
            match text.to_ascii_lowercase().as_str() {
                "" => continue,
                "exit" | "quit" => break,
                _ => is_asked = true,
            }
            prompt.remember(text)?;
            match self.answer(text.to_owned()).await {
                Ok(is_answered) => is_clear &= is_answered,
                Err(failure) => {
                    is_clear = false;
                    print_error(&format!("{failure}\n"));
                }
            }
        }
        prompt.close();
        if !is_asked && !is_terminal {
            let hint = format!("Write one, as in `terrane ask {} 'orders by month'`.", self.arguments.dir.display());
            return Err(Failure::new("missing question").hint(hint));
        }
        Ok(is_terminal || is_clear)
    }
}

fn tree(body: &NaturalLanguageAnswer<'_>) -> Tree {
    let text = |text: &str| TerminalText::spaced(text).into_string();
    let mut tree = match &body.query {
        Json::Null => Tree::new("the question is unclear"),
        query => Tree::new(text(&query.to_string())),
    };
    for part in &body.interpretation {
        tree.push(Tree::new(format!("{}: {}", text(part.text), text(part.meaning))));
    }
    for one in &body.clarifications {
        let mut unclear = Tree::new(text(one.message));
        one.choices.iter().for_each(|choice| unclear.push(Tree::new(text(choice))));
        tree.push(unclear);
    }
    if let Some(model) = body.model {
        tree.push(Tree::new(format!("read by {}", text(model))));
    }
    for warning in body.warnings {
        tree.push(Tree::new(format!("warning: {}", text(warning))));
    }
    tree
}
