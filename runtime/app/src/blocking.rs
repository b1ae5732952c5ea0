//! Runs work over rows: in place if there are few rows, or else on its own thread.
//!
//! In: a number of rows and a computation whose time is linear in it. Out: the result. A long computation in place
//! would make the other requests of its thread wait.

/// The largest number of rows that are computed in place.
pub const MAX_INLINE_ROWS: u64 = 2_000;

/// Runs a computation over a number of rows, on a thread of its own if there are more than [`MAX_INLINE_ROWS`].
///
/// # Panics
/// Propagates a panic of the computation, which the server turns into a response.
pub async fn over_rows<T: Send + 'static>(rows: u64, compute: impl FnOnce() -> T + Send + 'static) -> T {
    if rows <= MAX_INLINE_ROWS { compute() } else { on_thread(compute).await }
}

/// Runs a computation on a thread of its own.
///
/// # Panics
/// Propagates a panic of the computation, which the server turns into a response.
pub async fn on_thread<T: Send + 'static>(compute: impl FnOnce() -> T + Send + 'static) -> T {
    let computed = tokio::task::spawn_blocking(compute).await;
    computed.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
