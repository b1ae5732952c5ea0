//! Plans. A plan is a statement with typed parameters, as a query or as a command (`relations.proto`, `commands.proto`,
//! `expressions.proto`).

use prost::{Message, Oneof};

use super::{Catalog, DataType};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Plan {
    #[prost(oneof = "OpType", tags = "1, 2")]
    pub(crate) op_type: Option<OpType>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum OpType {
    /// A query, whose rows are returned.
    #[prost(message, tag = "1")]
    Root(Relation),
    /// A statement that is executed for its effect and returns no rows.
    #[prost(message, tag = "2")]
    Command(Command),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Relation {
    #[prost(oneof = "RelType", tags = "10, 200")]
    pub(crate) rel_type: Option<RelType>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum RelType {
    #[prost(message, tag = "10")]
    Sql(Sql),
    #[prost(message, tag = "200")]
    Catalog(Catalog),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sql {
    #[prost(string, tag = "1")]
    pub(crate) query: String,
    /// The values of the placeholders `?`.
    #[prost(message, repeated, tag = "5")]
    pub(crate) pos_arguments: Vec<Expression>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Command {
    #[prost(oneof = "CommandKind", tags = "5")]
    pub(crate) command_type: Option<CommandKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum CommandKind {
    #[prost(message, tag = "5")]
    Sql(SqlCommand),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SqlCommand {
    #[prost(message, optional, tag = "6")]
    pub(crate) input: Option<Relation>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Expression {
    #[prost(oneof = "ExpressionKind", tags = "1")]
    pub(crate) expr_type: Option<ExpressionKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ExpressionKind {
    #[prost(message, tag = "1")]
    Literal(Literal),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Literal {
    #[prost(oneof = "LiteralKind", tags = "1, 3, 7, 11, 12, 13, 16, 17, 18")]
    pub(crate) literal_type: Option<LiteralKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum LiteralKind {
    #[prost(message, tag = "1")]
    Null(DataType),
    #[prost(bool, tag = "3")]
    Boolean(bool),
    #[prost(int64, tag = "7")]
    Long(i64),
    #[prost(double, tag = "11")]
    Double(f64),
    #[prost(message, tag = "12")]
    Decimal(DecimalLiteral),
    #[prost(string, tag = "13")]
    String(String),
    /// Days since 1970-01-01.
    #[prost(int32, tag = "16")]
    Date(i32),
    /// Microseconds since 1970-01-01T00:00:00Z.
    #[prost(int64, tag = "17")]
    Timestamp(i64),
    /// Microseconds since 1970-01-01T00:00:00 on a wall clock.
    #[prost(int64, tag = "18")]
    TimestampNtz(i64),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DecimalLiteral {
    #[prost(string, tag = "1")]
    pub(crate) value: String,
    #[prost(int32, optional, tag = "2")]
    pub(crate) precision: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) scale: Option<i32>,
}
