//! `terrane ask`: reads a question in words as a query, and measures a suite of questions.
//!
//! In: a project and a question, or a file of questions. Out: the query with the meaning of each word, or choices; or
//! the figures of a suite.

mod suite;

use std::path::PathBuf;

use serde_json::Value as Json;
use terrane_app::questions::{Method, QuestionService, WordedQuestion};
use terrane_terminal::{TerminalText, Tree};
use terrane_wire::ErrorBody;
use terrane_wire::questions::NaturalLanguageAnswer;

use super::query::refused;
use super::{json_line, print, print_error};
use crate::caller;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring::{self, WarehouseUse};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane ask examples/flights 'cancellation rate by carrier in 2013-02'
  terrane ask examples/flights 'top 5 carriers by flights' --json | jq .query
  terrane ask examples/flights --suite examples/questions/flights.yml

A suite is a list of {question, query} or {question, clarification: true}. `query` is a query, or a list of queries of
which each answers the question. The command fails if a question becomes another query than the expected one.")]
pub struct AskArguments {
    /// The project folder, which contains service_project.yml
    pub dir: PathBuf,
    /// The question
    #[arg(required_unless_present = "suite")]
    pub words: Vec<String>,
    /// The language of the question
    #[arg(long, default_value = "en", value_parser = ["en", "de"])]
    pub language: String,
    /// The reader: the grammar, the language model of `search.llm`, or the choice of `search.llm.use`
    #[arg(long, default_value = "auto")]
    pub method: AskMethod,
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

/// Reads a question or a suite. Returns true if the question is clear, or if no question of the suite was read wrongly.
///
/// # Errors
/// The project has errors, or the question or the suite is invalid.
pub async fn run(arguments: &AskArguments, project: Project) -> Result<bool, Failure> {
    let caller = caller::read(arguments.caller.as_deref())?;
    // The project's folder becomes the working folder, so the file is read first.
    let cases = arguments.suite.as_deref().map(suite::cases).transpose()?;
    let (engine, _) = wiring::load(&project, WarehouseUse::Read).await?;
    let model = wiring::language_model(&project)?.map(|backend| engine.model_reader(backend));
    let service = QuestionService::new(engine.queries.clone(), engine.search.clone(), model);
    let asked = WordedQuestion {
        text: arguments.words.join(" "),
        language: Some(arguments.language.clone()),
        method: arguments.method.into(),
        runs: false,
    };
    if let Some(cases) = cases {
        let figures = suite::measure(cases, &asked, &service, &caller).await?;
        print(&if arguments.json { json_line(&figures) } else { figures.listing() });
        print_error(&format!("{}\n", figures.summary()));
        return Ok(figures.wrong.is_empty());
    }
    let answer =
        service.ask(&asked, &caller).await.map_err(|error| refused(ErrorBody::from_question(error, caller.scopes)))?;
    let body = NaturalLanguageAnswer::from(&answer);
    if arguments.json {
        print(&json_line(&body));
    } else {
        print(&tree(&body).to_string());
    }
    Ok(answer.query.is_some())
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
