//! Tests that invalid settings of a warehouse are rejected with a hint.

use terrane_system_tests::Scratch;

use crate::program;

/// Runs `terrane check` with environment variables, expects an error and returns its output.
fn error_text(variables: &[(&str, &str)]) -> String {
    let project = Scratch::project();
    let mut check = program("check", project.path());
    for (name, value) in variables {
        check = check.variable(name, value);
    }
    let output = check.run().expect("the program runs to its end");
    assert_eq!(output.code, Some(1), "{}{}", output.stdout, output.stderr);
    format!("{}{}", output.stdout, output.stderr)
}

#[test]
fn unknown_type_is_rejected_with_the_known_ones() {
    let text = error_text(&[("SERVICE_WAREHOUSE__TYPE", "oracle")]);
    for word in ["`oracle`", "duckdb", "postgres", "mysql", "sqlite"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn server_warehouse_requires_a_url() {
    let text = error_text(&[("SERVICE_WAREHOUSE__TYPE", "postgres")]);
    assert!(text.contains("needs `warehouse.url`") && text.contains("SERVICE_WAREHOUSE__URL"), "{text}");
}

#[test]
fn url_of_another_database_is_refused_without_its_password() {
    for (kind, url) in [("postgres", "mysql://me:hidden@db/x"), ("mysql", "postgres://me:hidden@db/x")] {
        let text = error_text(&[("SERVICE_WAREHOUSE__TYPE", kind), ("SERVICE_WAREHOUSE__URL", url)]);
        assert!(text.contains("`warehouse.url` is not a URL of") && !text.contains("hidden"), "{text}");
    }
}

#[test]
fn server_that_is_down_is_reported_without_its_password() {
    for (kind, scheme) in [("postgres", "postgres"), ("mysql", "mysql")] {
        // No server listens on this port.
        let url = format!("{scheme}://me:hidden@127.0.0.1:1/x");
        let text = error_text(&[("SERVICE_WAREHOUSE__TYPE", kind), ("SERVICE_WAREHOUSE__URL", &url)]);
        assert!(text.contains("cannot be reached") && !text.contains("hidden"), "{text}");
    }
}
