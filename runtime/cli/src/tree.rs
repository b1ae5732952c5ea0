//! Lines as a tree, for a person.

use std::fmt;

/// A line and what hangs below it.
#[derive(Debug)]
pub struct Tree {
    line: String,
    below: Vec<Tree>,
}

impl Tree {
    pub fn new(line: impl Into<String>) -> Self {
        Tree { line: line.into(), below: Vec::new() }
    }

    pub fn with(line: impl Into<String>, below: impl Iterator<Item = Tree>) -> Self {
        Tree { line: line.into(), below: below.collect() }
    }

    pub fn push(&mut self, tree: Tree) {
        self.below.push(tree);
    }

    fn write_below(&self, f: &mut fmt::Formatter<'_>, indent: &str) -> fmt::Result {
        for (index, tree) in self.below.iter().enumerate() {
            let is_last = index + 1 == self.below.len();
            let (branch, rest) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            // Names come from files; a terminal must not obey what stands in them.
            let line: String = tree.line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
            writeln!(f, "{indent}{branch}{line}")?;
            tree.write_below(f, &format!("{indent}{rest}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.line)?;
        self.write_below(f, "")
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
    }
}
