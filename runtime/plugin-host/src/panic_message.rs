//! The message of a guest's panic: the import `terrane:diagnostics/panic`.
//!
//! In: numbers of eight bytes each, which a guest writes before it traps. Out: the reason in the fault of the trapped
//! call. A call without a panic costs nothing, for two reasons: the import takes a number, so linking it needs no
//! memory of the guest, and the buffer is allocated on the first write. Not here: log lines (`log`).

use terrane_app::ports::plugins::PluginFault;
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use crate::engine::Guest;
use crate::error::shortened;

/// The interface, without the patch version.
pub(crate) const INTERFACE: &str = "terrane:diagnostics/panic@0.1";
const FULL_INTERFACE: &str = "terrane:diagnostics/panic@0.1.0";
const MAX_BYTES: usize = 1_024;

/// The bytes that a guest has written during a call.
#[derive(Debug, Default)]
pub(crate) struct PanicMessage(Vec<u8>);

impl PanicMessage {
    fn write(&mut self, bytes: u64) {
        let text = bytes.to_le_bytes().into_iter().filter(|byte| *byte != 0);
        let room = MAX_BYTES - self.0.len();
        self.0.extend(text.take(room));
    }

    /// Returns the fault of the call. If it is a trap, the message becomes its reason; other faults do not change.
    pub(crate) fn explain(&self, fault: PluginFault) -> PluginFault {
        match fault {
            PluginFault::Trapped { call, .. } if !self.0.is_empty() => {
                PluginFault::Trapped { call, message: shortened(&String::from_utf8_lossy(&self.0)) }
            }
            other => other,
        }
    }
}

/// Links the interface.
///
/// # Errors
/// The interface is linked already.
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let write = |mut store: StoreContextMut<'_, Guest>, (bytes,): (u64,)| {
        store.data_mut().panic.write(bytes);
        Ok(())
    };
    linker.instance(FULL_INTERFACE)?.func_wrap("write", write)
}

#[cfg(test)]
mod tests {
    use terrane_app::ports::plugins::Limit;

    use super::*;

    fn trapped(message: &str) -> PluginFault {
        PluginFault::Trapped { call: "detect", message: message.to_owned() }
    }

    fn written(text: &str) -> PanicMessage {
        let mut message = PanicMessage::default();
        for chunk in text.as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            message.write(u64::from_le_bytes(bytes));
        }
        message
    }

    #[test]
    fn panic_message_becomes_the_reason_of_a_trap() {
        let message = written("panicked at src/lib.rs:7:5: höchstens 10\n\u{1b}[2J");
        assert_eq!(message.explain(trapped("unreachable")), trapped("panicked at src/lib.rs:7:5: höchstens 10 [2J"));
    }

    #[test]
    fn trap_without_a_message_keeps_its_own_reason() {
        assert_eq!(PanicMessage::default().explain(trapped("unreachable")), trapped("unreachable"));
    }

    #[test]
    fn other_faults_keep_their_reason() {
        let fault = PluginFault::Limit { call: "detect", limit: Limit::Fuel };
        assert_eq!(written("looks like a panic").explain(fault.clone()), fault);
    }

    #[test]
    fn endless_message_is_truncated() {
        assert_eq!(written(&"x".repeat(10 * MAX_BYTES)).0.len(), MAX_BYTES);
    }
}
