//! Random bytes of the operating system.

use terrane_app::ports::tokens::Randomness;

/// The kernel's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandomness;

impl Randomness for OsRandomness {
    /// # Panics
    /// The kernel has none to give: nothing that is safe can be done then.
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}
