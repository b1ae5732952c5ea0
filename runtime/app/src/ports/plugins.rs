//! The port to plugins.
