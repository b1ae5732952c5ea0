//! A scanner for Rust source text.
//!
//! In: the text of a `.rs` file. Out: its tokens with their lines: comments, string literals, identifiers and single
//! symbols. Not here: a grammar. Numbers are identifiers, and an operator of two characters is two symbols.

/// One token and the line on which it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located<'s> {
    pub line: usize,
    pub token: Token<'s>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'s> {
    /// One line of a documentation comment (`///` or `//!`), without its marker.
    Doc(&'s str),
    /// One line comment or one block comment, without its markers.
    Comment(&'s str),
    /// The content of a string literal of any kind, with its escapes.
    Text(&'s str),
    /// An identifier, a keyword or a number.
    Word(&'s str),
    Symbol(char),
}

/// Splits the source into tokens. An unterminated literal or block comment extends to the end of the source.
pub fn scan(source: &str) -> Vec<Located<'_>> {
    Scanner { source, at: 0, line: 1 }.run()
}

/// Removes every item with the attribute `#[cfg(test)]`.
pub fn without_tests<'s>(tokens: &[Located<'s>]) -> Vec<Located<'s>> {
    divided(tokens).0
}

/// Returns the tokens of the items with the attribute `#[cfg(test)]`.
pub fn tests_only<'s>(tokens: &[Located<'s>]) -> Vec<Located<'s>> {
    divided(tokens).1
}

/// Divides tokens into those outside and those inside of items with the attribute `#[cfg(test)]`.
fn divided<'s>(tokens: &[Located<'s>]) -> (Vec<Located<'s>>, Vec<Located<'s>>) {
    const MARK: [Token<'static>; 7] = [
        Token::Symbol('#'),
        Token::Symbol('['),
        Token::Word("cfg"),
        Token::Symbol('('),
        Token::Word("test"),
        Token::Symbol(')'),
        Token::Symbol(']'),
    ];
    let (mut product, mut tests) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(located) = tokens.get(at) {
        let is_mark = tokens[at..].iter().map(|located| located.token).take(MARK.len()).eq(MARK);
        if is_mark {
            let end = end_of_item(tokens, at + MARK.len());
            tests.extend_from_slice(&tokens[at..end]);
            at = end;
        } else {
            product.push(*located);
            at += 1;
        }
    }
    (product, tests)
}

/// Returns the index after the item that begins at `start`: after its block, or after its semicolon if it has no block.
fn end_of_item(tokens: &[Located<'_>], start: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, located) in tokens[start..].iter().enumerate() {
        match located.token {
            Token::Symbol('{' | '(' | '[') => depth += 1,
            Token::Symbol('}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return start + offset + 1;
                }
            }
            Token::Symbol(')' | ']') => depth = depth.saturating_sub(1),
            Token::Symbol(';') if depth == 0 => return start + offset + 1,
            _ => {}
        }
    }
    tokens.len()
}

struct Scanner<'s> {
    source: &'s str,
    at: usize,
    line: usize,
}

impl<'s> Scanner<'s> {
    fn run(mut self) -> Vec<Located<'s>> {
        let mut tokens = Vec::new();
        while let Some(first) = self.rest().chars().next() {
            let line = self.line;
            if let Some(token) = self.token(first) {
                tokens.push(Located { line, token });
            }
        }
        tokens
    }

    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    /// Consumes `bytes` bytes and returns them.
    fn take(&mut self, bytes: usize) -> &'s str {
        let taken = &self.source[self.at..self.at + bytes];
        self.line += taken.matches('\n').count();
        self.at += bytes;
        taken
    }

    fn token(&mut self, first: char) -> Option<Token<'s>> {
        let rest = self.rest();
        if first.is_whitespace() {
            self.take(first.len_utf8());
            return None;
        }
        if rest.starts_with("//") {
            return Some(self.line_comment());
        }
        if rest.starts_with("/*") {
            return Some(self.block_comment());
        }
        if let Some(prefix) = string_prefix(rest) {
            self.take(prefix);
            return Some(self.string());
        }
        if let Some(hashes) = raw_string_prefix(rest) {
            return Some(self.raw_string(hashes));
        }
        if first == '\'' {
            return self.character_or_lifetime();
        }
        if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            return Some(Token::Word(self.take(length)));
        }
        self.take(first.len_utf8());
        Some(Token::Symbol(first))
    }

    fn line_comment(&mut self) -> Token<'s> {
        let rest = self.rest();
        let comment = self.take(rest.find('\n').unwrap_or(rest.len()));
        let is_doc = (comment.starts_with("///") && !comment.starts_with("////")) || comment.starts_with("//!");
        if is_doc { Token::Doc(comment[3..].trim()) } else { Token::Comment(comment.trim_start_matches('/').trim()) }
    }

    fn block_comment(&mut self) -> Token<'s> {
        let rest = self.rest();
        let (mut depth, mut at) = (0_usize, 0);
        while at < rest.len() {
            if rest[at..].starts_with("/*") {
                (depth, at) = (depth + 1, at + 2);
            } else if rest[at..].starts_with("*/") {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    break;
                }
            } else {
                at += rest[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
        Token::Comment(self.take(at).trim_start_matches("/*").trim_end_matches("*/"))
    }

    /// Consumes a string literal after its opening quote.
    fn string(&mut self) -> Token<'s> {
        let rest = self.rest();
        let mut is_escaped = false;
        let end = rest.find(|c| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        let content = self.take(end.unwrap_or(rest.len()));
        if end.is_some() {
            self.take(1);
        }
        Token::Text(content)
    }

    fn raw_string(&mut self, hashes: usize) -> Token<'s> {
        let opening = self.rest().find('"').map_or(0, |at| at + 1);
        self.take(opening);
        let closing = format!("\"{}", "#".repeat(hashes));
        let rest = self.rest();
        let end = rest.find(&closing);
        let content = self.take(end.unwrap_or(rest.len()));
        if end.is_some() {
            self.take(closing.len());
        }
        Token::Text(content)
    }

    /// Skips a character literal, or the quote of a lifetime. The lifetime's name then becomes a word.
    fn character_or_lifetime(&mut self) -> Option<Token<'s>> {
        let rest = self.rest();
        let mut characters = rest.char_indices().skip(1);
        let first = characters.next().map(|(_, c)| c);
        let second = characters.next();
        let length = if first == Some('\\') {
            // The escaped character may itself be a quote.
            let from = second.map_or(rest.len(), |(at, c)| at + c.len_utf8());
            rest[from..].find('\'').map_or(rest.len(), |at| from + at + 1)
        } else if let Some((at, '\'')) = second {
            at + 1
        } else {
            1
        };
        self.take(length);
        None
    }
}

