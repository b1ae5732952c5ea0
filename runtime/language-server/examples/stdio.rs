//! The language server on standard input and output, without the rest of the program: settings and tests are not
//! checked. For trying a client.

use std::io::{self, BufReader};

#[path = "../tests/session/disk.rs"]
mod disk;

fn main() -> io::Result<()> {
    terrane_language_server::serve(&disk::Disk, None, BufReader::new(io::stdin()), io::stdout().lock()).map(|_| ())
}
