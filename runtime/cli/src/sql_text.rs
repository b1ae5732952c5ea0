//! SQL for display: the SQL of models inside a statement is indented like the lines around them.
//!
//! In: a printed statement. Its own lines are indented by two spaces for each level of brackets; the text of an author,
//! such as a model, has the author's indentation. Out: the statement with the author's lines moved to their level.
//! Lines inside a string or a comment do not change, so the statement means the same. Not here: a parser.

use std::ops::Range;

/// The number of spaces of one level of indentation.
const STEP: usize = 2;

/// Indents the SQL of authors.
pub(crate) fn indented(sql: &str) -> String {
    let lines: Vec<&str> = sql.lines().collect();
    let scan = Scan::of(&lines);
    let mut shifts = vec![Shift::By(0); lines.len()];
    // The ranges of lines that an author wrote. A range moves as a whole, with the brackets inside it.
    let mut moved: Vec<Range<usize>> = Vec::new();
    for (index, block) in scan.blocks.iter().enumerate() {
        let Some(end) = block.end.filter(|_| !moved.iter().any(|lines| lines.contains(&block.first))) else { continue };
        let is_foreign = |line: &usize| scan.owners[*line] == Some(index) && spaces(lines[*line]) < block.depth * STEP;
        if let Some(first) = (block.first..end).find(is_foreign) {
            let own = (first..end).filter(|line| !scan.is_literal[*line] && !lines[*line].is_empty());
            own.for_each(|line| shifts[line] = Shift::By(block.depth * STEP));
            moved.push(first..end);
        }
        if block.closes_line {
            shifts[end] = Shift::To((block.depth - 1) * STEP);
        }
    }
    let line = |(line, shift): (&&str, Shift)| match shift {
        Shift::By(spaces) => format!("{}{line}\n", " ".repeat(spaces)),
        Shift::To(spaces) => format!("{}{}\n", " ".repeat(spaces), line.trim_start()),
    };
    lines.iter().zip(shifts).map(line).collect()
}

/// The change of a line's indentation.
#[derive(Debug, Clone, Copy)]
enum Shift {
    By(usize),
    To(usize),
}

/// A block of lines that begins after a bracket at the end of a line.
struct Block {
    first: usize,
    /// The line of the closing bracket; `None` for a block that is not closed.
    end: Option<usize>,
    /// True if the closing bracket begins its line.
    closes_line: bool,
    /// The number of brackets that are open inside the block.
    depth: usize,
}

struct Scan {
    /// The blocks, in the order of their first lines.
    blocks: Vec<Block>,
    /// The innermost block of each line. Empty lines, closing lines and literals have none.
    owners: Vec<Option<usize>>,
    /// For each line, true if it begins inside a string or a block comment.
    is_literal: Vec<bool>,
}

impl Scan {
    fn of(lines: &[&str]) -> Scan {
        let mut scan = Scan { blocks: Vec::new(), owners: Vec::new(), is_literal: Vec::new() };
        let mut state = State::Code;
        // The open brackets. A bracket at the end of its line has the index of its block.
        let mut open: Vec<Option<usize>> = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            let is_literal = state != State::Code;
            let is_closing = !is_literal && line.trim_start().starts_with(')');
            let has_owner = !is_literal && !is_closing && !line.trim().is_empty();
            scan.owners.push(open.iter().rev().find_map(|block| *block).filter(|_| has_owner));
            scan.is_literal.push(is_literal);
            let brackets = brackets(line, &mut state);
            for (place, bracket) in brackets.iter().enumerate() {
                if bracket.is_open {
                    open.push(None);
                } else if let Some(block) = open.pop().flatten() {
                    scan.blocks[block].end = Some(number);
                    scan.blocks[block].closes_line = is_closing && place == 0;
                }
            }
            if brackets.last().is_some_and(|last| last.is_open && last.place + 1 == line.len()) {
                let depth = open.len();
                open[depth - 1] = Some(scan.blocks.len());
                scan.blocks.push(Block { first: number + 1, end: None, closes_line: false, depth });
            }
        }
        scan
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    Quoted(char),
    Comment,
}

struct Bracket {
    /// The position in the line, in bytes.
    place: usize,
    is_open: bool,
}

/// Returns the brackets of a line outside strings and comments.
fn brackets(line: &str, state: &mut State) -> Vec<Bracket> {
    let mut found = Vec::new();
    let mut characters = line.char_indices().peekable();
    while let Some((place, c)) = characters.next() {
        let mut is_next = |expected: char| characters.next_if(|(_, next)| *next == expected).is_some();
        match *state {
            State::Quoted(quote) if c == quote => *state = State::Code,
            State::Comment if c == '*' && is_next('/') => *state = State::Code,
            State::Quoted(_) | State::Comment => {}
            State::Code => match c {
                '\'' | '"' | '`' => *state = State::Quoted(c),
                '-' if is_next('-') => break,
                '/' if is_next('*') => *state = State::Comment,
                '(' | ')' => found.push(Bracket { place, is_open: c == '(' }),
                _ => {}
            },
        }
    }
    found
}

fn spaces(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_indented_below_their_names() {
        let sql = "SELECT 1\nFROM (\n  WITH \"m\" AS (\nSELECT\n  coalesce(\n    a,\n    b\n  ) AS x -- (\nFROM t\n)\n  \
                   SELECT * FROM m) AS \"c\"\nLIMIT 1";
        let expected = "SELECT 1\nFROM (\n  WITH \"m\" AS (\n    SELECT\n      coalesce(\n        a,\n        b\n      \
                        ) AS x -- (\n    FROM t\n  )\n  SELECT * FROM m) AS \"c\"\nLIMIT 1\n";
        assert_eq!(indented(sql), expected);
    }

    #[test]
    fn queries_of_cubes_are_indented_after_their_first_line() {
        let sql = "FROM (\n  SELECT id\nFROM (\n  SELECT 1 AS id\n) AS t\nWHERE x\n) AS \"c\"";
        let expected = "FROM (\n  SELECT id\n  FROM (\n    SELECT 1 AS id\n  ) AS t\n  WHERE x\n) AS \"c\"\n";
        assert_eq!(indented(sql), expected);
    }

    #[test]
    fn multiline_strings_and_malformed_sql_are_unchanged() {
        let sql = "FROM (\nSELECT 'a\n(b' AS x,\n/* (\n( */ 1\n) AS c";
        assert_eq!(indented(sql), "FROM (\n  SELECT 'a\n(b' AS x,\n  /* (\n( */ 1\n) AS c\n");
        for sql in ["", ")", "(", "'", "((", ")\n(\n)", "SELECT (1)"] {
            assert_eq!(indented(sql).trim_end(), sql, "{sql}");
        }
    }

    #[test]
    fn printed_statements_are_unchanged() {
        let sql = "WITH a AS (\n  SELECT 1\n  FROM (\n    SELECT 2\n  ) AS t\n)\nSELECT *\nFROM a\n";
        assert_eq!(indented(sql), sql);
    }
}
