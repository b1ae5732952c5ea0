//! The responses of the service (`base.proto`).

use prost::bytes::Bytes;
use prost::{Message, Oneof};

use super::DataType;
use super::types::Empty;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecutePlanResponse {
    #[prost(string, tag = "13")]
    pub(crate) response_id: String,
    #[prost(string, tag = "15")]
    pub(crate) server_side_session_id: String,
    #[prost(message, optional, tag = "7")]
    pub(crate) schema: Option<DataType>,
    #[prost(oneof = "ResponseType", tags = "2, 14")]
    pub(crate) response_type: Option<ResponseType>,
}

/// The kinds of responses in use. Other kinds, such as progress reports, are decoded as `None`.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ResponseType {
    #[prost(message, tag = "2")]
    ArrowBatch(ArrowBatch),
    #[prost(message, tag = "14")]
    ResultComplete(Empty),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ArrowBatch {
    #[prost(int64, tag = "1")]
    pub(crate) row_count: i64,
    /// A stream in Arrow's IPC format, including the schema.
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) data: Bytes,
    /// The number of rows before this batch.
    #[prost(int64, optional, tag = "3")]
    pub(crate) start_offset: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnalyzePlanResponse {
    #[prost(oneof = "Analyzed", tags = "2, 8")]
    pub(crate) result: Option<Analyzed>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Analyzed {
    #[prost(message, tag = "2")]
    Schema(AnalyzedSchema),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnalyzedSchema {
    #[prost(message, optional, tag = "1")]
    pub(crate) schema: Option<DataType>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConfigResponse {
    #[prost(string, tag = "4")]
    pub(crate) server_side_session_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InterruptResponse {
    #[prost(string, repeated, tag = "2")]
    pub(crate) interrupted_ids: Vec<String>,
}

pub(crate) type ReleaseExecuteResponse = Empty;
pub(crate) type ReleaseSessionResponse = Empty;
