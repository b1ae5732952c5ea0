//! Writes log lines for the operator. A component sends them to the host; native tests print them to standard error.
//!
//! The host records at most 20 lines and 8 KiB per call, and drops the rest. Panics do not use the log; see `panic`.

pub use crate::bindings::terrane::host::log::Level;

/// Writes one line.
///
/// ```
/// terrane_sdk::log::write(terrane_sdk::log::Level::Info, "profile built", &[("dialect", "quack")]);
/// ```
pub fn write(level: Level, message: &str, fields: &[(&str, &str)]) {
    let fields: Vec<(String, String)> = fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    #[cfg(target_arch = "wasm32")]
    crate::bindings::terrane::host::log::log(level, message, &fields);
    #[cfg(not(target_arch = "wasm32"))]
    eprintln!("{level:?} {message} {fields:?}");
}

pub fn warn(message: &str) {
    write(Level::Warn, message, &[]);
}

pub fn info(message: &str) {
    write(Level::Info, message, &[]);
}