/// Returns the length of the opening of a string literal with escapes: `"`, `b"` or `c"`.
fn string_prefix(rest: &str) -> Option<usize> {
    ["\"", "b\"", "c\""].iter().find(|prefix| rest.starts_with(**prefix)).map(|prefix| prefix.len())
}

/// Returns the number of hashes of a raw string literal that begins here: `r"`, `br#"`, `cr##"` and so on.
fn raw_string_prefix(rest: &str) -> Option<usize> {
    let behind = ["r", "br", "cr"].iter().find_map(|prefix| rest.strip_prefix(prefix))?;
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    behind[hashes..].starts_with('"').then_some(hashes)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &str) -> Vec<Token<'_>> {
        scan(source).into_iter().map(|located| located.token).collect()
    }

    #[test]
    fn comments_differ_from_documentation() {
        let source = "//! Module.\n/// Item.\n// Line.\n//// Rule.\n/* Block /* nested */ end */ x";
        assert_eq!(
            tokens(source),
            [
                Token::Doc("Module."),
                Token::Doc("Item."),
                Token::Comment("Line."),
                Token::Comment("Rule."),
                Token::Comment(" Block /* nested */ end "),
                Token::Word("x")
            ]
        );
    }

    #[test]
    fn strings_of_every_kind_are_literals() {
        let source = r####""a \" // b" b"c" r"d\" r#"e"f"# br##"g"# h"## c"i""####;
        let expected = [r#"a \" // b"#, "c", r"d\", r#"e"f"#, r##"g"# h"##, "i"];
        assert_eq!(tokens(source), expected.map(Token::Text));
    }

    #[test]
    fn character_literals_are_skipped_and_lifetimes_are_words() {
        assert_eq!(tokens(r"'a' '\'' '\\' '\u{1F600}' '\n' 'ü' b'x'"), [Token::Word("b")]);
        assert_eq!(tokens("&'a str"), [Token::Symbol('&'), Token::Word("a"), Token::Word("str")]);
        assert_eq!(tokens("'\"' \"text\""), [Token::Text("text")]);
    }

    #[test]
    fn lines_are_counted_across_literals_and_comments() {
        let located = scan("\"one\ntwo\" /* three\nfour */\nfive");
        assert_eq!(located.iter().map(|located| located.line).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn unterminated_literals_extend_to_the_end() {
        assert_eq!(tokens("\"open"), [Token::Text("open")]);
        assert_eq!(tokens("r#\"open\""), [Token::Text("open\"")]);
        assert_eq!(tokens("/* open"), [Token::Comment(" open")]);
        assert_eq!(tokens("'"), []);
        assert_eq!(tokens("'\\"), []);
    }

    #[test]
    fn test_items_are_removed() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { [1]; } }\n#[cfg(test)]\nuse c;\nfn d() {}";
        let scanned = scan(source);
        let product = without_tests(&scanned);
        let words: Vec<_> = product
            .iter()
            .filter_map(|located| match located.token {
                Token::Word(word) => Some(word),
                _ => None,
            })
            .collect();
        assert_eq!(words, ["fn", "a", "fn", "d"]);
    }

    #[test]
    fn test_module_in_a_file_of_its_own_is_removed() {
        let scanned = scan("#[cfg(test)]\nmod tests;\nfn a() {}");
        assert_eq!(without_tests(&scanned).len(), 6);
    }
}
