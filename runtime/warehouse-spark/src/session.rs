//! A session of the server, over its own connection.
//!
//! In: plans. Out: rows, schemas. A session has the settings on which the dialect relies, whichever settings the server
//! has itself. Not here: the choice of a session for a statement (`pool`).

use std::sync::Arc;

use terrane_app::ports::warehouse::{Statement, WarehouseError};
use tonic::Streaming;
use tonic::transport::Certificate;

use crate::bind::arguments;
use crate::connection::{CLIENT_TYPE, Connection};
use crate::failure::{Failure, refused};
use crate::protocol::{
    Analyze, AnalyzePlanRequest, AnalyzePlanResponse, AnalyzeSchema, Analyzed, Command, CommandKind, ConfigOperation,
    ConfigOperationKind, ConfigRequest, ConfigResponse, ConfigSet, DataType, ExecutePlanRequest, ExecutePlanResponse,
    Interrupt, InterruptRequest, InterruptResponse, KeyValue, OpType, Plan, ReattachExecuteRequest, ReattachOptions,
    RelType, Relation, Release, ReleaseAll, ReleaseExecuteRequest, ReleaseExecuteResponse, ReleaseSessionRequest,
    ReleaseSessionResponse, RequestOption, RequestOptionKind, Sql, SqlCommand, UserContext, interrupt_type,
};
use crate::url::Address;

const EXECUTE: &str = "/spark.connect.SparkConnectService/ExecutePlan";
const REATTACH: &str = "/spark.connect.SparkConnectService/ReattachExecute";
const RELEASE: &str = "/spark.connect.SparkConnectService/ReleaseExecute";
const ANALYZE: &str = "/spark.connect.SparkConnectService/AnalyzePlan";
const CONFIG: &str = "/spark.connect.SparkConnectService/Config";
const INTERRUPT: &str = "/spark.connect.SparkConnectService/Interrupt";
const RELEASE_SESSION: &str = "/spark.connect.SparkConnectService/ReleaseSession";

/// The settings of each session: times in UTC, literals and names in the form that the dialect writes, errors instead
/// of nulls for values out of range, and batches in a form that this adapter can read.
const SETTINGS: &[(&str, &str)] = &[
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.timestampType", "TIMESTAMP_LTZ"),
    ("spark.sql.ansi.enabled", "true"),
    ("spark.sql.ansi.doubleQuotedIdentifiers", "false"),
    ("spark.sql.parser.escapedStringLiterals", "false"),
    ("spark.sql.variable.substitute", "false"),
    ("spark.sql.caseSensitive", "false"),
    ("spark.sql.groupByOrdinal", "true"),
    ("spark.sql.orderByOrdinal", "true"),
    ("spark.sql.execution.arrow.compression.codec", "none"),
];

/// The address of a server, and the certificate authority that signed its certificate.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) address: Arc<Address>,
    pub(crate) root: Option<Certificate>,
}

/// A session. The caller chooses the ids of its statements.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Connection,
    id: String,
    user: UserContext,
    /// The server's own id of the session, which differs after a restart of the server. Empty if the server has none.
    server_id: String,
}

impl Session {
    /// Connects, and opens a session with [`SETTINGS`].
    ///
    /// # Errors
    /// Returns `Unavailable`, or the server's error about a setting.
    pub(crate) async fn open(server: &Server) -> Result<Session, Failure> {
        let connection = Connection::open(&server.address, server.root.as_ref()).await?;
        let user = UserContext { user_id: server.address.user.clone(), user_name: server.address.user.clone() };
        let mut session = Session { connection, id: random_id()?, user, server_id: String::new() };
        let pair = |(key, value): &(&str, &str)| KeyValue { key: (*key).to_owned(), value: Some((*value).to_owned()) };
        let set = ConfigSet { pairs: SETTINGS.iter().map(pair).collect() };
        let request = ConfigRequest {
            session_id: session.id.clone(),
            user_context: session.user(),
            operation: Some(ConfigOperation { op_type: Some(ConfigOperationKind::Set(set)) }),
            client_type: client_type(),
        };
        let response: ConfigResponse = session.connection.call(CONFIG, request).await?;
        session.server_id = response.server_side_session_id;
        Ok(session)
    }

    /// Starts to run a plan. `operation` is the id of the operation.
    pub(crate) async fn execute(&self, operation: &str, plan: Plan) -> Result<Streaming<ExecutePlanResponse>, Failure> {
        let reattach = RequestOptionKind::Reattach(ReattachOptions { reattachable: true });
        let request = ExecutePlanRequest {
            session_id: self.id.clone(),
            client_observed_server_side_session_id: self.server_id(),
            user_context: self.user(),
            operation_id: Some(operation.to_owned()),
            plan: Some(plan),
            client_type: client_type(),
            request_options: vec![RequestOption { request_option: Some(reattach) }],
        };
        self.connection.stream(EXECUTE, request).await
    }

