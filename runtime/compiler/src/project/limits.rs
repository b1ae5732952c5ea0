//! Refuses Jinja that could overflow a stack or grow a value, before the template engine reads it.
//!
//! The engine's parser recurses on chains of operators, and its operators on strings and lists can double a value at
//! each step, which fuel does not bound. Therefore tags are short and few, nesting is shallow, strings are not
//! concatenated or repeated (`~`, `*`, `+`), lists that contain names are few, and macros do not call macros. Values
//! can then grow only by printing, and printed bytes are counted.

use crate::diagnostic::Code;
/// The reason why a template is refused.
pub(super) struct Refusal {
    pub(super) code: Code,
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) message: String,
    pub(super) hint: String,
}

const LIMIT: Code = Code::JinjaLimit;
const SYNTAX: Code = Code::JinjaSyntax;
const MAX_TEMPLATE_BYTES: usize = 256 * 1024;
const MAX_TAGS: usize = 2_000;
const MAX_TOKENS_IN_TAG: usize = 400;
const MAX_NESTING: usize = 24;
const MAX_BRANCHES: usize = 100;
const MAX_NAME_LISTS: usize = 12;

pub(super) fn check(template: &str) -> Result<(), Refusal> {
    let mut scan = Scan::default();
    if template.len() > MAX_TEMPLATE_BYTES {
        return Err(Refusal {
            offset: 0,
            length: 1,
            message: format!("the template has {} bytes", template.len()),
            code: LIMIT,
            hint: "Split the model. A template may have at most 256 KiB.".to_owned(),
        });
    }
    let mut at = 0;
    while let Some(open) = template[at..].find('{').map(|found| at + found) {
        let tag = &template[open..];
        at = open + 1;
        if tag.starts_with("{#") {
            at = open + tag.find("#}").map_or(tag.len(), |end| end + 2);
        } else if tag.starts_with("{{") || tag.starts_with("{%") {
            let close = if tag.starts_with("{{") { "}}" } else { "%}" };
            let tokens = tokens(&tag[2..], close);
            at = open + 2 + tokens.length;
            if !tokens.is_closed {
                let line = tag.lines().next().unwrap_or_default().trim_end_matches([' ', '}', '%']);
                return Err(Refusal {
                    code: SYNTAX,
                    offset: open,
                    length: 2,
                    message: format!("unclosed `{}`", &tag[..2]),
                    hint: format!("Close it, as in `{line} {close}`."),
                });
            }
            let word = tokens.list.iter().find(|token| **token != "-").map_or(open, |word| open + offset_in(tag, word));
            scan.tag(&tokens.list, close == "%}", open, word)?;
            if scan.is_raw() {
                at += template[at..].find("endraw").unwrap_or(template.len() - at);
            }
        }
    }
    scan.end()
}

struct Tokens<'t> {
    list: Vec<&'t str>,
    /// The number of bytes up to and including the closing mark.
    length: usize,
    is_closed: bool,
}

/// Splits a tag into names, numbers, strings and single symbols, up to the closing mark.
fn tokens<'t>(text: &'t str, close: &str) -> Tokens<'t> {
    let mut list = Vec::new();
    let mut at = 0;
    let mut depth = 0usize;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if rest.starts_with(close) && (close != "}}" || depth == 0) {
            return Tokens { list, length: at + close.len(), is_closed: true };
        }
        let length = match c {
            '\'' | '"' => string_length(rest, c),
            c if c.is_alphanumeric() || c == '_' => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !c.is_whitespace() {
            list.push(&rest[..length]);
        }
        at += length;
    }
    Tokens { list, length: text.len(), is_closed: false }
}

fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return index + 1;
        }
    }
    text.len()
}

#[derive(Default)]
struct Scan<'t> {
    tags: usize,
    branches: usize,
    blocks: usize,
    /// The open blocks: the word and place of each.
    open: Vec<(&'t str, usize)>,
    name_lists: usize,
    macros: Vec<&'t str>,
    in_macro: bool,
}

