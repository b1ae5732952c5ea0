//! Runs the language server on standard input and output without the rest of the program, to try an editor with it.
//! Settings and tests of the project are not checked.

use std::io::{self, BufReader};

#[path = "../tests/session/disk.rs"]
mod disk;

fn main() -> io::Result<()> {
    terrane_language_server::serve(disk::Disk, None, BufReader::new(io::stdin()), io::stdout()).map(|_| ())
}
