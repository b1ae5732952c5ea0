//! Rebuilds the crate when a migration is added, although no source file changes.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
