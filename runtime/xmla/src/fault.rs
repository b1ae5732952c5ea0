//! Faults, which are the errors of XMLA.
//!
//! In: an error. Out: a [`Fault`] with a code of XMLA, which the writer of envelopes writes as a SOAP fault. Not here:
//! HTTP. Faults are sent with status 200, because many clients do not show a fault with another status.

/// The kind of an error. It determines the number, and whether the client or the server is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultCode {
    /// The body is not an envelope, or the envelope does not contain a request of XMLA.
    InvalidEnvelope,
    /// A header has `mustUnderstand`, but is not supported.
    NotUnderstood,
    UnknownRowset,
    /// A restriction, property or parameter is invalid.
    InvalidArgument,
    UnknownSession,
    /// The statement is invalid, or its language is not DAX.
    InvalidStatement,
    Forbidden,
    /// The statement failed while it ran, or the server cannot answer now.
    Failed,
}

impl FaultCode {
    /// Returns the error number. Its upper half marks a fatal error of Analysis Services.
    pub fn number(self) -> u32 {
        match self {
            FaultCode::InvalidEnvelope => 0xC10E_0001,
            FaultCode::InvalidStatement => 0xC10E_0002,
            FaultCode::NotUnderstood => 0xC10E_0003,
            FaultCode::UnknownRowset => 0xC10E_0004,
            FaultCode::InvalidArgument => 0xC10E_0005,
            FaultCode::UnknownSession => 0xC10C_000A,
            FaultCode::Forbidden => 0xC10E_0006,
            FaultCode::Failed => 0xC10E_0007,
        }
    }

    /// Returns the text of the element `faultcode`.
    pub fn name(self) -> String {
        match self {
            FaultCode::NotUnderstood => "soap:MustUnderstand".to_owned(),
            _ => format!("XMLAnalysisError.0x{:08x}", self.number()),
        }
    }
}

/// The error of a request that has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub code: FaultCode,
    pub message: String,
}

impl Fault {
    pub fn new(code: FaultCode, message: impl Into<String>) -> Self {
        Fault { code, message: message.into() }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Fault::new(FaultCode::InvalidArgument, message)
    }
}
