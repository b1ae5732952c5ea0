//! Definitions to a model.

use std::collections::HashMap;

use super::Model;
use crate::diagnostic::Diagnostic;
use crate::project::Definitions;

/// Resolves every reference. What is broken is reported and left out; the rest stays usable.
pub fn build(_definitions: &Definitions) -> (Model, Vec<Diagnostic>) {
    let model = Model {
        project: "".into(),
        cubes: Vec::new(),
        metrics: Vec::new(),
        cube_names: HashMap::new(),
        metric_names: HashMap::new(),
        reach: Vec::new(),
    };
    (model, Vec::new())
}
