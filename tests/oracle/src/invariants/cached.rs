//! I4: the result cache changes no answer.
//!
//! In: queries with a correct answer. Out: the queries whose cached answer differs from the computed answer for the
//! same caller. Two callers with different attributes send the queries in turn; then rows are removed, and both send
//! the queries again. Afterwards the data differs from the world.

use anyhow::Result;
use serde_json::Value as Json;
use terrane_app::query::CacheControl;

use super::{Checked, Counts};
use crate::compare::is_equal;
use crate::generate::Generator;
use crate::product::{Asker, Product, Served};
use crate::world::{World, is_referenced, removal};

const NAME: &str = "I4 the cache changes nothing";
const HITS: &str = "I4 answers from the cache";
/// The callers of the four requests. Each sends two, so that the second one is answered from the cache.
const TURNS: [Asker; 4] = [Asker::Usual, Asker::Other, Asker::Usual, Asker::Other];
const QUERIES: usize = 3;

/// The way in which the cache is informed of changed data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataReport {
    Sent,
    /// A planted mistake: the cache is not informed of the change.
    Forgotten,
}

/// Checks I4 on one loaded world.
///
/// # Errors
/// A row cannot be removed.
pub fn cached(
    (product, served): (&Product, &Served<'_>),
    world: &World,
    checked: &[Checked],
    generator: &mut Generator,
    (counts, report): (&mut Counts, DataReport),
) -> Result<Vec<(String, Json)>> {
    let chosen = generator.random.some(checked, QUERIES);
    let mut broken = ask(served, &chosen, counts);
    for cube in world.cubes.iter().filter(|cube| !cube.rows.is_empty() && !is_referenced(world, cube)) {
        product.execute(&removal(cube))?;
    }
    if report == DataReport::Sent {
        served.invalidate();
    }
    broken.extend(ask(served, &chosen, counts));
    Ok(broken)
}

fn ask(served: &Served<'_>, checked: &[Checked], counts: &mut Counts) -> Vec<(String, Json)> {
    let mut broken = Vec::new();
    let bypass = CacheControl { bypass: true, ..CacheControl::default() };
    for (body, query, _) in checked {
        let answers = TURNS.map(|asker| (asker, served.run_as(query, asker, CacheControl::default())));
        for asker in [Asker::Usual, Asker::Other] {
            let (computed, _) = served.run_as(query, asker, bypass);
            for (_, (answer, is_cached)) in answers.iter().filter(|(other, _)| *other == asker) {
                *counts.entry(NAME).or_default() += 1;
                *counts.entry(HITS).or_default() += usize::from(*is_cached);
                if !is_equal(answer, &computed) {
                    broken.push((format!("{NAME}: it does for {asker:?}"), body.clone()));
                }
            }
        }
    }
    broken
}
