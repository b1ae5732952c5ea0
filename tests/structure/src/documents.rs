//! Finds broken links in Markdown documents.
//!
//! In: the text of a document and its path. Out: each link whose file, heading or item does not exist. If the text of a
//! link is code and its target is a Rust file, as in ``[`SecuredPlan`](…/secure.rs)``, the link names an item of that
//! file. Not here: links to other machines, because a check must not need a network.

use std::path::{Component, Path, PathBuf};

use crate::tokens::{Token, scan};

/// A link of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub line: usize,
    pub text: String,
    pub target: String,
}

/// Returns the links of a document, without those in code blocks.
pub fn links(document: &str) -> Vec<Link> {
    let mut links = Vec::new();
    for (line, text) in prose_lines(document) {
        for (at, _) in text.match_indices("](") {
            let Some(start) = opening_bracket(&text[..at]) else { continue };
            let target = text[at + 2..].split([')', ' ']).next().unwrap_or_default();
            links.push(Link { line, text: text[start + 1..at].to_owned(), target: target.to_owned() });
        }
    }
    links
}

/// Returns the reason why a link is broken. `read` returns the content of a file, `None` for a folder, and an error if
/// the path does not exist.
pub fn fault(
    document: &Path,
    link: &Link,
    read: impl Fn(&Path) -> Result<Option<String>, std::io::Error>,
) -> Option<String> {
    if link.target.contains("://") || link.target.starts_with("mailto:") {
        return None;
    }
    let (file, fragment) = link.target.split_once('#').map_or((link.target.as_str(), None), |(f, h)| (f, Some(h)));
    let target = if file.is_empty() {
        document.to_path_buf()
    } else {
        normal(&document.parent().unwrap_or(Path::new("")).join(file))
    };
    let Ok(text) = read(&target) else { return Some(format!("{} does not exist", target.display())) };
    let text = text.unwrap_or_default();
    if let Some(heading) = fragment
        && !headings(&text).iter().any(|known| known == heading)
    {
        return Some(format!("{} has the headings {:?}", target.display(), headings(&text)));
    }
    let is_rust = target.extension().is_some_and(|extension| extension == "rs");
    let item = link.text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).filter(|_| is_rust)?;
    let item = item.rsplit("::").next().unwrap_or(item).trim_end_matches("()").trim_end_matches('!');
    let is_file = item.contains(['/', '.']);
    (!is_file && !has_word(&text, item)).then(|| format!("{} does not contain `{item}`", target.display()))
}

fn has_word(source: &str, item: &str) -> bool {
    scan(source).iter().any(|located| located.token == Token::Word(item))
}

/// Returns the fragments by which GitHub identifies a document's headings.
pub fn headings(document: &str) -> Vec<String> {
    let mut headings: Vec<String> = Vec::new();
    for (_, line) in prose_lines(document) {
        let Some((marks, title)) = line.split_once(' ') else { continue };
        if marks.is_empty() || marks.bytes().any(|byte| byte != b'#') {
            continue;
        }
        let remaining = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = remaining.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = headings.iter().filter(|known| **known == slug).count();
        headings.push(if again == 0 { slug } else { format!("{slug}-{again}") });
    }
    headings
}

fn prose_lines(document: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    document.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

/// Returns the position of the bracket that the bracket at the end of the text closes.
fn opening_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices().rev() {
        match c {
            ']' => depth += 1,
            '[' if depth == 0 => return Some(at),
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the path with its `.` and `..` resolved.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    const DOCUMENT: &str =
        "# The title\n[a](b.md#part-one) and [`Thing`](src/c.rs)\n```\n[no](link)\n```\n## Part one\n";

    fn faults(text: &str) -> Vec<String> {
        let read = |path: &Path| match path.to_str() {
            Some("docs/b.md" | "docs/x.md") => Ok(Some("## Part one: `x`!\n## Part one: x\n".to_owned())),
            Some("docs/src/c.rs") => Ok(Some("struct Thing; // Other\n".to_owned())),
            Some("src") => Ok(None),
            _ => Err(Error::from(ErrorKind::NotFound)),
        };
        links(text).iter().filter_map(|link| fault(Path::new("docs/x.md"), link, read)).collect()
    }

    #[test]
    fn links_outside_of_code_blocks_are_found() {
        let targets: Vec<_> = links(DOCUMENT).into_iter().map(|link| (link.line, link.text, link.target)).collect();
        let expected = [(2, "a", "b.md#part-one"), (2, "`Thing`", "src/c.rs")];
        assert_eq!(targets, expected.map(|(line, text, target)| (line, text.to_owned(), target.to_owned())));
    }

    #[test]
    fn headings_become_the_fragments_of_github() {
        assert_eq!(headings("# A `b`: c-d_e\n## X\n## X\nno # heading\n#none\n"), ["a-b-c-d_e", "x", "x-1"]);
    }

    #[test]
    fn valid_links_have_no_finding() {
        let fine = "[a](b.md) [a](./b.md#part-one-x) [a](#part-one-x-1) [f](../src) [`m::Thing`](src/c.rs) \
                    [`src/c.rs`](src/c.rs) [h](https://x.test/y)";
        assert_eq!(faults(fine), [""; 0]);
    }

    #[test]
    fn broken_links_are_found() {
        assert_eq!(faults("[a](gone.md)"), ["docs/gone.md does not exist"]);
        assert_eq!(faults("[`Other`](src/c.rs)"), ["docs/src/c.rs does not contain `Other`"]);
        assert!(faults("[a](b.md#part-two)")[0].starts_with("docs/b.md has the headings"));
    }
}
