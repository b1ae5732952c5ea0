//! Typed definitions of a project for the client packages.
//!
//! In: the parts of a model that a caller may see. Out: the text of a TypeScript module with the types of
//! `Client<Project>`, or of a Python module with the members as constants. Names are sorted by code point, so that the
//! same model and access always produce the same bytes. `sdk/typescript/src/codegen.ts` makes the same TypeScript from
//! the metadata of a server. Not here: files, and cubes that are registered on a server.

mod identifiers;
mod python;
mod text;
mod typescript;
mod visible;

use terrane_compiler::Access;

use visible::VisibleProject;

/// The language of the definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    TypeScript,
    Python,
}

/// Returns the definitions of the members that the caller may see.
pub fn generate(access: &Access<'_>, language: Language) -> String {
    let project = VisibleProject::of(access);
    match language {
        Language::TypeScript => typescript::module(&project),
        Language::Python => python::module(&project),
    }
}
