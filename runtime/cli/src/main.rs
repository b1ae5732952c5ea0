//! The binary; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    terrane_cli::main(std::env::args_os())
}
