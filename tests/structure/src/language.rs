//! Counts phrasing that slows readers down: doc comments and descriptions that open with a noun clause, and private
//! terms for which the field has a standard one.
//!
//! In: Rust sources, and a list of terms, each with its replacement. Out: findings with their lines. Not here:
//! documents in Markdown, and rules about grammar, both of which need a human reader.

use std::collections::BTreeMap;
use std::fmt;

use crate::tokens::{Located, Token, scan};

/// A term to avoid, the place where it is searched for, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    kind: Kind,
    text: String,
    instead: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The first words of a doc comment, or of a string literal that ends with a period. Case matters.
    Opening,
    /// Whole words of a comment or a string literal. Case does not matter.
    Phrase,
    /// A whole identifier.
    Name,
    /// One part of an identifier in snake case or camel case.
    Part,
    /// The name of a module.
    Module,
}

/// A place that should be written differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    Opening { line: usize, opening: String, text: String },
    Term { line: usize, term: String, instead: String },
}

/// The number of findings of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub openings: usize,
    pub terms: usize,
}

/// The largest number of findings that each crate may have.
pub type Budget = BTreeMap<String, Count>;

impl Count {
    pub fn of(findings: &[Finding]) -> Self {
        let openings = findings.iter().filter(|finding| matches!(finding, Finding::Opening { .. })).count();
        Self { openings, terms: findings.len() - openings }
    }

    /// Returns the sum of two counts.
    pub fn plus(self, other: Self) -> Self {
        Self { openings: self.openings + other.openings, terms: self.terms + other.terms }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opening { line, opening, text } => {
                write!(f, "{line}: a doc comment or a description opens with \"{opening}\": {text}")
            }
            Self::Term { line, term, instead } => write!(f, "{line}: \"{term}\"; write {instead}"),
        }
    }
}

/// Parses the list of terms, with one term per line in the form `kind | term | instead`.
///
/// # Errors
/// Returns the first line that has a different form.
pub fn terms(list: &str) -> Result<Vec<Term>, String> {
    let entry = |line: &&str| -> Result<Term, String> {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [kind, text, instead] = parts[..] else { return Err(format!("expected three columns: {line}")) };
        let kind = match kind {
            "opening" => Kind::Opening,
            "phrase" => Kind::Phrase,
            "name" => Kind::Name,
            "part" => Kind::Part,
            "module" => Kind::Module,
            _ => return Err(format!("unknown kind `{kind}`: {line}")),
        };
        Ok(Term { kind, text: text.to_owned(), instead: instead.to_owned() })
    };
    crate::sources::list(list).iter().map(entry).collect()
}

/// Parses a budget, with one crate per line in the form `folder openings terms`.
///
/// # Errors
/// Returns the first line that has a different form.
pub fn budget(list: &str) -> Result<Budget, String> {
    let entry = |line: &&str| -> Result<(String, Count), String> {
        let wrong = || format!("expected `folder openings terms`: {line}");
        let parts: Vec<&str> = line.split_whitespace().collect();
        let [folder, openings, terms] = parts[..] else { return Err(wrong()) };
        let number = |text: &str| text.parse().map_err(|_| wrong());
        Ok((folder.to_owned(), Count { openings: number(openings)?, terms: number(terms)? }))
    };
    crate::sources::list(list).iter().map(entry).collect()
}

/// Returns the differences between a budget and the counts: crates above their budget, and budgets above the count.
pub fn differences(budget: &Budget, counted: &Budget) -> Vec<String> {
    let mut differences = Vec::new();
    for (folder, count) in counted {
        let Some(allowed) = budget.get(folder) else {
            differences
                .push(format!("{folder} has no budget; add the line `{folder} {} {}`", count.openings, count.terms));
            continue;
        };
        for (what, counted, allowed) in
            [("openings", count.openings, allowed.openings), ("terms", count.terms, allowed.terms)]
        {
            if counted > allowed {
                differences.push(format!("{folder} has {counted} {what}, and its budget is {allowed}"));
            } else if counted < allowed {
                differences.push(format!("{folder} has {counted} {what}: lower its budget of {allowed} to {counted}"));
            }
        }
    }
    let gone = budget.keys().filter(|folder| !counted.contains_key(*folder));
    differences.extend(gone.map(|folder| format!("{folder} has a budget, but is not a crate; remove the line")));
    differences
}

