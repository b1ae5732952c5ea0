//! A small memory between calls, where the operator grants `memo`. In native tests it is a map of the
//! thread.
//!
//! A component that calls this and has no grant is refused when it is loaded.

/// What was kept under this key, if it is still there.
pub fn get(key: &str) -> Option<Vec<u8>> {
    #[cfg(target_arch = "wasm32")]
    return crate::bindings::terrane::host::memo::get(key);
    #[cfg(not(target_arch = "wasm32"))]
    native::MEMO.with_borrow(|memo| memo.get(key).cloned())
}

/// Keeps a value; 0 seconds: for as long as there is room.
///
/// # Errors
/// Which of the host's bounds was met.
pub fn put(key: &str, value: &[u8], ttl_seconds: u32) -> Result<(), String> {
    #[cfg(target_arch = "wasm32")]
    return crate::bindings::terrane::host::memo::put(key, value, ttl_seconds);
    #[cfg(not(target_arch = "wasm32"))]
    {
        let _ = ttl_seconds;
        native::MEMO.with_borrow_mut(|memo| memo.insert(key.to_owned(), value.to_vec()));
        Ok(())
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    thread_local! {
        pub(super) static MEMO: RefCell<BTreeMap<String, Vec<u8>>> = const { RefCell::new(BTreeMap::new()) };
    }
}
