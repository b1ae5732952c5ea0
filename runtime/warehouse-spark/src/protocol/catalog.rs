//! Calls of the session's catalog (`catalog.proto`). Their results are rows.

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Catalog {
    #[prost(oneof = "CatalogCall", tags = "4, 6")]
    pub(crate) cat_type: Option<CatalogCall>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum CatalogCall {
    #[prost(message, tag = "4")]
    ListTables(ListTables),
    #[prost(message, tag = "6")]
    ListColumns(ListColumns),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListTables {
    /// The quoted name of a database, with or without its catalog. `None` for the current database.
    #[prost(string, optional, tag = "1")]
    pub(crate) db_name: Option<String>,
    /// A pattern of names. `*` stands for any characters, and `|` separates alternatives. Other characters have their
    /// meaning in regular expressions.
    #[prost(string, optional, tag = "2")]
    pub(crate) pattern: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListColumns {
    /// The quoted name of the table with all its parts.
    #[prost(string, tag = "1")]
    pub(crate) table_name: String,
}
