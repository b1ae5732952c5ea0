//! Finds the mistake that made the YAML parser stop.
//!
//! In: the text of a file, and the line where the parser stopped. Out: the [`SyntaxMistake`] at its own place, which
//! may be far above: for a quote that is never closed the parser stops at the end of the file; and the entries of the
//! file, which can be parsed one by one. Not here: a second parser. The lines are searched one by one for common
//! mistakes; for all others the parser's message is shown.

use std::ops::Range;

/// A mistake, with its range of bytes in the text.
pub(super) struct SyntaxMistake {
    pub(super) at: Range<usize>,
    pub(super) message: String,
    pub(super) hint: String,
}

/// Returns the first mistake that can have stopped the parser in `line`, counted from 1.
pub(super) fn find_mistake(text: &str, line: usize) -> Option<SyntaxMistake> {
    let mut reader = LineReader { text, levels: Vec::new(), last: Last::Opened };
    let mut at = 0;
    for (number, full_line) in (1..).zip(text.split_inclusive('\n')) {
        // The mistake may be above the line where the parser stopped, but not more than one line below it.
        if number > line + 1 {
            return None;
        }
        if at < reader.skipped_to() {
            at += full_line.len();
            continue;
        }
        if let Some(mistake) = reader.line(at, full_line.trim_end()) {
            return Some(mistake);
        }
        at += full_line.len();
    }
    None
}

