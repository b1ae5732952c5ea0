//! The edge: HTTP in, use cases of the app, HTTP out. Handlers translate and decide nothing.

pub mod json;
