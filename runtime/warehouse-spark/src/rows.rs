//! The rows of one operation.
//!
//! In: the responses of an operation. Out: batches of one schema. The number of rows is compared with the server's
//! number. A server ends a long stream after some minutes; the adapter then continues with another stream after the
//! last response. An operation is only complete when the server reports it.

use std::collections::VecDeque;
use std::io::Cursor;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow_ipc::reader::StreamReader;
use terrane_app::ports::warehouse::WarehouseError;
use tonic::Streaming;

use crate::columns;
use crate::failure::{Failure, refused, unavailable};
use crate::protocol::{ArrowBatch, DataType, ExecutePlanResponse, Plan, ResponseType};
use crate::session::Session;

/// The number of consecutive streams without a response after which the operation counts as lost.
const MAX_EMPTY_STREAMS: u32 = 3;

#[derive(Debug)]
pub(crate) struct Rows {
    session: Arc<Session>,
    operation: String,
    responses: Streaming<ExecutePlanResponse>,
    /// The id of the last response, if there was one.
    last: Option<String>,
    empty_streams: u32,
    is_complete: bool,
    /// The type of the rows, which the server may send before the first batch.
    described: Option<DataType>,
    schema: Option<SchemaRef>,
    row_count: i64,
    /// The batches that were decoded but not returned yet.
    decoded: VecDeque<RecordBatch>,
}

impl Rows {
    /// Starts to run a plan.
    ///
    /// # Errors
    /// Returns the server's error.
    pub(crate) async fn start(session: &Arc<Session>, operation: &str, plan: Plan) -> Result<Rows, WarehouseError> {
        let responses = session.execute(operation, plan).await.map_err(Failure::into_error)?;
        Ok(Rows {
            session: Arc::clone(session),
            operation: operation.to_owned(),
            responses,
            last: None,
            empty_streams: 0,
            is_complete: false,
            described: None,
            schema: None,
            row_count: 0,
            decoded: VecDeque::new(),
        })
    }

    /// Waits for the schema of the rows.
    ///
    /// # Errors
    /// Returns the server's error, or an error for a column without an Arrow type.
    pub(crate) async fn schema(&mut self) -> Result<SchemaRef, WarehouseError> {
        while self.schema.is_none() && !self.is_complete {
            self.read().await?;
        }
        let schema = match (&self.schema, &self.described) {
            (Some(schema), _) => Arc::clone(schema),
            (None, Some(described)) => columns::described(described)?,
            (None, None) => Arc::new(Schema::empty()),
        };
        self.schema = Some(Arc::clone(&schema));
        Ok(schema)
    }

    /// Returns the next batch, or `None` after the last one.
    ///
    /// # Errors
    /// Returns the server's error. The operation has then ended.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, WarehouseError> {
        while self.decoded.is_empty() && !self.is_complete {
            self.read().await?;
        }
        Ok(self.decoded.pop_front())
    }

    /// Reads one response.
    async fn read(&mut self) -> Result<(), WarehouseError> {
        let Some(response) = self.responses.message().await.map_err(|status| Failure::from(status).error)? else {
            return self.reattach().await;
        };
        self.empty_streams = 0;
        if !response.response_id.is_empty() {
            self.last = Some(response.response_id);
        }
        if self.described.is_none() {
            self.described = response.schema;
        }
        match response.response_type {
            Some(ResponseType::ArrowBatch(batch)) => self.decode(batch),
            Some(ResponseType::ResultComplete(_)) => {
                self.is_complete = true;
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn reattach(&mut self) -> Result<(), WarehouseError> {
        if self.empty_streams == MAX_EMPTY_STREAMS {
            return Err(unavailable("the server ended the rows without their last batch".to_owned()));
        }
        self.empty_streams += 1;
        self.responses =
            self.session.reattach(&self.operation, self.last.as_deref()).await.map_err(Failure::into_error)?;
        Ok(())
    }

    fn decode(&mut self, batch: ArrowBatch) -> Result<(), WarehouseError> {
        let broken = |why: String| refused(format!("the server sent rows that cannot be read: {why}"));
        if batch.start_offset.is_some_and(|offset| offset != self.row_count) {
            return Err(broken(format!("row {} does not follow row {}", batch.start_offset(), self.row_count)));
        }
        let reader = StreamReader::try_new(Cursor::new(batch.data), None).map_err(|error| broken(error.to_string()))?;
        let schema = match &self.schema {
            Some(schema) => Arc::clone(schema),
            None => columns::of_batches(&reader.schema())?,
        };
        self.schema = Some(Arc::clone(&schema));
        let mut count = 0;
        for decoded in reader {
            let decoded = decoded.map_err(|error| broken(error.to_string()))?;
            count += decoded.num_rows() as i64;
            if decoded.num_rows() > 0 {
                self.decoded.push_back(columns::convert(&decoded, &schema)?);
            }
        }
        if count != batch.row_count {
            return Err(broken(format!("{count} rows instead of {}", batch.row_count)));
        }
        self.row_count += count;
        Ok(())
    }
}