impl<'t> Scan<'t> {
    fn tag(&mut self, tokens: &[&'t str], is_block: bool, offset: usize, word: usize) -> Result<(), Refusal> {
        let refuse = |message: &str, hint: &str| {
            Err(Refusal { code: LIMIT, offset, length: 2, message: message.to_owned(), hint: hint.to_owned() })
        };
        self.tags += 1;
        if self.tags > MAX_TAGS || tokens.len() > MAX_TOKENS_IN_TAG {
            return refuse(
                "the template is too long",
                "Split it. A template may have at most 2,000 tags of 400 words.",
            );
        }
        let tokens = if tokens.first() == Some(&"-") { &tokens[1..] } else { tokens };
        if is_block {
            self.block(tokens, offset, word)?;
        }
        if self.blocks > MAX_NESTING || self.branches > MAX_BRANCHES || nesting(tokens) > MAX_NESTING {
            return refuse("the template is nested too deeply", "Use at most 24 levels and 100 branches.");
        }
        if tokens.iter().any(|token| matches!(*token, "~" | "*")) {
            return refuse(
                "Jinja cannot concatenate or multiply here",
                "Print the parts one after the other: `{{ a }}{{ b }}`.",
            );
        }
        let is_number = |token: Option<&&str>| token.is_some_and(|t| t.starts_with(|c: char| c.is_ascii_digit()));
        for (index, _) in tokens.iter().enumerate().filter(|(_, token)| **token == "+") {
            if !(is_number(tokens.get(index + 1)) || index > 0 && is_number(tokens.get(index - 1))) {
                return refuse(
                    "`+` needs a number on one side",
                    "Print strings one after the other: `{{ a }}{{ b }}`.",
                );
            }
        }
        self.name_lists += lists_with_names(tokens);
        if self.name_lists > MAX_NAME_LISTS {
            return refuse("the template builds too many lists", "Write lists of plain values.");
        }
        let calls_macro = tokens.windows(2).any(|pair| pair[1] == "(" && self.macros.contains(&pair[0]));
        if self.in_macro && calls_macro && tokens.first() != Some(&"macro") {
            return refuse(
                "a macro calls a macro",
                "Call both from the template, or copy the inner macro into the outer one.",
            );
        }
        match tokens.first() {
            Some(&("include" | "import" | "from" | "extends" | "call" | "filter")) if is_block => refuse(
                &format!("the Jinja block `{}` is not available", tokens[0]),
                "Write its text directly. The available blocks are `for`, `if`, `set`, `macro`, `with` and `raw`.",
            ),
            _ => Ok(()),
        }
    }

    /// Returns whether the text is between `raw` and `endraw`, where nothing is a tag.
    fn is_raw(&self) -> bool {
        self.open.last().is_some_and(|(word, _)| *word == "raw")
    }

    /// Reports blocks that are still open at the end of the text.
    fn end(&self) -> Result<(), Refusal> {
        let Some((word, offset)) = self.open.last() else { return Ok(()) };
        Err(Refusal {
            code: SYNTAX,
            offset: *offset,
            length: 2,
            message: format!("unclosed block `{{% {word} … %}}`"),
            hint: format!("Close it with `{{% end{word} %}}`."),
        })
    }

    fn block(&mut self, tokens: &[&'t str], offset: usize, word_offset: usize) -> Result<(), Refusal> {
        let word = tokens.first().copied().unwrap_or_default();
        match word {
            "for" | "if" | "with" | "macro" | "raw" => self.open.push((word, offset)),
            // `set x = 1` is complete, but `set x` opens a block.
            "set" if !tokens.contains(&"=") => self.open.push((word, offset)),
            "endfor" | "endif" | "endwith" | "endmacro" | "endraw" | "endset" => {
                let opened = self.open.pop().map(|(opened, _)| opened);
                if opened.is_none_or(|opened| *opened != word[3..]) {
                    return Err(Refusal {
                        code: SYNTAX,
                        offset: word_offset,
                        length: word.len(),
                        message: match opened {
                            Some(opened) => {
                                format!("`{word}` does not close the open block `{opened}`")
                            }
                            None => format!("unmatched `{word}`"),
                        },
                        hint: match opened {
                            Some(opened) => format!("Close the block with `{{% end{opened} %}}`."),
                            None => format!("Remove it, or open the block with `{{% {} … %}}`.", &word[3..]),
                        },
                    });
                }
            }
            _ => {}
        }
        match word {
            "for" | "if" | "with" | "macro" | "filter" | "call" | "block" => self.blocks += 1,
            "elif" | "else" => self.branches += 1,
            word if word.starts_with("end") => self.blocks = self.blocks.saturating_sub(1),
            _ => {}
        }
        if word == "macro" {
            self.in_macro = true;
            self.macros.extend(tokens.get(1));
        } else if word == "endmacro" {
            self.in_macro = false;
        }
        Ok(())
    }
}

/// Returns the byte offset of `piece`, a slice of `text`, in `text`.
fn offset_in(text: &str, piece: &str) -> usize {
    (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// Returns the macros that a template defines: the name and the source of the parameters of each.
pub(super) fn macros(template: &str) -> Vec<(&str, &str)> {
    let tags = template.match_indices("{%").map(|(at, _)| template[at + 2..].trim_start_matches('-').trim_start());
    tags.filter_map(|tag| {
        let (name, rest) = tag.strip_prefix("macro ")?.split_once('(')?;
        Some((name.trim(), rest.split(')').next()?))
    })
    .collect()
}

fn nesting(tokens: &[&str]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for token in tokens {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    // `not not not …` and `- - - …` recurse too.
    let unary = tokens.iter().filter(|token| matches!(**token, "not" | "-")).count();
    deepest.max(unary)
}

/// Counts lists, tuples and mappings that contain a name. Each of them can double the size of the named value.
fn lists_with_names(tokens: &[&str]) -> usize {
    let opens = tokens.iter().enumerate().filter(|(index, token)| match **token {
        "{" => true,
        "[" | "(" => index.checked_sub(1).is_none_or(|before| {
            let before = tokens[before];
            !(before.ends_with(|c: char| c.is_alphanumeric() || c == '_') || matches!(before, ")" | "]"))
                || matches!(before, "in" | "and" | "or" | "not" | "if" | "else")
        }),
        _ => false,
    });
    opens
        .filter(|(index, _)| {
            let inside = tokens[index + 1..].iter().take_while(|token| !matches!(**token, "]" | ")" | "}"));
            let mut inside = inside.filter(|token| token.starts_with(|c: char| c.is_alphabetic() || c == '_'));
            inside.any(|word| !matches!(*word, "true" | "false" | "none"))
        })
        .count()
}
