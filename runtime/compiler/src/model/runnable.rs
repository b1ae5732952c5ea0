//! SQL models as queries that run as they stand.
//!
//! In: [`Definitions`]. Out: each model's text with the models that it reads before it, as named queries, in
//! dependency order; and where in a model's file a warehouse's complaint belongs. Not here: running anything.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::grammar::grammar;
use super::kept::KeptCubes;
use super::relation::Models;
use crate::diagnostic::{Diagnostic, Span};
use crate::project::{Definitions, ModelDefinition, quote_name};
use crate::sql::print_queries;

/// One model's query.
#[derive(Debug, Clone)]
pub struct RunnableModel {
    /// Index into [`Definitions::models`].
    pub index: usize,
    /// What runs; `None` where the model, or one that it reads, can't be read.
    pub text: Option<Arc<str>>,
    /// Of this model's own text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Every model, in dependency order. Texts that were checked when `built` was made are not checked again.
pub fn runnable_models(definitions: &Definitions, built: &KeptCubes) -> Vec<RunnableModel> {
    let dialect = grammar(&definitions.warehouse);
    let mut diagnostics = Vec::new();
    let models = Models::new(definitions, &*dialect, built.models_for(definitions), &mut diagnostics);
    let index: HashMap<&str, usize> =
        definitions.models.iter().enumerate().map(|(at, model)| (&*model.name.value, at)).collect();
    // Models stand in dependency order, so what one reads is known already.
    let mut reads: Vec<BTreeSet<usize>> = Vec::with_capacity(definitions.models.len());
    let mut runnable = Vec::with_capacity(definitions.models.len());
    for (at, model) in definitions.models.iter().enumerate() {
        let mut needed = BTreeSet::new();
        for direct in model.refs.iter().filter_map(|reference| index.get(&*reference.name)) {
            needed.insert(*direct);
            needed.extend(reads.get(*direct).into_iter().flatten());
        }
        let parts: Option<Vec<(String, Arc<str>)>> = needed
            .iter()
            .chain(std::iter::once(&at))
            .map(|part| {
                let name = quote_name(&definitions.models[*part].name.value, &*dialect);
                Some((name, Arc::clone(models.text(*part)?)))
            })
            .collect();
        let text = parts.map(|parts| print_queries(&parts));
        let file = &model.name.origin.file.path;
        let own = diagnostics.iter().filter(|told| told.span.as_ref().is_some_and(|span| span.file == *file));
        runnable.push(RunnableModel { index: at, text, diagnostics: own.cloned().collect() });
        reads.push(needed);
    }
    runnable
}

/// Where a warehouse's complaint about a model belongs: at the first name it quotes that stands in the
/// model's text, else at the text's beginning.
pub fn place_of_complaint(model: &ModelDefinition, message: &str) -> Span {
    let text = &*model.sql.text;
    let found = quoted(message).find_map(|name| Some((word_in(text, name)?, name)));
    match found {
        Some((offset, name)) => model.sql.locate(offset, name.chars().count()),
        None => model.sql.locate(text.len() - text.trim_start().len(), 1),
    }
}

/// What stands between quotes of any kind; of a dotted name its last part too.
fn quoted(message: &str) -> impl Iterator<Item = &str> {
    let mut rest = message;
    let names = std::iter::from_fn(move || {
        let open = rest.find(['"', '\'', '`'])?;
        let quote = rest[open..].chars().next()?;
        let after = &rest[open + 1..];
        let close = after.find(quote)?;
        rest = &after[close + 1..];
        Some(&after[..close])
    });
    names.flat_map(|name| [Some(name), name.rsplit_once('.').map(|(_, last)| last)]).flatten().filter(|n| !n.is_empty())
}

/// The first place of a word, in any case.
fn word_in(text: &str, word: &str) -> Option<usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let (lower, wanted) = (text.to_ascii_lowercase(), word.to_ascii_lowercase());
    lower.match_indices(&wanted).map(|(at, _)| at).find(|at| {
        let before = lower[..*at].chars().next_back();
        let after = lower[at + wanted.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_found_by_the_names_they_quote() {
        let text = "SELECT amount, \"raw\".x FROM raw.orders";
        let found = |message: &str| quoted(message).find_map(|name| word_in(text, name)).map(|at| &text[at..]);
        assert_eq!(found("Referenced column \"Amount\" not found"), Some("amount, \"raw\".x FROM raw.orders"));
        assert_eq!(found("relation \"main.orders\" does not exist"), Some("orders"));
        assert_eq!(found("Table with name ordersx does not exist, did you mean \"pg.x\"?"), Some("x FROM raw.orders"));
        assert_eq!(found("out of memory"), None);
    }
}
