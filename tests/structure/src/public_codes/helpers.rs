//! Functions and closures that create errors with one code, such as `invalid(message)`.
//!
//! In: the tokens of a source. Out: the code of a call by the name of the function. A name with several codes has none.
//! Not here: functions with several codes, whose arms the parent module reads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{CodeKind, PublicCodes, SourceFile};
use crate::outline::{Function, Outline, statement_end};
use crate::tokens::Token;

/// The types that a function returns if it creates an error or a diagnostic.
const CREATED: [&str; 7] = ["ErrorBody", "ApiError", "Diagnostic", "Failure", "Finding", "Problem", "Refusal"];

/// The names of traits' functions, which many types have.
const SHARED_NAMES: [&str; 4] = ["from", "into", "fmt", "new"];

/// Functions with one code, by their names.
#[derive(Debug, Default)]
pub struct Helpers {
    by_name: BTreeMap<String, Vec<Helper>>,
    /// The folder of the crate; empty for the functions of all crates.
    owner: String,
    /// The words of the source's `use` declarations.
    imports: BTreeSet<String>,
}

#[derive(Debug)]
struct Helper {
    kind: CodeKind,
    owner: String,
    /// The code; `None` if a function of this name has no code or several codes.
    code: Option<String>,
    /// The tokens in which a closure is visible; `None` for a function.
    scope: Option<Range<usize>>,
}

impl Helpers {
    /// Returns the helper functions of a source. `codes` has the names of all codes.
    pub(crate) fn of(
        tokens: &[Token<'_>],
        outline: &Outline<'_>,
        file: SourceFile<'_>,
        codes: &PublicCodes,
    ) -> Helpers {
        let SourceFile { owner, kind } = file;
        let mut helpers = Helpers { owner: owner.to_owned(), imports: imports(tokens), ..Helpers::default() };
        for function in outline.functions.iter().filter(|function| !SHARED_NAMES.contains(&function.name)) {
            let named = codes.named_codes(&tokens[function.body.clone()], kind);
            let is_single = !named.is_empty() && named.iter().all(|code| *code == named[0]);
            let code = named.first().filter(|_| is_single && creates_error(tokens, outline, function)).cloned();
            let scope = function.is_closure.then(|| scope_of(outline, function)).flatten();
            let helper = Helper { kind, owner: owner.to_owned(), code, scope };
            helpers.by_name.entry(function.name.to_owned()).or_default().push(helper);
        }
        helpers
    }

    /// Adds the functions of another source. Closures are not visible in other sources.
    pub(super) fn add(&mut self, other: Helpers) {
        for (name, helpers) in other.by_name {
            self.by_name.entry(name).or_default().extend(helpers.into_iter().filter(|helper| helper.scope.is_none()));
        }
    }

    /// Returns the code of a function of this source that is called at a token.
    pub(crate) fn code(&self, name: &str, at: usize, kind: CodeKind) -> Option<String> {
        let helpers = self.by_name.get(name)?;
        let is_visible = |helper: &&Helper| helper.scope.as_ref().is_some_and(|scope| scope.contains(&at));
        match helpers.iter().find(is_visible) {
            Some(closure) => closure.code.clone(),
            None => single(helpers.iter().filter(|helper| helper.scope.is_none()), kind),
        }
    }

    /// Returns the code of a constructor of an error in another source. Other functions with its name are ignored.
    pub(super) fn code_of_constructor(&self, name: &str, kind: CodeKind) -> Option<String> {
        single(self.by_name.get(name)?.iter().filter(|helper| helper.code.is_some()), kind)
    }

    /// Returns the code of a function of the same crate that `source` imports, or calls by the name of its module.
    pub(super) fn code_of_import(
        &self,
        name: &str,
        source: &Helpers,
        is_in_module: bool,
        kind: CodeKind,
    ) -> Option<String> {
        if !is_in_module && !source.imports.contains(name) {
            return None;
        }
        let is_own = |helper: &&Helper| helper.owner == source.owner && helper.code.is_some();
        single(self.by_name.get(name)?.iter().filter(is_own), kind)
    }
}

/// Returns the words of all `use` declarations.
fn imports(tokens: &[Token<'_>]) -> BTreeSet<String> {
    let starts = (0..tokens.len()).filter(|at| tokens[*at] == Token::Word("use"));
    let words = starts.flat_map(|start| &tokens[start..statement_end(tokens, start)]);
    words.filter_map(|token| if let Token::Word(word) = token { Some((*word).to_owned()) } else { None }).collect()
}

/// Returns the code of functions if all have the same one.
fn single<'h>(mut helpers: impl Iterator<Item = &'h Helper>, kind: CodeKind) -> Option<String> {
    let first = helpers.next()?;
    let is_unique = helpers.all(|other| other.code == first.code);
    first.code.clone().filter(|_| is_unique && first.kind == kind)
}

/// Returns whether a function creates an error: by its return type, or because it is a closure.
fn creates_error(tokens: &[Token<'_>], outline: &Outline<'_>, function: &Function<'_>) -> bool {
    let is_response = |name: &str| CREATED.contains(&name);
    let is_own = || outline.implementation_around(function.body.start).is_some_and(|found| is_response(found.target));
    function.is_closure
        || tokens[function.returns.clone()].iter().any(|token| match token {
            Token::Word("Self") => is_own(),
            Token::Word(name) => is_response(name),
            _ => false,
        })
}

/// Returns the body of the function that contains a closure.
fn scope_of(outline: &Outline<'_>, closure: &Function<'_>) -> Option<Range<usize>> {
    let around = outline.functions_around(closure.body.start).find(|function| *function != closure);
    around.map(|function| function.body.clone())
}
