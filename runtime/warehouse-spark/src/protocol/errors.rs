//! Details of errors (`google/rpc/status.proto`, `google/rpc/error_details.proto`).

use std::collections::HashMap;

use prost::Message;

/// The type URL of [`ErrorInfo`].
pub(crate) const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Any {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ErrorInfo {
    /// The class of the exception.
    #[prost(string, tag = "1")]
    pub(crate) reason: String,
    /// Details of the error, such as `errorClass` and `sqlState`.
    #[prost(map = "string, string", tag = "3")]
    pub(crate) metadata: HashMap<String, String>,
}
