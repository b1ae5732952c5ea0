//! The contract's types and traits, as `wit-bindgen` writes them from `wit/`.
//!
//! In: the WIT packages. Out: Rust types with the contract's names and docs. Not for direct use: the
//! crate root re-exports what a plugin needs under shorter paths.
#![allow(unsafe_code, reason = "generated: lifts and lowers values over the component's memory")]
#![allow(unreachable_pub, clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]

wit_bindgen::generate!({
    path: "../wit",
    world: "terrane:plugins/dialect-plugin",
    pub_export_macro: true,
    export_macro_name: "export_dialect_plugin",
    default_bindings_module: "terrane_sdk::bindings",
    generate_all,
    additional_derives: [PartialEq],
});