/// Returns all findings of a source, ordered by line.
pub fn findings(source: &str, terms: &[Term]) -> Vec<Finding> {
    let tokens = scan(source);
    let mut findings = openings(&tokens, terms);
    for text in texts(&tokens) {
        findings.extend(phrases(&text, terms));
    }
    findings.extend(names(&tokens, terms));
    findings.sort_by_key(Finding::line);
    findings
}

impl Finding {
    fn line(&self) -> usize {
        match self {
            Self::Opening { line, .. } | Self::Term { line, .. } => *line,
        }
    }
}

fn openings(tokens: &[Located<'_>], terms: &[Term]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut documented = None;
    for located in tokens {
        let (text, is_first) = match located.token {
            Token::Doc(text) => (text, documented.replace(located.line) != Some(located.line - 1)),
            Token::Text(text) => (text, text.ends_with('.')),
            Token::Comment(_) | Token::Word(_) | Token::Symbol(_) => continue,
        };
        let opens = |term: &&Term| text.strip_prefix(&term.text).is_some_and(ends_word);
        let opening = terms.iter().filter(|term| term.kind == Kind::Opening).find(opens);
        if let Some(opening) = opening.filter(|_| is_first) {
            let (opening, text) = (opening.text.clone(), text.to_owned());
            findings.push(Finding::Opening { line: located.line, opening, text });
        }
    }
    findings
}

/// The prose of a comment or a string literal.
struct Prose {
    /// Each line as (byte offset in `text`, line number).
    lines: Vec<(usize, usize)>,
    text: String,
}

impl Prose {
    fn line(&self, at: usize) -> usize {
        self.lines.iter().take_while(|(start, _)| *start <= at).last().map_or(0, |(_, line)| *line)
    }

    fn push(&mut self, line: usize, text: &str) {
        for (offset, part) in text.lines().enumerate() {
            self.lines.push((self.text.len(), line + offset));
            for word in part.trim_end_matches('\\').split_whitespace() {
                self.text.push_str(&word.to_lowercase());
                self.text.push(' ');
            }
        }
    }
}

fn texts(tokens: &[Located<'_>]) -> Vec<Prose> {
    let mut texts: Vec<Prose> = Vec::new();
    let mut commented = 0;
    for located in tokens {
        match located.token {
            Token::Text(text) => {
                let mut prose = Prose { lines: Vec::new(), text: String::new() };
                // An escape such as `\n` separates words.
                prose.push(located.line, &text.replace("\\n", "  "));
                texts.push(prose);
                commented = 0;
            }
            Token::Doc(text) | Token::Comment(text) => {
                let continued = (commented > 0 && located.line == commented + 1).then(|| texts.last_mut()).flatten();
                if let Some(prose) = continued {
                    prose.push(located.line, text);
                } else {
                    let mut prose = Prose { lines: Vec::new(), text: String::new() };
                    prose.push(located.line, text);
                    texts.push(prose);
                }
                commented = located.line;
            }
            Token::Word(_) | Token::Symbol(_) => commented = 0,
        }
    }
    texts
}

fn phrases(prose: &Prose, terms: &[Term]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for term in terms.iter().filter(|term| term.kind == Kind::Phrase) {
        for (at, _) in prose.text.match_indices(&term.text) {
            let starts = prose.text[..at].chars().next_back().is_none_or(|c| !joins_words(c));
            if starts && ends_word(&prose.text[at + term.text.len()..]) {
                findings.push(term.found(prose.line(at)));
            }
        }
    }
    findings
}

fn names(tokens: &[Located<'_>], terms: &[Term]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut previous = None;
    for located in tokens {
        if let Token::Word(word) = located.token {
            let is_module = previous == Some(Token::Word("mod"));
            let parts = parts(word);
            for term in terms {
                let is_match = match term.kind {
                    Kind::Opening | Kind::Phrase => false,
                    Kind::Name => term.text == word,
                    Kind::Part => parts.contains(&term.text),
                    Kind::Module => is_module && term.text == word,
                };
                if is_match {
                    findings.push(term.found(located.line));
                }
            }
        }
        previous = Some(located.token);
    }
    findings
}

impl Term {
    fn found(&self, line: usize) -> Finding {
        Finding::Term { line, term: self.text.clone(), instead: self.instead.clone() }
    }
}

/// Returns the parts of an identifier in lower case: `SourceFile` and `source_file` are both `source` and `file`.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in identifier.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        if c != '_' {
            parts.last_mut().expect("there is always a part").extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    parts
}

fn ends_word(rest: &str) -> bool {
    rest.chars().next().is_none_or(|c| !joins_words(c))
}

fn joins_words(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: &str = "# kind | term | instead\nopening | What | a noun\nopening | Of | a noun\n\
                         opening | So that | a verb\nphrase | grey horse | horse\nphrase | has 0 | lacks\n\
                         name | Gadget | Device\npart | lazy | idle\nmodule | cabin | berth\n";

    fn found(source: &str) -> Vec<String> {
        findings(source, &terms(TERMS).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn doc_comments_that_open_with_a_noun_clause_are_found() {
        let found = found(
            "//! What it does.\n\n/// Of each call.\n/// What follows.\nstruct A;\n/// So that it ends.\nfn f() {}",
        );
        let expected = [
            "1: a doc comment or a description opens with \"What\": What it does.",
            "3: a doc comment or a description opens with \"Of\": Of each call.",
            "6: a doc comment or a description opens with \"So that\": So that it ends.",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn descriptions_that_open_with_a_noun_clause_are_reported() {
        assert_eq!(
            found("let a = \"What it does.\"; let b = \"What is it?\"; let c = \"What\"; let d = \"It. What.\";"),
            ["1: a doc comment or a description opens with \"What\": What it does."]
        );
    }

    #[test]
    fn other_openings_and_later_lines_have_no_finding() {
        assert_eq!(
            found("/// Returns it.\n/// What is more, it ends.\nfn f() {}\n/// Offers.\n/// Somewhere.\n// What"),
            [""; 0]
        );
    }

    #[test]
    fn phrases_are_found_across_lines_and_in_strings() {
        assert_eq!(found("// It is a grey\n// horse for a while.\n"), ["1: \"grey horse\"; write horse"]);
        assert_eq!(found("let a = \"x Has  0 y\";"), ["1: \"has 0\"; write lacks"]);
        assert_eq!(found("let a = \"one\n two has 0 \\\n three\";"), ["2: \"has 0\"; write lacks"]);
    }

    #[test]
    fn longer_words_are_not_phrases() {
        assert_eq!(found("// It has 01; this has 0-based.\nlet has = zero;"), [""; 0]);
        assert_eq!(found("// grey\nfn f() {}\n// horse"), [""; 0]);
    }

    #[test]
    fn names_parts_and_modules_are_found() {
        assert_eq!(found("struct Gadget; struct Gadgets;"), ["1: \"Gadget\"; write Device"]);
        assert_eq!(found("fn lazy_file() {}\nstruct FileLazy;\nfn slazy() {}").len(), 2);
        assert_eq!(found("mod cabin;\nlet cabin = 1;"), ["1: \"cabin\"; write berth"]);
    }

    #[test]
    fn count_above_or_below_the_budget_is_a_difference() {
        let counted = budget("a 2 3\nb 0 0\nnew 1 0").unwrap();
        let differences = differences(&budget("# crate openings terms\na 1 4\nb 0 0\ngone 0 0").unwrap(), &counted);
        assert_eq!(
            differences,
            [
                "a has 2 openings, and its budget is 1",
                "a has 3 terms: lower its budget of 4 to 3",
                "new has no budget; add the line `new 1 0`",
                "gone has a budget, but is not a crate; remove the line",
            ]
        );
        assert!(super::differences(&counted, &counted).is_empty());
    }

    #[test]
    fn lists_of_another_form_are_refused() {
        assert!(terms("phrase | grey").is_err());
        assert!(terms("adverb | grey | colour").is_err());
        assert!(budget("a 1").is_err());
        assert!(budget("a one 2").is_err());
    }
}
