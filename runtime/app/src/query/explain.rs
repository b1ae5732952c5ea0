//! Why a query is answered as it is, and how the warehouse would go about it.
//!
//! In: a query and who asks. Out: the compiler's explanation; on demand, the warehouse's plan. Not
//! here: who may see that plan. Its numbers are statistics of data, so that is for the surfaces.

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::DataType;
use terrane_compiler::explanation::{Explanation, explain};
use terrane_compiler::query::SemanticQuery;

use super::{Extent, QueryService, RequestContext, RunError, logged};
use crate::ports::observer::QueryKind;
use crate::ports::warehouse::Statement;

impl QueryService {
    /// Explains a query; nothing is executed.
    ///
    /// # Errors
    /// As [`QueryService::sql`].
    pub async fn explain(&self, context: &RequestContext, query: &SemanticQuery) -> Result<Explanation, RunError> {
        let snapshot = self.catalog.snapshot();
        let mut tally = self.tally(&snapshot, context, query, QueryKind::Explain);
        let environment = self.environment(Extent::Page);
        let judged = self.judge(&snapshot, context, query, &environment, &tally).await;
        let explained = judged.and_then(|judged| {
            explain(&snapshot.profile, query, &judged.authorized, &environment).map_err(RunError::from)
        });
        tally.end(&explained);
        explained
    }

    /// The warehouse's own plan, in its own words. `None`: it explains nothing.
    ///
    /// # Errors
    /// [`RunError`]
    pub async fn warehouse_plan(
        &self,
        context: &RequestContext,
        query: &SemanticQuery,
        explanation: &Explanation,
    ) -> Result<Option<String>, RunError> {
        let Some(printed) = &explanation.explain_statement else { return Ok(None) };
        let timeout = self.settings.timeout;
        let mut tally = self.tally(&self.catalog.snapshot(), context, query, QueryKind::Plan);
        let ask = async {
            let _turn = self.gate.enter(context.tenant.as_ref()).await?;
            tally.ask();
            let statement = Statement { text: &printed.text, params: &printed.params, columns: &[] };
            let rows = self.warehouse.execute(statement, timeout).await;
            rows.map_err(|error| RunError::from_warehouse(error, timeout))
        };
        let rows = self.in_time(ask).await;
        tally.end(&rows);
        let rows = logged(&tally, rows)?;
        let lines: Vec<String> = rows.batches.iter().flat_map(last_texts).collect();
        Ok(Some(lines.join("\n")))
    }
}

/// Engines that name the kind of a plan do so in a column before it.
fn last_texts(batch: &RecordBatch) -> Vec<String> {
    let Some(column) = batch.columns().last() else { return Vec::new() };
    let Ok(texts) = arrow::compute::cast(column, &DataType::Utf8) else { return Vec::new() };
    let texts = texts.as_string::<i32>();
    texts.iter().flatten().map(str::to_owned).collect()
}
