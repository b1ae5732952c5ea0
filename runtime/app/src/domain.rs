//! Types that use cases and ports share: callers, their rights, and the requests that they send.
//!
//! Plain types without behavior. Not here: use cases and ports, which this module does not import.

mod identity;
mod precondition;
mod request;
mod scope;
mod trace;

pub use identity::{AuthMethod, Credential, Identity, RequestOrigin};
pub use precondition::{Precondition, PreconditionError};
pub use request::{QueryKind, RequestContext, RequestTarget, Surface};
pub use scope::{Scope, Scopes};
pub use trace::{SpanId, TraceContext, TraceId};
