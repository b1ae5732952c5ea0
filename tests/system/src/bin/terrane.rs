//! The `terrane` program under a separate name for these tests; see Cargo.toml.

use std::process::ExitCode;

fn main() -> ExitCode {
    terrane_cli::main(std::env::args_os())
}
