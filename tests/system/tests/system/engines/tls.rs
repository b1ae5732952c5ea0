//! Tests connections to a server with TLS: accepted certificates, and the messages about refused ones.

use serde_json::json;
use terrane_system_tests::Scratch;
use terrane_system_tests::engines::{AUTHORITY, Engine, Kind, STRANGER};

use super::skip;
use crate::program;

/// A cube whose dimension shows whether the session uses TLS.
const CUBE: &str = "\
cubes:
  - name: sessions
    sql: SELECT CASE WHEN ssl THEN 1 ELSE 0 END AS is_secure FROM pg_stat_ssl WHERE pid = pg_backend_pid()
    measures:
      - {name: secure, type: sum, sql: is_secure}
";

fn engine() -> Option<Engine> {
    match Engine::start_with_certificate().expect("a server with a certificate") {
        Ok(engine) => Some(engine),
        Err(missing) => {
            skip(Kind::Postgres, &missing);
            None
        }
    }
}

/// Runs `terrane query` with these parameters in the URL. Returns the exit code and the output.
fn ask(engine: &Engine, parameters: &str) -> (Option<i32>, String) {
    let project = Scratch::empty().with("service_project.yml", "name: tls\n").with("cubes/sessions.yml", CUBE);
    let url = format!("{}?{parameters}", engine.url().expect("a server's URL"));
    let mut query = program("query", project.path()).arguments(&[r#"{"measures": ["sessions.secure"]}"#]);
    for (name, value) in engine.variables(&[], &[]) {
        query =
            query.variable(&name, if name.ends_with("__URL") && name.contains("WAREHOUSE") { &url } else { &value });
    }
    let output = query.run().expect("the program runs to its end");
    (output.code, format!("{}{}", output.stdout, output.stderr))
}

#[test]
fn certificate_is_verified_as_the_url_requires() {
    let Some(engine) = engine() else { return };
    let file = |name: &str| engine.file(name).expect("a file of the server").display().to_string();
    let trusted = format!("sslmode=verify-full&sslrootcert={}", file(AUTHORITY));
    for (parameters, is_secure) in [("sslmode=disable", 0), ("sslmode=require", 1), (&trusted, 1)] {
        let (code, text) = ask(&engine, parameters);
        let expected = format!("[{}]\n", json!({"sessions.secure": is_secure}));
        assert_eq!((code, text), (Some(0), expected), "{parameters}");
    }
    for parameters in ["sslmode=verify-full", &format!("sslmode=verify-full&sslrootcert={}", file(STRANGER))] {
        let (code, text) = ask(&engine, parameters);
        assert_eq!(code, Some(1), "{parameters}: {text}");
        assert!(text.contains("cannot be reached") && text.contains("certificate"), "{parameters}: {text}");
        assert!(!text.contains("secret"), "{text}");
    }
}
