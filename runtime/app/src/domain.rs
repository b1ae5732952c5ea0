//! Types that use cases and ports share: callers, their rights, the requests that they send, and names of data.
//!
//! Plain types without behavior. Not here: use cases and ports, which this module does not import.

mod data_version;
mod identity;
mod precondition;
mod request;
mod scope;
mod secret;
mod series;
mod trace;

pub use data_version::DataVersion;
pub use identity::{AuthMethod, Credential, Identity, RequestOrigin};
pub use precondition::{Precondition, PreconditionError};
pub use request::{QueryKind, RequestContext, RequestTarget, Surface};
pub use scope::{Scope, Scopes};
pub use secret::SecretHash;
pub(crate) use series::qualified;
pub use series::{SeriesKey, SeriesValue};
pub use trace::{SpanId, TraceContext, TraceId};
