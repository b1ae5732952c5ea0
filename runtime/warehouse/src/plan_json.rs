//! The JSON that engines return for `EXPLAIN`.
//!
//! In: the rows of an `EXPLAIN` statement. Out: its JSON, and the nodes of the plan. Not here: the fields of each
//! engine.

use arrow::array::AsArray as _;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use serde_json::Value as Json;
use terrane_app::ports::warehouse::ResultSet;

/// The largest depth of plans that are walked.
const MAX_DEPTH: usize = 200;

/// Returns the JSON in the last column of the first row; `None` if the rows have none.
pub(crate) fn plan_of(rows: &ResultSet) -> Option<Json> {
    let batch = rows.batches.iter().find(|batch| batch.num_rows() > 0)?;
    let texts = cast(batch.columns().last()?, &DataType::Utf8).ok()?;
    serde_json::from_str(texts.as_string::<i32>().iter().next()??).ok()
}

/// Calls `visit` for each node below `node`, which has its inner nodes in the array `children`. Returns false if the
/// plan is too deep.
#[must_use]
pub(crate) fn for_each_node(node: &Json, children: &str, visit: &mut dyn FnMut(&Json)) -> bool {
    let mut open = vec![(node, 0)];
    while let Some((node, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return false;
        }
        visit(node);
        open.extend(node[children].as_array().into_iter().flatten().map(|inner| (inner, depth + 1)));
    }
    true
}
