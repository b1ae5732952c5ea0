//! Invariants that need no oracle: the product held against itself.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value as Json;
use terrane_compiler::query::SemanticQuery;

use crate::generate::Generator;
use crate::product::{Answered, Product, Served};
use crate::world::World;

/// A query that was answered as it should be.
pub type Checked = (Json, SemanticQuery, Answered);

pub fn within(
    _served: &Served<'_>,
    _checked: &[Checked],
    _generator: &mut Generator,
    _counts: &mut BTreeMap<&'static str, usize>,
) -> Vec<(String, Json)> {
    Vec::new()
}

pub fn between(
    _product: &Product,
    _world: &World,
    _checked: &[Checked],
    _counts: &mut BTreeMap<&'static str, usize>,
) -> Result<Vec<(String, Json)>> {
    Ok(Vec::new())
}
