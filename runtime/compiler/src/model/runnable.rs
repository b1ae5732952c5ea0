//! SQL models as queries that run as they stand.
//!
//! In: [`Definitions`]. Out: each model's text with the models that it reads before it, as named queries, in
//! dependency order, or read from where they were built; and where in a model's file a warehouse's complaint
//! belongs. Not here: running anything.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::grammar::grammar;
use super::kept::KeptCubes;
use super::relation::{Models, built_relation, over_built};
use crate::diagnostic::{Diagnostic, Span};
use crate::project::{Definitions, ModelDefinition, quote_name};
use crate::sql::{print_queries, print_rows_of};

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
    let queries = ModelQueries::new(definitions, built);
    let indexes = 0..definitions.models.len();
    indexes
        .map(|index| {
            let file = &definitions.models[index].name.origin.file.path;
            let is_own = |told: &&Diagnostic| told.span.as_ref().is_some_and(|span| span.file == *file);
            let diagnostics = queries.diagnostics.iter().filter(is_own).cloned().collect();
            RunnableModel { index, text: queries.complete(index), diagnostics }
        })
        .collect()
}

/// The queries of all models, by their indexes in [`Definitions::models`].
#[derive(Debug)]
pub struct ModelQueries {
    models: Vec<ModelQuery>,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Debug)]
struct ModelQuery {
    name: Arc<str>,
    /// As it stands in SQL.
    written: String,
    /// `None`: it can't be read.
    text: Option<Arc<str>>,
    /// All models that it reads, those behind others too. Each has a smaller index.
    needs: BTreeSet<usize>,
    /// All rows of what it is built as; `None` where it never is.
    built_rows: Option<Arc<str>>,
}

impl ModelQueries {
    /// Texts that were checked when `built` was made are not checked again.
    pub fn new(definitions: &Definitions, built: &KeptCubes) -> Self {
        let dialect = grammar(&definitions.warehouse);
        let mut diagnostics = Vec::new();
        let models = Models::new(definitions, &*dialect, built.models_for(definitions), &mut diagnostics);
        let index: HashMap<&str, usize> =
            definitions.models.iter().enumerate().map(|(at, model)| (&*model.name.value, at)).collect();
        // Models stand in dependency order, so what one reads is known already.
        let mut queries: Vec<ModelQuery> = Vec::with_capacity(definitions.models.len());
        for (at, model) in definitions.models.iter().enumerate() {
            let mut needs = BTreeSet::new();
            for direct in model.refs.iter().filter_map(|reference| index.get(&*reference.name)) {
                needs.insert(*direct);
                needs.extend(queries.get(*direct).into_iter().flat_map(|query| &query.needs));
            }
            queries.push(ModelQuery {
                name: Arc::clone(&model.name.value),
                written: quote_name(&model.name.value, &*dialect),
                text: models.text(at).cloned(),
                needs,
                built_rows: built_relation(model, &*dialect).map(|relation| print_rows_of(&relation)),
            });
        }
        ModelQueries { models: queries, diagnostics }
    }

    /// All models that a model reads, those behind others too.
    pub fn needs(&self, index: usize) -> &BTreeSet<usize> {
        &self.models[index].needs
    }

    /// A model's own text; `None` where it can't be read.
    pub fn text(&self, index: usize) -> Option<&Arc<str>> {
        self.models[index].text.as_ref()
    }

    /// A model's query with every model that it reads. `None` where one of them can't be read.
    pub fn complete(&self, index: usize) -> Option<Arc<str>> {
        self.over(index, &BTreeSet::new())
    }

    /// The same over models that were built: those are read from where they are.
    pub fn over(&self, index: usize, built: &BTreeSet<usize>) -> Option<Arc<str>> {
        let own = &self.models[index];
        let text = own.text.as_ref()?;
        let needs: Option<Vec<(Arc<str>, Arc<str>)>> =
            own.needs.iter().map(|at| Some((self.models[*at].name.clone(), self.models[*at].text.clone()?))).collect();
        let by_name: HashMap<&str, usize> = own.needs.iter().map(|at| (&*self.models[*at].name, *at)).collect();
        let rows = |name: &str| {
            let at = by_name.get(name).filter(|at| built.contains(at))?;
            self.models[*at].built_rows.clone()
        };
        let named = over_built(&needs?, text, rows);
        let parts = named.into_iter().map(|(name, text)| (self.models[by_name[&*name]].written.clone(), text));
        let parts: Vec<(String, Arc<str>)> = parts.chain([(own.written.clone(), Arc::clone(text))]).collect();
        Some(print_queries(&parts))
    }
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

/// The name that the engine's own arrow points at; then what stands between quotes of any kind, or behind the
/// words that engines put before a name. Of a dotted name its last part too. What the engine only guesses at is
/// left out.
fn quoted(message: &str) -> impl Iterator<Item = &str> {
    const GUESSES: [&str; 5] = ["did you mean", "Did you mean", "Candidate", "LINE ", "HINT"];
    let end = GUESSES.iter().filter_map(|word| message.find(word)).min().unwrap_or(message.len());
    let mut rest = &message[..end];
    let bare = [" name ", " named ", "no such table: ", "no such column: "].into_iter().filter_map(move |word| {
        let after = &message[..end][message[..end].find(word)? + word.len()..];
        let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '$'));
        Some(after.split(is_end).next().unwrap_or_default().trim_end_matches('.'))
    });
    let names = std::iter::from_fn(move || {
        let open = rest.find(['"', '\'', '`'])?;
        let quote = rest[open..].chars().next()?;
        let after = &rest[open + 1..];
        let close = after.find(quote)?;
        rest = &after[close + 1..];
        Some(&after[..close])
    });
    let names = pointed_at(message).into_iter().chain(names).chain(bare);
    names.flat_map(|name| [Some(name), name.rsplit_once('.').map(|(_, last)| last)]).flatten().filter(|n| !n.is_empty())
}

/// The name above an arrow: `LINE 1: SELECT id FROM raw.orders` with a `^` in the line below.
fn pointed_at(message: &str) -> Option<&str> {
    let line = &message[message.find("LINE ")?..];
    let (line, below) = line.split_once('\n')?;
    let arrow = below.lines().next()?.find('^')?;
    let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'));
    line.get(arrow..)?.split(is_end).next()
}

/// The first place of a word, in any case.
pub(super) fn word_in(text: &str, word: &str) -> Option<usize> {
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
        assert_eq!(found("Table with name ordersx does not exist, did you mean \"pg.x\"?"), None);
        assert_eq!(found("Catalog Error: Table with name orders does not exist!\nDid you mean \"x\"?"), Some("orders"));
        let pointed = "Binder Error: not so\n\nLINE 1: SELECT amount, \"raw\".x FROM raw.orders\n                                    ^";
        assert_eq!(found(pointed), Some("raw.orders"));
        assert_eq!(found("out of memory"), None);
    }
}