/// Returns the entries of the mapping at the top of a file: each begins with a key in the first column.
pub(super) fn entries(text: &str) -> Vec<Range<usize>> {
    let is_key = |line: &str| line.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '\''));
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is_key(line) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().copied().skip(1).chain([text.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

/// Returns the items of the list below a key at the top of a file, or the whole entry if its value is not a list in
/// lines of its own. The key is part of the first item.
pub(super) fn items(text: &str, entry: Range<usize>) -> Vec<Range<usize>> {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let is_item = |line: &str| matches!(line.trim_start_matches(' ').as_bytes(), [b'-', b' ' | b'\n' | b'\r', ..]);
    let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let lines = || text[entry.clone()].split_inclusive('\n').skip(1);
    let Some(first) = lines().find(|line| !is_empty(line)).filter(|line| is_item(line)) else { return vec![entry] };
    let depth = indent(first);
    let mut starts = vec![entry.start];
    let mut at = entry.start + text[entry.clone()].find('\n').map_or(0, |end| end + 1);
    let mut is_first = true;
    for line in lines() {
        if is_item(line) && indent(line) == depth && !std::mem::take(&mut is_first) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().copied().skip(1).chain([entry.end]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Key(usize),
    Dash(usize),
}

impl Level {
    fn column(self) -> usize {
        let (Level::Key(column) | Level::Dash(column)) = self;
        column
    }
}

/// The way in which the previous line ends.
#[derive(Clone, Copy)]
enum Last {
    /// A key or dash whose value may follow in the next lines.
    Opened,
    /// A plain value, which may continue in lines that are indented more.
    Plain,
    /// A value that ends at this byte, in a later line.
    SkipTo(usize),
}

struct LineReader<'t> {
    text: &'t str,
    levels: Vec<Level>,
    last: Last,
}

impl LineReader<'_> {
    fn skipped_to(&self) -> usize {
        if let Last::SkipTo(end) = self.last { end } else { 0 }
    }

    fn line(&mut self, start: usize, full_line: &str) -> Option<SyntaxMistake> {
        let content = full_line.trim_start();
        let mut column = full_line.len() - content.len();
        if content.is_empty() || content.starts_with('#') || content.starts_with("---") || content == "..." {
            return None;
        }
        if let Some(tab) = full_line[..column].find('\t') {
            let tabs = full_line[tab..column].chars().take_while(|c| *c == '\t').count();
            return Some(SyntaxMistake {
                at: start + tab..start + tab + tabs,
                message: "a tab indents this line; YAML allows only spaces".to_owned(),
                hint: "Replace the tab by two spaces for each level.".to_owned(),
            });
        }
        let leading = full_line.trim_start_matches(' ');
        if leading.starts_with('\u{a0}') {
            let at = start + full_line.len() - leading.len();
            let length = leading.len() - leading.trim_start_matches('\u{a0}').len();
            return Some(SyntaxMistake {
                at: at..at + length,
                message: "a no-break space indents this line; YAML allows only plain spaces".to_owned(),
                hint: "Replace the no-break space by a plain space.".to_owned(),
            });
        }
        let mut content = content;
        while content == "-" || content.starts_with("- ") {
            if let Some(mistake) = self.step(Level::Dash(column), start, content) {
                return Some(mistake);
            }
            let rest = content[1..].trim_start();
            column += content.len() - rest.len();
            content = rest;
            self.last = Last::Opened;
        }
        if content.is_empty() || content.starts_with('#') {
            return None;
        }
        let at = start + column;
        if key_of(content).is_none()
            && let Some(colon) = content.find(":\u{a0}")
        {
            let space = at + colon + 1;
            return Some(SyntaxMistake {
                at: space..space + '\u{a0}'.len_utf8(),
                message: "a no-break space follows this colon; YAML requires a plain space".to_owned(),
                hint: "Replace the no-break space by a plain space.".to_owned(),
            });
        }
        match key_of(content) {
            Some(key) => {
                if let Some(mistake) = self.step(Level::Key(column), start, content) {
                    return Some(mistake);
                }
                let value = content[key + 1..].trim_start();
                let value_at = at + content.len() - value.len();
                self.value(value_at, value, &content[..key])
            }
            None if content.starts_with(['"', '\'', '[', '{']) => self.value(at, content, ""),
            None => self.no_key(at, column, content),
        }
    }

    /// Moves to the indentation level of a key or a dash.
    fn step(&mut self, level: Level, start: usize, content: &str) -> Option<SyntaxMistake> {
        let column = level.column();
        let mut left = None;
        while let Some(top) = self.levels.last().copied() {
            let is_deeper =
                top.column() > column || (top.column() == column && top != level && level == Level::Key(column));
            if !is_deeper {
                break;
            }
            // A dash in the same column belongs to the list itself. The keys of its items are further right.
            if top.column() > column || left.is_none() {
                left = Some(top);
            }
            self.levels.pop();
        }
        let top = self.levels.last().copied();
        if top == Some(level) {
            return None;
        }
        let is_first = top.is_none() && left.is_none();
        let may_open = matches!(self.last, Last::Opened) && left.is_none();
        let is_list_below_key =
            matches!(level, Level::Dash(_)) && top == Some(Level::Key(column)) && matches!(self.last, Last::Opened);
        if is_first || may_open || is_list_below_key {
            self.levels.push(level);
            return None;
        }
        let what = key_of(content).map_or("-", |key| &content[..key]);
        let neighbour = left.or(top).map_or(0, Level::column);
        let at = start + column;
        Some(SyntaxMistake {
            at: at..at + what.len(),
            message: format!(
                "`{what}` begins in column {}, but the lines around it in column {}",
                column + 1,
                neighbour + 1
            ),
            hint: format!("Indent it like the lines around it, from column {}.", neighbour + 1),
        })
    }

    fn value(&mut self, at: usize, value: &str, key: &str) -> Option<SyntaxMistake> {
        // `&shared` and `!!str` stand before a value.
        if let Some(rest) = value.strip_prefix(['&', '!']) {
            let rest = rest.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
            return self.value(at + value.len() - rest.len(), rest, key);
        }
        let assign = |text: &str| if key.is_empty() { text.to_owned() } else { format!("{key}: {text}") };
        match value.chars().next() {
            None | Some('#') => self.last = Last::Opened,
            Some('|' | '>') => self.last = Last::SkipTo(self.block_end(at)),
            Some(quote @ ('"' | '\'')) => {
                let Some(end) = closing_quote(self.text, at, quote).filter(|end| !self.swallows_keys(at, *end)) else {
                    let inside = value[1..].trim_end_matches([quote, ' ']);
                    return Some(SyntaxMistake {
                        at: at..at + 1,
                        message: format!("unclosed {quote}"),
                        hint: format!(
                            "Close it at the end of the string: `{}`.",
                            assign(&format!("{quote}{inside}{quote}"))
                        ),
                    });
                };
                return self.rest_of_line(end, |rest, at| SyntaxMistake {
                    at: at..at + word(rest).len(),
                    message: format!("unexpected `{rest}` after the closing quote"),
                    hint: if quote == '\'' {
                        "Write a quote inside single quotes twice (`''`), or put the string in double quotes."
                            .to_owned()
                    } else {
                        "Write a quote inside double quotes as `\\\"`, or put the string in single quotes.".to_owned()
                    },
                });
            }
            Some(open @ ('[' | '{')) => {
                if value.starts_with("{{") || value.starts_with("{%") {
                    return Some(in_quotes(at, value, "a string that begins with a brace needs quotes", assign));
                }
                let end = match flow_end(self.text, at) {
                    Ok(end) if !self.swallows_keys(at, end) => end,
                    Ok(_) => return Some(unclosed(at, open)),
                    Err((at, open)) => return Some(unclosed(at, open)),
                };
                if open == '{' && end <= at + value.len() {
                    let rest = value[end - at..].trim_start();
                    if !rest.is_empty() && !rest.starts_with('#') {
                        return Some(in_quotes(at, value, "a string that begins with a brace needs quotes", assign));
                    }
                }
                return self.rest_of_line(end, |rest, at| SyntaxMistake {
                    at: at..at + word(rest).len(),
                    message: format!("unexpected `{rest}` after the closing bracket"),
                    hint: "Remove it, or put the whole string in quotes.".to_owned(),
                });
            }
            Some(mark @ ('@' | '`' | '%')) => {
                let message = format!("a string that begins with `{mark}` needs quotes");
                return Some(SyntaxMistake { at: at..at + 1, ..in_quotes(at, value, &message, assign) });
            }
            Some('*') if !value[1..].starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
                let message = "a string that begins with `*` needs quotes";
                return Some(in_quotes(at, value, message, assign));
            }
            Some(_) => {
                let plain = value.split(" #").next().unwrap_or(value).trim_end();
                if let Some(colon) = plain.find(": ").or_else(|| plain.ends_with(':').then(|| plain.len() - 1)) {
                    let message = "a string that contains `: ` needs quotes";
                    return Some(SyntaxMistake {
                        at: at + colon..at + colon + 1,
                        ..in_quotes(at, plain, message, assign)
                    });
                }
                self.last = Last::Plain;
            }
        }
        None
    }

    /// Returns the mistake of a line that is neither a key with its value nor the continuation of a string above.
    fn no_key(&mut self, at: usize, column: usize, content: &str) -> Option<SyntaxMistake> {
        let deepest = self.levels.iter().rev().find(|level| matches!(level, Level::Key(_))).map(|level| level.column());
        let is_rest = match self.last {
            Last::Plain => deepest.is_none_or(|key| column > key),
            // The line is an item of a list, or a value below its key.
            Last::Opened => true,
            Last::SkipTo(_) => false,
        };
        let is_item = matches!(self.last, Last::Opened)
            && matches!(self.levels.last(), Some(Level::Dash(dash)) if *dash < column);
        let next = self.text[at..].split_inclusive('\n').nth(1).unwrap_or_default();
        let has_keys_below = is_item && next.len() - next.trim_start().len() == column && key_of(next.trim()).is_some();
        if is_rest && !has_keys_below {
            self.last = Last::Plain;
            return None;
        }
        let separator = content.find([':', '=', ' ']).unwrap_or(content.len());
        let (key, value) = content.split_at(separator);
        let value = value.trim_start_matches([':', '=', ' ']);
        let value = if value.is_empty() { "…" } else { value };
        Some(SyntaxMistake {
            at: at..at + content.len(),
            message: format!("expected a key and a value, found `{content}`"),
            hint: format!("Write a colon and a space between them: `{key}: {value}`."),
        })
    }

    /// Returns the end of a block scalar: the first line that is not indented more than its key.
    fn block_end(&self, at: usize) -> usize {
        let column = self.levels.last().map_or(0, |level| level.column());
        let mut end = at + self.text[at..].find('\n').map_or(self.text.len() - at, |newline| newline + 1);
        for line in self.text[end..].split_inclusive('\n') {
            let content = line.trim();
            if !content.is_empty() && line.len() - line.trim_start().len() <= column {
                break;
            }
            end += line.len();
        }
        end
    }

    /// Returns whether a quote or bracket continues over lines that begin with a key or a dash at the same or a smaller
    /// indentation.
    fn swallows_keys(&self, from: usize, to: usize) -> bool {
        let column = self.levels.last().map_or(0, |level| level.column());
        self.text[from..to].split_inclusive('\n').skip(1).any(|line| {
            let content = line.trim();
            let indent = line.len() - line.trim_start().len();
            indent <= column && (content.starts_with("- ") || key_of(content).is_some())
        })
    }

    fn rest_of_line(
        &mut self,
        end: usize,
        mistake: impl FnOnce(&str, usize) -> SyntaxMistake,
    ) -> Option<SyntaxMistake> {
        let line = self.text[end..].lines().next().unwrap_or_default();
        let rest = line.trim();
        if rest.is_empty() || rest.starts_with('#') {
            self.last = Last::SkipTo(end + line.len());
            return None;
        }
        Some(mistake(rest, end + line.len() - line.trim_start().len()))
    }
}

fn unclosed(at: usize, open: char) -> SyntaxMistake {
    let close = if open == '[' { ']' } else { '}' };
    SyntaxMistake { at: at..at + 1, message: format!("unclosed `{open}`"), hint: format!("Close it with `{close}`.") }
}

/// Returns a mistake whose hint is the whole value in quotes. If the value contains only double quotes, the hint uses
/// single quotes.
fn in_quotes(at: usize, value: &str, message: &str, assign: impl Fn(&str) -> String) -> SyntaxMistake {
    let quoted = if value.contains('"') && !value.contains('\'') {
        format!("'{value}'")
    } else {
        format!("\"{}\"", value.replace('"', "\\\""))
    };
    SyntaxMistake { at: at..at + 1, message: message.to_owned(), hint: format!("Write `{}`.", assign(&quoted)) }
}

/// Returns the position of a key's colon: at the line's end, or before a space.
fn key_of(content: &str) -> Option<usize> {
    let from = match content.chars().next()? {
        quote @ ('"' | '\'') => closing_quote(content, 0, quote)?,
        '[' | '{' | '#' | '|' | '>' | '@' | '`' | '%' => return None,
        _ => 0,
    };
    let colon =
        from + content[from..].find(": ").or_else(|| content.ends_with(':').then(|| content.len() - 1 - from))?;
    (!content[from..colon].contains(" #") && !content[from..colon].contains(['{', '"'])).then_some(colon)
}

/// Returns the byte offset after the quote that closes the one at `open`.
fn closing_quote(text: &str, open: usize, quote: char) -> Option<usize> {
    let mut chars = text[open + 1..].char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote {
            if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') {
                chars.next();
                continue;
            }
            return Some(open + 1 + index + 1);
        }
    }
    None
}

