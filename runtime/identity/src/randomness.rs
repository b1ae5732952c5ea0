//! Random bytes of the operating system.

use terrane_app::ports::tokens::Randomness;

/// The kernel's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandomness;

impl Randomness for OsRandomness {
    /// Fills a buffer with random bytes.
    ///
    /// # Panics
    /// The operating system has no random bytes. The program cannot continue safely without them.
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}
