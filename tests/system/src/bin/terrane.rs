//! The `terrane` program under a name of these tests' own; see Cargo.toml.

use std::process::ExitCode;

fn main() -> ExitCode {
    terrane_cli::main(std::env::args_os())
}
