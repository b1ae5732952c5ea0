//! Compares the built relations with the current definitions.
//!
//! In: the relations with a marker. Out: the models that queries can read from their relations, and the relations whose
//! contents differ from the definitions. A fingerprint covers all definitions on which a model's rows depend: the SQL
//! of the model and of all models that it reads, each with its materialization and the place of its relation.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use terrane_compiler::model::ModelQueries;
use terrane_compiler::project::{Built, Definitions, Materialization};

use crate::ports::builder::BuiltRelation;

/// Returns the fingerprint of a model; `None` if the model cannot be read.
pub fn fingerprint(definitions: &Definitions, queries: &ModelQueries, index: usize) -> Option<Arc<str>> {
    let mut hash = Sha256::new();
    for at in queries.needs(index).iter().copied().chain([index]) {
        let model = &definitions.models[at];
        let (schema, name) = model.built_as().unwrap_or(("", &model.name.value));
        for part in [schema, name, model.materialization.as_str(), queries.text(at)?] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    Some(hex::encode(hash.finalize()).into())
}

/// Compares the relations of this project with its models. Relations of other projects count as ordinary tables.
pub(crate) fn current_builds(definitions: &Definitions, held: &[BuiltRelation]) -> Built {
    let own: Vec<&BuiltRelation> = held.iter().filter(|built| built.marker.project == definitions.project).collect();
    let mut built = Built::default();
    if own.is_empty() {
        return built;
    }
    let queries = ModelQueries::new(definitions);
    for relation in own {
        let is_its = |name: &str| {
            let index = definitions.models.iter().position(|model| &*model.name.value == name)?;
            let model = &definitions.models[index];
            let is_stored_so = relation.is_view == (model.materialization == Materialization::View)
                && model.built_as() == Some((&relation.schema, &relation.name));
            let is_of = fingerprint(definitions, &queries, index)? == relation.marker.fingerprint;
            (is_stored_so && is_of).then(|| Arc::clone(&model.name.value))
        };
        match is_its(&relation.marker.model) {
            Some(model) => {
                built.current.insert(model);
            }
            None => {
                built.outdated.insert(format!("{}.{}", relation.schema, relation.name).to_lowercase());
            }
        }
    }
    built
}