/// Returns the byte offset after the bracket that closes the one at `open`, or else the unclosed bracket.
fn flow_end(text: &str, open: usize) -> Result<usize, (usize, char)> {
    let mut stack: Vec<(usize, char)> = Vec::new();
    let mut at = open;
    while let Some(c) = text[at..].chars().next() {
        let before = text[..at].chars().next_back();
        match c {
            '"' | '\'' if before.is_none_or(|before| matches!(before, ' ' | '[' | '{' | ',' | '\n')) => {
                match closing_quote(text, at, c) {
                    Some(end) => {
                        at = end;
                        continue;
                    }
                    None => return Err(stack.pop().unwrap_or((open, '['))),
                }
            }
            '[' | '{' => stack.push((at, c)),
            ']' | '}' => {
                let Some((start, bracket)) = stack.pop() else { return Ok(at) };
                if (bracket == '[') != (c == ']') {
                    return Err((start, bracket));
                }
                if stack.is_empty() {
                    return Ok(at + 1);
                }
            }
            _ => {}
        }
        at += c.len_utf8();
    }
    Err(stack.pop().unwrap_or((open, '[')))
}

/// Returns the first word or mark.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    match end {
        Some(0) | None => text.split_whitespace().next().unwrap_or(text),
        Some(end) => &text[..end],
    }
}
