//! Execute: rows of DAX, or of a rowset.
//!
//! In: a statement with its parameters. Out: a body whose rows are written while it is read.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use arrow::array::RecordBatch;
use axum::body::{Body, Bytes};
use futures_util::{StreamExt as _, stream};
use terrane_app::dax::{self, DaxAnswer, DaxError};
use terrane_app::query::log_unreadable;
use terrane_wire::ErrorBody;
use terrane_xmla::envelope::{self, Answered};
use terrane_xmla::parameters;
use terrane_xmla::request::{Execute, Properties};
use terrane_xmla::rows::{QueryRows, RowsetRows};
use terrane_xmla::statement::Statement;
use terrane_xmla::{Fault, FaultCode};

use super::{XmlaCaller, fault_code, rowset};
use crate::app::App;

/// The number of rows that are written at once.
const ROWS: usize = 1_000;

pub(super) async fn execute(
    app: App,
    caller: XmlaCaller,
    execute: Execute,
    session: Option<&str>,
) -> Result<Body, Fault> {
    match Statement::read(&execute.statement)? {
        Statement::Empty => Ok(envelope::empty(Answered::Execute, session).into()),
        Statement::Rowset(query) => {
            let rows = RowsetRows::of_query(&query, &execute.properties)?;
            rowset::respond(app, caller, rows, Answered::Execute, session).await
        }
        Statement::Dax => {
            let answers = run(&app, &caller, &execute).await?;
            Ok(written(answers, &execute.properties, session))
        }
    }
}

async fn run(app: &App, caller: &XmlaCaller, execute: &Execute) -> Result<Vec<DaxAnswer>, Fault> {
    let values = parameters::values(&execute.parameters)?;
    let run = dax::execute_all(&app.services.queries, &caller.context, &execute.statement, &values);
    let answer = match execute.properties.timeout {
        Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), run).await.map_err(|_| {
            let message = format!("the query ran longer than {seconds} seconds, the `Timeout` of the request");
            Fault::new(FaultCode::Failed, message)
        })?,
        None => run.await,
    };
    answer.map_err(|error| {
        let is_unreadable = matches!(error, DaxError::Problems(_));
        let refusal = terrane_wire::dax::refusal(&execute.statement, error, caller.context.scopes);
        if is_unreadable {
            log_unreadable(&refusal.message);
        }
        fault(refusal)
    })
}

/// Converts an error to a fault, with a suggestion for solving it.
fn fault(error: ErrorBody) -> Fault {
    let code = match fault_code(error.code) {
        // The envelope could be read, so its statement is the invalid part.
        FaultCode::InvalidEnvelope => FaultCode::InvalidStatement,
        code => code,
    };
    let suggestion =
        error.field("suggestion").and_then(|text| text.as_str()).map(|text| format!(". {text}")).unwrap_or_default();
    Fault::new(code, format!("{}{suggestion}", error.message))
}

/// Returns the body with the rows of each `EVALUATE`. Several results are wrapped in a list.
fn written(answers: Vec<DaxAnswer>, properties: &Properties, session: Option<&str>) -> Body {
    let is_list = answers.len() > 1;
    let results = answers.into_iter().map(|answer| Rows {
        rows: QueryRows::new(answer.columns, &answer.types, &answer.formats, answer.batches.first(), properties),
        batches: answer.batches.into_iter(),
        warnings: answer.warnings,
        open: None,
        is_begun: false,
    });
    let results: VecDeque<Rows> = results.collect();
    let mut head = envelope::head(Answered::Execute, session);
    if is_list {
        envelope::write_results_head(&mut head);
    }
    let parts = Parts { results, is_list, head: Some(head) };
    let bytes = stream::unfold(Some(parts), |parts| async move {
        let mut parts = parts?;
        let (out, has_more) = parts.next();
        Some((Ok::<_, Infallible>(Bytes::from(out)), has_more.then_some(parts)))
    });
    // Compression polls a body again after its end, so the stream is fused.
    Body::from_stream(bytes.fuse())
}

/// The results that are still to be sent.
struct Parts {
    results: VecDeque<Rows>,
    is_list: bool,
    head: Option<Vec<u8>>,
}

/// The rows of a result that are still to be sent.
struct Rows {
    rows: QueryRows,
    batches: std::vec::IntoIter<RecordBatch>,
    warnings: Vec<String>,
    /// The current batch, and the number of its rows that were sent.
    open: Option<(RecordBatch, usize)>,
    is_begun: bool,
}

impl Parts {
    /// Returns the next bytes, and whether there are more.
    fn next(&mut self) -> (Vec<u8>, bool) {
        let mut out = self.head.take().unwrap_or_default();
        while let Some(result) = self.results.front_mut() {
            if result.write_part(&mut out) {
                return (out, true);
            }
            self.results.pop_front();
        }
        if self.is_list {
            envelope::write_results_foot(&mut out);
        }
        envelope::write_foot(Answered::Execute, &mut out);
        (out, false)
    }
}

impl Rows {
    /// Appends the next rows and returns true, or appends the end of the result and returns false.
    fn write_part(&mut self, out: &mut Vec<u8>) -> bool {
        if !std::mem::replace(&mut self.is_begun, true) {
            self.rows.write_head(out);
        }
        let Some((batch, from)) = self.open.take().or_else(|| self.batches.next().map(|batch| (batch, 0))) else {
            envelope::write_warnings(&self.warnings, out);
            envelope::write_rowset_foot(out);
            return false;
        };
        let count = ROWS.min(batch.num_rows() - from);
        self.rows.write(&batch.slice(from, count), out);
        let sent = from + count;
        self.open = (sent < batch.num_rows()).then_some((batch, sent));
        true
    }
}
