//! The contract's types and traits, as `wit-bindgen` writes them from `wit/`.
//!
//! In: the WIT packages. Out: Rust types with the contract's names and docs. What all roles share is
//! written once (here), each role's interface in a module of its own: a component exports both parts, and
//! its type is their union, which is the role's world. Not for direct use: the crate root and the role
//! modules re-export what a plugin needs under shorter paths.
#![allow(unsafe_code, reason = "generated: lifts and lowers values over the component's memory")]
#![allow(unreachable_pub, clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]

wit_bindgen::generate!({
    path: "../wit",
    inline: "
        package terrane:sdk;
        world every-plugin {
            import terrane:types/ir@0.1.0;
            import terrane:host/log@0.1.0;
            import terrane:host/memo@0.1.0;
            import terrane:diagnostics/panic@0.1.0;
            export terrane:types/plugin@0.1.0;
        }
    ",
    world: "terrane:sdk/every-plugin",
    pub_export_macro: true,
    export_macro_name: "export_every_plugin",
    default_bindings_module: "terrane_sdk::bindings",
    generate_all,
    additional_derives: [PartialEq],
});

/// The dialect role.
pub mod dialect {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package terrane:sdk;
            world dialect {
                export terrane:dialect/dialect@0.1.0;
            }
        ",
        world: "terrane:sdk/dialect",
        pub_export_macro: true,
        export_macro_name: "export_dialect_role",
        default_bindings_module: "terrane_sdk::bindings::dialect",
        with: {
            "terrane:types/common@0.1.0": crate::bindings::terrane::types::common,
            "terrane:types/ir@0.1.0": crate::bindings::terrane::types::ir,
        },
        generate_all,
        additional_derives: [PartialEq],
    });
}

/// The detector role.
pub mod detector {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package terrane:sdk;
            world detector {
                export terrane:anomaly/detector@0.1.0;
            }
        ",
        world: "terrane:sdk/detector",
        pub_export_macro: true,
        export_macro_name: "export_detector_role",
        default_bindings_module: "terrane_sdk::bindings::detector",
        with: {
            "terrane:types/common@0.1.0": crate::bindings::terrane::types::common,
        },
        generate_all,
        additional_derives: [PartialEq],
    });
}

/// The check role.
pub mod check {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package terrane:sdk;
            world check {
                export terrane:profiling/check@0.1.0;
            }
        ",
        world: "terrane:sdk/check",
        pub_export_macro: true,
        export_macro_name: "export_check_role",
        default_bindings_module: "terrane_sdk::bindings::check",
        with: {
            "terrane:types/common@0.1.0": crate::bindings::terrane::types::common,
            "terrane:types/ir@0.1.0": crate::bindings::terrane::types::ir,
        },
        generate_all,
        additional_derives: [PartialEq],
    });
}

/// The governance role.
pub mod governance {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package terrane:sdk;
            world governance {
                export terrane:governance/hook@0.1.0;
            }
        ",
        world: "terrane:sdk/governance",
        pub_export_macro: true,
        export_macro_name: "export_governance_role",
        default_bindings_module: "terrane_sdk::bindings::governance",
        with: {
            "terrane:types/common@0.1.0": crate::bindings::terrane::types::common,
            "terrane:types/ir@0.1.0": crate::bindings::terrane::types::ir,
        },
        generate_all,
        additional_derives: [PartialEq],
    });
}
