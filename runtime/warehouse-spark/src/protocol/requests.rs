//! The requests of the service (`base.proto`).

use prost::{Message, Oneof};

use super::Plan;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UserContext {
    #[prost(string, tag = "1")]
    pub(crate) user_id: String,
    #[prost(string, tag = "2")]
    pub(crate) user_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecutePlanRequest {
    #[prost(string, tag = "1")]
    pub(crate) session_id: String,
    #[prost(string, optional, tag = "8")]
    pub(crate) client_observed_server_side_session_id: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) user_context: Option<UserContext>,
    #[prost(string, optional, tag = "6")]
    pub(crate) operation_id: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(crate) plan: Option<Plan>,
    #[prost(string, optional, tag = "4")]
    pub(crate) client_type: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) request_options: Vec<RequestOption>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct RequestOption {
    #[prost(oneof = "RequestOptionKind", tags = "1")]
    pub(crate) request_option: Option<RequestOptionKind>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
pub(crate) enum RequestOptionKind {
    #[prost(message, tag = "1")]
    Reattach(ReattachOptions),
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ReattachOptions {
    #[prost(bool, tag = "1")]
    pub(crate) reattachable: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReattachExecuteRequest {
    #[prost(string, tag = "1")]
    pub(crate) session_id: String,
    #[prost(string, optional, tag = "6")]
    pub(crate) client_observed_server_side_session_id: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) user_context: Option<UserContext>,
    #[prost(string, tag = "3")]
    pub(crate) operation_id: String,
    #[prost(string, optional, tag = "4")]
    pub(crate) client_type: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub(crate) last_response_id: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReleaseExecuteRequest {
    #[prost(string, tag = "1")]
    pub(crate) session_id: String,
    #[prost(string, optional, tag = "7")]
    pub(crate) client_observed_server_side_session_id: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) user_context: Option<UserContext>,
    #[prost(string, tag = "3")]
    pub(crate) operation_id: String,
    #[prost(string, optional, tag = "4")]
    pub(crate) client_type: Option<String>,
    #[prost(oneof = "Release", tags = "5")]
    pub(crate) release: Option<Release>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
pub(crate) enum Release {
    #[prost(message, tag = "5")]
    All(ReleaseAll),
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ReleaseAll {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnalyzePlanRequest {
    #[prost(string, tag = "1")]
    pub(crate) session_id: String,
    #[prost(string, optional, tag = "17")]
    pub(crate) client_observed_server_side_session_id: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) user_context: Option<UserContext>,
    #[prost(string, optional, tag = "3")]
    pub(crate) client_type: Option<String>,
    #[prost(oneof = "Analyze", tags = "4, 10")]
    pub(crate) analyze: Option<Analyze>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Analyze {
    #[prost(message, tag = "4")]
    Schema(AnalyzeSchema),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnalyzeSchema {
    #[prost(message, optional, tag = "1")]
    pub(crate) plan: Option<Plan>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConfigRequest {
    #[prost(string, tag = "1")]
    pub(crate) session_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) user_context: Option<UserContext>,
    #[prost(message, optional, tag = "3")]
    pub(crate) operation: Option<ConfigOperation>,
    #[prost(string, optional, tag = "4")]
    pub(crate) client_type: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConfigOperation {
    #[prost(oneof = "ConfigOperationKind", tags = "1")]
    pub(crate) op_type: Option<ConfigOperationKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ConfigOperationKind {
    #[prost(message, tag = "1")]
    Set(ConfigSet),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConfigSet {
    #[prost(message, repeated, tag = "1")]
    pub(crate) pairs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, optional, tag = "2")]
    pub(crate) value: Option<String>,
}

/// The values of the field `interrupt_type`.
pub(crate) mod interrupt_type {
    pub(crate) const OPERATION_ID: i32 = 3;
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InterruptRequest {
    #[prost(string, tag = "1")]
    pub(crate) session_id: String,
    #[prost(string, optional, tag = "7")]
    pub(crate) client_observed_server_side_session_id: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) user_context: Option<UserContext>,
    #[prost(string, optional, tag = "3")]
    pub(crate) client_type: Option<String>,
    #[prost(int32, tag = "4")]
    pub(crate) interrupt_type: i32,
    #[prost(oneof = "Interrupt", tags = "6")]
    pub(crate) interrupt: Option<Interrupt>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Interrupt {
    #[prost(string, tag = "6")]
    OperationId(String),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReleaseSessionRequest {
    #[prost(string, tag = "1")]
    pub(crate) session_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) user_context: Option<UserContext>,
    #[prost(string, optional, tag = "3")]
    pub(crate) client_type: Option<String>,
}
