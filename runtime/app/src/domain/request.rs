//! The context of one request: caller, rights, surface, and the names that logs use for it.

use std::net::IpAddr;
use std::sync::Arc;

use terrane_compiler::SecurityContext;

use super::{AuthMethod, RequestOrigin, Scope, Scopes, TraceContext};

/// The caller of a request and the facts about the request that use cases need.
#[derive(Debug, Clone, Default)]
pub struct RequestContext {
    pub caller: SecurityContext,
    pub correlation_id: Arc<str>,
    /// The span of the request; `None` if tracing is off.
    pub trace: Option<TraceContext>,
    /// The tenant whose share of permits a query uses; `None` on a server without tenants.
    pub tenant: Option<Arc<str>>,
    pub scopes: Scopes,
    /// The interface through which the request came in.
    pub surface: Surface,
    /// The purpose of the request's queries, for metrics and limits.
    pub kind: QueryKind,
    /// The client's address; `None` for a request from this process.
    pub client: Option<IpAddr>,
    pub target: RequestTarget,
}

impl RequestContext {
    /// Returns the context of a request by the operator of this machine, who acts as `caller`.
    pub fn operator(caller: SecurityContext) -> Self {
        let caller = SecurityContext { auth_method: AuthMethod::Operator, ..caller };
        RequestContext { caller, scopes: Scopes::READ, ..RequestContext::default() }
    }

    /// Returns the source of the request, for audit records.
    pub fn origin(&self) -> RequestOrigin {
        RequestOrigin { client: self.client, correlation_id: self.logged_correlation_id() }
    }

    /// Returns the correlation id; `None` if it is empty.
    pub fn logged_correlation_id(&self) -> Option<Arc<str>> {
        Some(self.correlation_id.clone()).filter(|id| !id.is_empty())
    }

    /// Returns the context of the same request for queries of a different kind.
    #[must_use]
    pub fn with_kind(&self, kind: QueryKind) -> Self {
        RequestContext { kind, ..self.clone() }
    }
}

/// The name of a request's operation in the log and the audit log.
#[derive(Debug, Clone, Default)]
pub struct RequestTarget {
    /// A verb, such as an HTTP method.
    pub action: &'static str,
    /// The resource as the caller wrote it, such as a path without its query string.
    pub resource: Arc<str>,
    /// The registered pattern of the resource. Callers cannot invent patterns, so audit records of denials that differ
    /// only in the resource can be counted as one.
    pub pattern: &'static str,
    /// The scope that the operation requires; `None` if it requires an identity only.
    pub required: Option<Scope>,
}

/// The interface through which a request came in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Surface {
    Rest,
    Graphql,
    Dax,
    Xmla,
    AsyncJob,
    SqlOnly,
    /// The server itself or the command line.
    #[default]
    Internal,
}

impl Surface {
    pub fn as_str(self) -> &'static str {
        match self {
            Surface::Rest => "rest",
            Surface::Graphql => "graphql",
            Surface::Dax => "dax",
            Surface::Xmla => "xmla",
            Surface::AsyncJob => "async_job",
            Surface::SqlOnly => "sql_only",
            Surface::Internal => "internal",
        }
    }
}

/// The purpose of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum QueryKind {
    /// One page of rows, with at most `query.max_limit` rows.
    #[default]
    Rest,
    /// One page of rows for a GraphQL field, with at most `query.max_limit` rows.
    Graphql,
    /// An export of at most `query.max_export_rows` rows.
    Export,
    /// The statement of a query, which is not run.
    Sql,
    /// An explanation of the statement.
    Explain,
    /// The warehouse's own plan of the statement.
    Plan,
    /// Statistics of a cube's columns.
    Profile,
    /// An asynchronous query, up to `query.max_export_rows`.
    Job,
}

impl QueryKind {
    pub fn as_str(self) -> &'static str {
        match self {
            QueryKind::Rest => "rest",
            QueryKind::Graphql => "graphql",
            QueryKind::Export => "export",
            QueryKind::Sql => "sql",
            QueryKind::Explain => "explain",
            QueryKind::Plan => "plan",
            QueryKind::Profile => "profile",
            QueryKind::Job => "job",
        }
    }
}
