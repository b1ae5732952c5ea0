//! The shared parts of the system tests: the program in its own process, a server and requests to it, projects for one
//! test, and database servers.

pub mod builds;
pub mod cached;
pub mod engines;
mod graphql_socket;
mod http;
pub mod jobs;
mod port;
mod program;
mod provider;
mod scratch;
mod skip;
pub mod soak;
pub mod tpch;

pub use graphql_socket::GraphQlSocket;
pub use http::{Answer, download, request, request_as, request_with};
pub use port::free_port;
pub use program::{Output, Program, Server, Unheard};
pub use provider::{Browser, OidcProvider, header};
pub use scratch::{FLIGHTS, Scratch, path};
pub use skip::skip;
