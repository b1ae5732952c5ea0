//! Creates runnable queries from SQL models.
//!
//! In: [`Definitions`]. Out: a complete query for each model. The models that it reads are named queries before its own
//! SQL, in dependency order. They contain the models' SQL, or select all rows of the tables that the models were built
//! as. Not here: running anything.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::relation::{Models, built_relation, over_built};
use crate::diagnostic::Diagnostic;
use crate::project::{Definitions, quote_name};
use crate::snippet::grammar::grammar;
// This import goes against the order of the modules, because one file, `sql/print.rs`, writes SQL as text.
use crate::sql::{print_queries, print_rows_of};

/// One model's query.
#[derive(Debug, Clone)]
pub struct RunnableModel {
    /// The index of the model in [`Definitions::models`].
    pub index: usize,
    /// The statement; `None` if the model, or one that it reads, cannot be read.
    pub text: Option<Arc<str>>,
    /// Diagnostics of this model's own text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Returns every model with its complete text and diagnostics, in dependency order.
pub fn runnable_models(definitions: &Definitions) -> Vec<RunnableModel> {
    let queries = ModelQueries::new(definitions);
    let indexes = 0..definitions.models.len();
    indexes
        .map(|index| {
            let file = &definitions.models[index].name.origin.file.path;
            let is_own = |diagnostic: &&Diagnostic| diagnostic.span.as_ref().is_some_and(|span| span.file == *file);
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
    /// The name, quoted for SQL if necessary.
    quoted_name: String,
    /// The model's SQL; `None` if it cannot be read.
    text: Option<Arc<str>>,
    /// All models that it reads, directly or through other models. Each has a smaller index.
    needs: BTreeSet<usize>,
    /// SQL that selects all rows of the built model; `None` if the model is never built.
    built_rows: Option<Arc<str>>,
}

impl ModelQueries {
    /// Checks the SQL of all models.
    pub fn new(definitions: &Definitions) -> Self {
        let dialect = grammar(&definitions.warehouse);
        let mut diagnostics = Vec::new();
        let models = Models::new(definitions, &*dialect, &mut diagnostics);
        let index: HashMap<&str, usize> =
            definitions.models.iter().enumerate().map(|(at, model)| (&*model.name.value, at)).collect();
        // Models are in dependency order, so `queries` already contains the models that a model reads.
        let mut queries: Vec<ModelQuery> = Vec::with_capacity(definitions.models.len());
        for (at, model) in definitions.models.iter().enumerate() {
            let mut needs = BTreeSet::new();
            for direct in model.refs.iter().filter_map(|reference| index.get(&*reference.name)) {
                needs.insert(*direct);
                needs.extend(queries.get(*direct).into_iter().flat_map(|query| &query.needs));
            }
            queries.push(ModelQuery {
                name: Arc::clone(&model.name.value),
                quoted_name: quote_name(&model.name.value, &*dialect),
                text: models.text(at).cloned(),
                needs,
                built_rows: built_relation(model, &*dialect).map(|relation| print_rows_of(&relation)),
            });
        }
        ModelQueries { models: queries, diagnostics }
    }

    /// Returns the indexes of all models that a model reads, directly or through other models.
    pub fn needs(&self, index: usize) -> &BTreeSet<usize> {
        &self.models[index].needs
    }

    /// Returns a model's own SQL; `None` if it cannot be read.
    pub fn text(&self, index: usize) -> Option<&Arc<str>> {
        self.models[index].text.as_ref()
    }

    /// Returns a model's query with every model that it reads as a named query. `None` if one of them cannot be read.
    pub fn complete(&self, index: usize) -> Option<Arc<str>> {
        self.over(index, &BTreeSet::new())
    }

    /// Returns a model's query, which reads the models of `built` from their built tables. `None` if one of the models
    /// cannot be read.
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
        let parts = named.into_iter().map(|(name, text)| (self.models[by_name[&*name]].quoted_name.clone(), text));
        let parts: Vec<(String, Arc<str>)> = parts.chain([(own.quoted_name.clone(), Arc::clone(text))]).collect();
        Some(print_queries(&parts))
    }
}
