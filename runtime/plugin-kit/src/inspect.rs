//! Shows a component's imports, functions and types, without running the component.

use std::path::Path;

use terrane_plugin_host::test_bench::Facts;
use wit_component::{DecodedWasm, OutputToString, WitPrinter};

use crate::component::open;
use crate::error::KitError;
use crate::files::read;

/// Returns the facts that a component's file contains.
///
/// # Errors
/// A server would not load the file.
pub fn inspect(file: &Path) -> Result<Facts, KitError> {
    Ok(open(file)?.facts().clone())
}

/// Returns the whole type of a component as WIT text.
///
/// # Errors
/// A server would not load the file, or its type cannot be decoded.
pub fn wit(file: &Path) -> Result<String, KitError> {
    open(file)?;
    text(&read(file)?).map_err(|message| KitError::Decode { path: file.to_owned(), message })
}

fn text(bytes: &[u8]) -> Result<String, String> {
    let decoded = wit_component::decode(bytes).map_err(|error| format!("{error:#}"))?;
    let main = decoded.package();
    let (DecodedWasm::WitPackage(resolve, _) | DecodedWasm::Component(resolve, _)) = &decoded;
    let others: Vec<_> = resolve.packages.iter().map(|(id, _)| id).filter(|id| *id != main).collect();
    let mut printer = WitPrinter::<OutputToString>::default();
    printer.print(resolve, main, &others).map_err(|error| format!("{error:#}"))?;
    Ok(printer.output.to_string())
}
