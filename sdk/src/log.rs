//! Lines for the operator. In a component they go to the host, in native tests to standard error.
//!
//! The host keeps 20 lines and 8 KiB a call and drops the rest. A component with debug assertions (not one built
//! with `--release`) also writes why and where it panicked.

pub use crate::bindings::terrane::host::log::Level;

/// Writes one line.
///
/// ```
/// terrane_sdk::log::write(terrane_sdk::log::Level::Info, "profile made", &[("dialect", "quack")]);
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

/// From now on a panic is written as a line before it traps. The export macros see to it where the plugin's crate has
/// debug assertions: without them a component that logs nothing need not import the log, which makes its instances
/// quicker to have.
#[doc(hidden)]
#[cfg(target_arch = "wasm32")]
pub extern "C" fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message").replace('\n', " ");
        let place = panic.location().map(|place| format!("{}:{}", place.file(), place.line())).unwrap_or_default();
        write(Level::Error, &format!("panicked: {message}"), &[("at", &place)]);
    }));
}
