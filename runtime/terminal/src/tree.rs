//! Draws lines as a tree with branches.

use std::fmt;

use crate::TerminalText;

/// A line and the lines below it.
#[derive(Debug)]
pub struct Tree {
    line: TerminalText,
    below: Vec<Tree>,
}

impl Tree {
    /// Creates a line. Unsafe characters of the text are replaced.
    pub fn new(line: impl AsRef<str>) -> Self {
        Tree { line: TerminalText::line(line.as_ref()), below: Vec::new() }
    }

    pub fn with(line: impl AsRef<str>, below: impl Iterator<Item = Tree>) -> Self {
        Tree { below: below.collect(), ..Tree::new(line) }
    }

    pub fn push(&mut self, tree: Tree) {
        self.below.push(tree);
    }

    /// Draws the tree with ASCII characters, for terminals that cannot show other characters.
    pub fn to_ascii(&self) -> String {
        let mut text = format!("{}\n", self.line);
        // Writing to a string does not fail.
        let _ = self.write_below(&mut text, "", &ASCII);
        text
    }

    fn write_below(&self, f: &mut impl fmt::Write, indent: &str, branches: &Branches) -> fmt::Result {
        for (index, tree) in self.below.iter().enumerate() {
            let is_last = index + 1 == self.below.len();
            let (branch, rest) = if is_last { branches.last } else { branches.other };
            writeln!(f, "{indent}{branch}{}", tree.line)?;
            tree.write_below(f, &format!("{indent}{rest}"), branches)?;
        }
        Ok(())
    }
}

/// The characters before a line, and the characters before the lines below it. The last line of a branch has different
/// characters from the lines before it.
struct Branches {
    last: (&'static str, &'static str),
    other: (&'static str, &'static str),
}

const LINES: Branches = Branches { last: ("└─ ", "   "), other: ("├─ ", "│  ") };
const ASCII: Branches = Branches { last: ("`- ", "   "), other: ("|- ", "|  ") };

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.line)?;
        self.write_below(f, "", &LINES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_drawn() {
        let mut top = Tree::new("top");
        top.push(Tree::with("a", ["b", "c"].into_iter().map(Tree::new)));
        top.push(Tree::new("d\u{1b}"));
        assert_eq!(top.to_string(), "top\n├─ a\n│  ├─ b\n│  └─ c\n└─ d\u{fffd}\n");
        assert_eq!(top.to_ascii(), "top\n|- a\n|  |- b\n|  `- c\n`- d\u{fffd}\n");
    }
}
