//! The settings of the GraphQL surface.

use std::time::Duration;

use terrane_graphql::GraphQlSettings;

/// The settings of HTTP, sockets and the page.
#[derive(Debug, Clone)]
pub struct GraphQlHttpSettings {
    pub is_enabled: bool,
    /// True if a browser that opens `/graphql` gets a page to try operations.
    pub has_playground: bool,
    /// The settings of documents and of the schema.
    pub schema: GraphQlSettings,
    /// The maximum number of open sockets.
    pub max_sockets: usize,
    /// The maximum number of sockets of one key, one user or one anonymous address.
    pub max_sockets_per_caller: usize,
    /// The maximum number of sockets of one address that have sent no valid `connection_init`.
    pub max_opening_sockets_per_address: usize,
    /// The maximum number of operations that run on one socket at once.
    pub max_operations_per_socket: usize,
    /// The timeout for the first message of a socket.
    pub init_timeout: Duration,
    /// The interval of pings on sockets, and of comments in streams of events. A socket whose client answers no ping
    /// within two intervals is closed.
    pub ping_interval: Duration,
    /// The interval at which the credentials of sockets and streams are checked again.
    pub recheck_interval: Duration,
}

impl Default for GraphQlHttpSettings {
    fn default() -> Self {
        GraphQlHttpSettings {
            is_enabled: true,
            has_playground: true,
            schema: GraphQlSettings::default(),
            max_sockets: 2_000,
            max_sockets_per_caller: 200,
            max_opening_sockets_per_address: 50,
            max_operations_per_socket: 20,
            init_timeout: Duration::from_secs(3),
            ping_interval: Duration::from_secs(20),
            recheck_interval: Duration::from_secs(2),
        }
    }
}
