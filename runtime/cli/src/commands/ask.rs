//! `terrane ask`: reads a question in words as a query, and measures a suite of questions.
//!
//! In: a project and a question, or a file of questions. Out: the query with the meaning of each word, or choices; or
//! how many questions of a suite were read as expected.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use terrane_app::query::RequestContext;
use terrane_app::questions::{AskError, QuestionService, WordedQuestion};
use terrane_terminal::{TerminalText, Tree};
use terrane_wire::ErrorBody;
use terrane_wire::questions::NaturalLanguageAnswer;

use super::query::refused;
use super::{json_line, print, print_error};
use crate::caller;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring::{self, WarehouseUse};

/// The largest suite.
const MAX_QUESTIONS: usize = 10_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane ask examples/flights 'cancellation rate by carrier in 2013-02'
  terrane ask examples/flights 'top 5 carriers by flights' --json | jq .query
  terrane ask examples/flights --suite examples/flights/questions.yml

A suite is a list of {question, query} or {question, clarification: true}. The command fails if a question is read as
another query than the expected one.")]
pub struct AskArguments {
    /// The project: the folder that holds service_project.yml
    pub dir: PathBuf,
    /// The question
    #[arg(required_unless_present = "suite")]
    pub words: Vec<String>,
    /// The language of the question
    #[arg(long, default_value = "en", value_parser = ["en", "de"])]
    pub language: String,
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

/// Reads a question or a suite. Returns whether the question is clear, or no question of the suite was read wrongly.
///
/// # Errors
/// The project has errors, or the question or the suite is invalid.
pub async fn run(arguments: &AskArguments, project: Project) -> Result<bool, Failure> {
    let caller = caller::read(arguments.caller.as_deref())?;
    let (engine, _) = wiring::load(&project, WarehouseUse::Read).await?;
    let service = QuestionService::new(engine.queries.clone(), engine.search.clone());
    if let Some(file) = &arguments.suite {
        return suite(file, arguments, &service, &caller).await;
    }
    let question = WordedQuestion { text: arguments.words.join(" "), language: Some(arguments.language.clone()), runs: false };
    let answer = service
        .ask(&question, &caller)
        .await
        .map_err(|error| refused(ErrorBody::from_question(error, caller.scopes)))?;
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
    tree
}

/// A question of a suite.
struct Case {
    question: String,
    /// `None`: the question is to be asked back.
    expected: Option<Json>,
}

async fn suite(
    file: &Path,
    arguments: &AskArguments,
    service: &QuestionService,
    caller: &RequestContext,
) -> Result<bool, Failure> {
    let cases = cases(file)?;
    let (mut right, mut unclear, mut wrong) = (0_usize, 0_usize, Vec::new());
    for case in &cases {
        let question = WordedQuestion { text: case.question.clone(), language: Some(arguments.language.clone()), runs: false };
        let found = match service.ask(&question, caller).await {
            Ok(answer) => NaturalLanguageAnswer::from(&answer).query,
            Err(AskError::Question(_)) => Json::Null,
            Err(error) => return Err(refused(ErrorBody::from_question(error, caller.scopes))),
        };
        match (&case.expected, found) {
            (None, Json::Null) => right += 1,
            (Some(_), Json::Null) => unclear += 1,
            (Some(expected), found) if *expected == found => right += 1,
            (expected, found) => wrong.push(json!({"question": case.question, "expected": expected, "found": found})),
        }
    }
    if arguments.json {
        print(&json_line(&json!({"questions": cases.len(), "right": right, "unclear": unclear, "wrong": wrong})));
    } else {
        for one in &wrong {
            print(&format!("{}\n", TerminalText::spaced(&one.to_string())));
        }
        print_error(&format!(
            "{} questions: {right} right, {unclear} asked back, {} wrong\n",
            cases.len(),
            wrong.len()
        ));
    }
    Ok(wrong.is_empty())
}

fn cases(file: &Path) -> Result<Vec<Case>, Failure> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| Failure::new(format!("{name} cannot be read: {error}")))?;
    let list: Json =
        serde_saphyr::from_str(&text).map_err(|error| Failure::new(format!("{name} is not YAML: {error}")))?;
    let invalid = |at: usize| {
        let message = format!("{name}: entry {} is not a question", at + 1);
        Failure::new(message).hint("write {question: ..., query: {...}} or {question: ..., clarification: true}")
    };
    let entries = list.as_array().filter(|list| list.len() <= MAX_QUESTIONS);
    let entries = entries.ok_or_else(|| Failure::new(format!("{name} is not a list of at most 10000 questions")))?;
    entries
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            let question = entry["question"].as_str().ok_or_else(|| invalid(at))?.to_owned();
            match (entry.get("query"), entry.get("clarification")) {
                (Some(query @ Json::Object(_)), None) => Ok(Case { question, expected: Some(query.clone()) }),
                (None, Some(Json::Bool(true))) => Ok(Case { question, expected: None }),
                _ => Err(invalid(at)),
            }
        })
        .collect()
}
