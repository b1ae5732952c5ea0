//! The bindings that wasmtime generates from `wit/`, one module per role. The shared interfaces are generated once,
//! with the dialect's world, so that a context or an arena is one type for all roles.
//!
//! In: the contract. Out: types and call functions. The types implement `Deserialize` for the `test_bench`, which makes
//! calls with values of any type. Not here: checks of answers.

/// The dialect's world, and the interfaces that all worlds share.
pub(crate) mod dialect {
    #![allow(unreachable_pub, clippy::all, reason = "generated")]

    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "terrane:plugins/dialect-plugin",
        additional_derives: [serde::Deserialize],
    });
}

macro_rules! role {
    ($name:ident, $world:literal, $doc:literal $(, $ir:literal)?) => {
        #[doc = $doc]
        pub(crate) mod $name {
            #![allow(unreachable_pub, clippy::all, reason = "generated")]

            wasmtime::component::bindgen!({
                path: "../../wit",
                world: $world,
                additional_derives: [serde::Deserialize],
                with: {
                    "terrane:types/common@0.1.0": crate::bindings::dialect::terrane::types::common,
                    $($ir: crate::bindings::dialect::terrane::types::ir,)?
                    "terrane:host/log@0.1.0": crate::bindings::dialect::terrane::host::log,
                    "terrane:host/memo@0.1.0": crate::bindings::dialect::terrane::host::memo,
                },
            });
        }
    };
}

role!(detector, "terrane:plugins/detector-plugin", "The detector's world.");
role!(check, "terrane:plugins/check-plugin", "The check's world.", "terrane:types/ir@0.1.0");
role!(governance, "terrane:plugins/policy-plugin", "The governance hook's world.", "terrane:types/ir@0.1.0");

pub(crate) use dialect::terrane::host::{log, memo};
pub(crate) use dialect::terrane::types::{common, ir};
