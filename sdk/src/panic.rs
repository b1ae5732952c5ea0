//! Reports panics to the host, in every build of a component.
//!
//! In: a panic. Out: its location and message, as part of the call's error, which `terrane plugin run`, `terrane plugin
//! test` and the operator's log show. On targets other than WebAssembly this module is empty.

/// The largest size of a message that is sent to the host, in bytes.
#[cfg(target_arch = "wasm32")]
const MAX_BYTES: usize = 1_024;

/// Sets the panic hook. The export macros call this before any code of the plugin runs.
#[doc(hidden)]
#[cfg(target_arch = "wasm32")]
pub extern "C" fn set_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let text = match panic.location() {
            Some(place) => format!("panicked at {}:{}:{}: {message}", place.file(), place.line(), place.column()),
            None => format!("panicked: {message}"),
        };
        for chunk in text.as_bytes().chunks(8).take(MAX_BYTES / 8) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            crate::bindings::terrane::diagnostics::panic::write(u64::from_le_bytes(bytes));
        }
    }));
}
