//! Random bytes of the operating system.

use terrane_app::ports::tokens::Randomness;

/// The kernel's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandomness;

impl Randomness for OsRandomness {
    /// Fills a buffer with random bytes.
    ///
    /// # Panics
    /// The kernel has no random bytes, without which the program cannot continue safely.
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}
