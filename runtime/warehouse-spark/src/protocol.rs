//! The messages of Spark Connect that this adapter sends and reads.
//!
//! Source: the files `spark/connect/*.proto` of Apache Spark 4.2. Only the fields in use are declared. That is safe,
//! because protocol buffers skip unknown fields, and tags never change their meaning. The crate
//! `apache-spark-connect-proto` declares all fields. It is not used, because its build needs an installed `protoc`,
//! which `cargo build` cannot provide. Not here: streaming queries, machine learning and artifacts.

mod catalog;
mod errors;
mod plans;
mod requests;
mod responses;
mod types;

pub(crate) use catalog::{Catalog, CatalogCall, ListColumns, ListTables};
#[cfg(test)]
pub(crate) use errors::Any;
pub(crate) use errors::{ERROR_INFO, ErrorInfo, RpcStatus};
pub(crate) use plans::{
    Command, CommandKind, DecimalLiteral, Expression, ExpressionKind, Literal, LiteralKind, OpType, Plan, RelType,
    Relation, Sql, SqlCommand,
};
pub(crate) use requests::{
    Analyze, AnalyzePlanRequest, AnalyzeSchema, ConfigOperation, ConfigOperationKind, ConfigRequest, ConfigSet,
    ExecutePlanRequest, Interrupt, InterruptRequest, KeyValue, ReattachExecuteRequest, ReattachOptions, Release,
    ReleaseAll, ReleaseExecuteRequest, ReleaseSessionRequest, RequestOption, RequestOptionKind, UserContext,
    interrupt_type,
};
pub(crate) use responses::{
    AnalyzePlanResponse, Analyzed, ArrowBatch, ConfigResponse, ExecutePlanResponse, InterruptResponse,
    ReleaseExecuteResponse, ReleaseSessionResponse, ResponseType,
};
pub(crate) use types::{DataType, DataTypeKind, Empty, StructField, StructType};