    /// Continues to read the responses of an operation after the response `last`.
    pub(crate) async fn reattach(
        &self,
        operation: &str,
        last: Option<&str>,
    ) -> Result<Streaming<ExecutePlanResponse>, Failure> {
        let request = ReattachExecuteRequest {
            session_id: self.id.clone(),
            client_observed_server_side_session_id: self.server_id(),
            user_context: self.user(),
            operation_id: operation.to_owned(),
            client_type: client_type(),
            last_response_id: last.map(str::to_owned),
        };
        self.connection.stream(REATTACH, request).await
    }

    /// Asks the server to release an operation that has ended.
    pub(crate) async fn release(&self, operation: &str) -> Result<(), Failure> {
        let request = ReleaseExecuteRequest {
            session_id: self.id.clone(),
            client_observed_server_side_session_id: self.server_id(),
            user_context: self.user(),
            operation_id: operation.to_owned(),
            client_type: client_type(),
            release: Some(Release::All(ReleaseAll {})),
        };
        let _: ReleaseExecuteResponse = self.connection.call(RELEASE, request).await?;
        Ok(())
    }

    /// Ends a running operation. The session can then be used again, even if the server has not forgotten the
    /// operation.
    pub(crate) async fn interrupt(&self, operation: &str) -> Result<(), Failure> {
        let request = InterruptRequest {
            session_id: self.id.clone(),
            client_observed_server_side_session_id: self.server_id(),
            user_context: self.user(),
            client_type: client_type(),
            interrupt_type: interrupt_type::OPERATION_ID,
            interrupt: Some(Interrupt::OperationId(operation.to_owned())),
        };
        let _: InterruptResponse = self.connection.call(INTERRUPT, request).await?;
        // The release may fail, because Spark refuses a release while the operation changes its state.
        let _ = self.release(operation).await;
        Ok(())
    }

    /// Returns the type of a plan's rows without running the plan. Returns `None` if the server sent no type.
    pub(crate) async fn describe(&self, plan: Plan) -> Result<Option<DataType>, Failure> {
        match self.analyze(Analyze::Schema(AnalyzeSchema { plan: Some(plan) })).await? {
            Some(Analyzed::Schema(schema)) => Ok(schema.schema),
            None => Ok(None),
        }
    }

    /// Checks that the server responds. Requests the type of a constant, which runs no query. The version of Spark is
    /// not requested, because some servers do not support that request.
    pub(crate) async fn probe(&self) -> Result<(), Failure> {
        let sql = Sql { query: "SELECT 1".to_owned(), pos_arguments: Vec::new() };
        self.describe(plan(OpType::Root(Relation { rel_type: Some(RelType::Sql(sql)) }))).await?;
        Ok(())
    }

    /// Ends the session on the server, including its running operations.
    pub(crate) async fn close(&self) -> Result<(), Failure> {
        let request = ReleaseSessionRequest {
            session_id: self.id.clone(),
            user_context: self.user(),
            client_type: client_type(),
        };
        let _: ReleaseSessionResponse = self.connection.call(RELEASE_SESSION, request).await?;
        Ok(())
    }

    async fn analyze(&self, analyze: Analyze) -> Result<Option<Analyzed>, Failure> {
        let request = AnalyzePlanRequest {
            session_id: self.id.clone(),
            client_observed_server_side_session_id: self.server_id(),
            user_context: self.user(),
            client_type: client_type(),
            analyze: Some(analyze),
        };
        let response: AnalyzePlanResponse = self.connection.call(ANALYZE, request).await?;
        Ok(response.result)
    }

    fn user(&self) -> Option<UserContext> {
        Some(self.user.clone())
    }

    fn server_id(&self) -> Option<String> {
        Some(self.server_id.clone()).filter(|id| !id.is_empty())
    }
}

fn client_type() -> Option<String> {
    Some(CLIENT_TYPE.to_owned())
}

/// Returns the plan of a query.
///
/// # Errors
/// A value cannot be bound.
pub(crate) fn query(statement: Statement<'_>) -> Result<Plan, WarehouseError> {
    let pos_arguments = arguments(statement.params).map_err(|error| refused(error.to_string()))?;
    let sql = Sql { query: statement.text.to_owned(), pos_arguments };
    Ok(plan(OpType::Root(Relation { rel_type: Some(RelType::Sql(sql)) })))
}

/// Returns the plan of a statement that is executed for its effect and returns no rows.
pub(crate) fn command(text: &str) -> Plan {
    let sql = Sql { query: text.to_owned(), pos_arguments: Vec::new() };
    let input = Some(Relation { rel_type: Some(RelType::Sql(sql)) });
    plan(OpType::Command(Command { command_type: Some(CommandKind::Sql(SqlCommand { input })) }))
}

pub(crate) fn plan(op_type: OpType) -> Plan {
    Plan { op_type: Some(op_type) }
}

/// Returns a random UUID of version 4, as Spark requires for the ids of sessions and operations.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn random_id() -> Result<String, WarehouseError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| refused(format!("no random numbers: {error}")))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Ok([&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex).join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_id_is_a_uuid_of_version_4() {
        let id = random_id().unwrap();
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(&id[14..15], "4", "{id}");
        assert!("89ab".contains(&id[19..20]), "{id}");
        assert_ne!(id, random_id().unwrap());
    }
}
