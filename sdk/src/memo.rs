//! A small memory between calls, for plugins with the grant `memo`. In native tests, it is a thread-local map whose
//! entries never expire.
//!
//! The host refuses to load a component that calls these functions without the grant.

/// Returns the value of this key, unless it has expired or was evicted.
pub fn get(key: &str) -> Option<Vec<u8>> {
    #[cfg(target_arch = "wasm32")]
    return crate::bindings::terrane::host::memo::get(key);
    #[cfg(not(target_arch = "wasm32"))]
    native::MEMO.with_borrow(|memo| memo.get(key).cloned())
}

/// Stores a value; 0 seconds means no expiry.
///
/// # Errors
/// Returns the name of the host's limit that the value exceeds.
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
