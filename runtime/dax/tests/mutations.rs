//! Tests that random changes of queries make neither the parser nor the binder nor the completions panic.
//!
//! The original queries resemble those that users write. They are changed by removing, doubling, exchanging and
//! inserting parts. The same seed always creates the same texts.

use terrane_compiler::{Access, SecurityContext};
use terrane_dax::parser::parse_query;
use terrane_dax::{Position, complete, read};
use terrane_golden_tests::case::models;

const TEXTS: &[&str] = &[
    "EVALUATE SUMMARIZECOLUMNS(customers[region], FILTER(ALL(orders[status]), orders[status] <> \"new\"), \"n\", [revenue]) \
     ORDER BY [n] DESC START AT 5",
    "DEFINE MEASURE orders[Twice] = [revenue] * 2\n VAR limit = 10 -- a comment\nEVALUATE FILTER(VALUES('customers'[region]), \
     [twice] > limit && orders[count] >= @least)",
    "EVALUATE TOPN(3, ADDCOLUMNS(VALUES(customers[region]), \"a b\", CALCULATE(SUM(orders[id]), orders[is_large] = TRUE())), \
     [a b], ASC); EVALUATE {(1, \"a\"), (-2.5e3, \"it\"\"s\")}",
    "EVALUATE ROW(\"d\", DATEDIFF(dt\"2024-01-31\", DATE(2024, 2, 29), MONTH), \"x\", NOT 1 IN {1, 2} || 2^-1^2 & \"z\" = \"\")",
    "EVALUATE VAR t = UNION(ROW(\"a\", 1), {2}) RETURN GENERATE(t, /* c */ TREATAS({\"x\", BLANK()}, customers[region]))",
];

/// The parts that are inserted into queries.
const PARTS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "'",
    "\"",
    ",",
    ";",
    "=",
    "==",
    "<>",
    "&&",
    "||",
    "!",
    "^",
    "-",
    "--",
    "/*",
    "*/",
    "//",
    "@",
    "@p",
    "EVALUATE",
    "DEFINE",
    "VAR",
    "RETURN",
    "MEASURE",
    "ORDER BY",
    "START AT",
    "IN",
    "NOT",
    "dt\"2024-01-32\"",
    "1e999",
    ".5",
    "0x1",
    "é",
    "\u{0}",
    "\u{feff}",
    "😀",
    "\u{a0}",
    "orders",
    "orders[",
    "[revenue]",
    "CALCULATE(",
    "IF(,",
];

struct Random(u64);

impl Random {
    /// Returns a number less than `bound`, which must not be 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// Returns a random index from 0 to the number of characters.
    fn place(&mut self, characters: &[char]) -> usize {
        self.below(characters.len() + 1)
    }

    fn range(&mut self, characters: &[char]) -> std::ops::Range<usize> {
        let start = self.place(characters);
        let length = self.below(1 + (characters.len() - start).min(20));
        start..start + length
    }
}

fn mutated(random: &mut Random) -> String {
    let mut characters: Vec<char> = TEXTS[random.below(TEXTS.len())].chars().collect();
    for _ in 0..1 + random.below(6) {
        let range = random.range(&characters);
        match random.below(5) {
            0 => _ = characters.drain(range),
            1 => {
                let copied = characters[range].to_vec();
                let at = random.place(&characters);
                characters.splice(at..at, copied);
            }
            2 => characters[range].reverse(),
            3 => characters.truncate(range.end),
            _ => {
                let part = PARTS[random.below(PARTS.len())].chars();
                let at = range.start;
                characters.splice(at..at, part);
            }
        }
    }
    characters.into_iter().collect()
}

#[test]
fn mutated_texts_never_panic() {
    let model = models().remove("shop").unwrap();
    let caller = SecurityContext { roles: vec!["analyst".into()], ..SecurityContext::default() };
    let access = Access::of(&model, &caller);
    let mut random = Random(23);
    let mut accepted = 0;
    for _ in 0..3_000 {
        let text = mutated(&mut random);
        let parsed = parse_query(&text);
        // A stage reports at most 100 problems.
        assert!(parsed.problems.len() <= 100, "{text}");
        // Printing visits every node once. Brackets and spaces may make the printed tree longer than its text.
        assert!(parsed.tree.to_string().len() <= 20 * text.len() + 100, "{text}");
        let bound = read(&text, &access);
        for problem in &bound.problems {
            let Position { line, column } = problem.place.position(&text);
            assert!(line >= 1 && column >= 1, "{text}");
            assert!(!problem.in_text(&text).to_string().is_empty());
        }
        accepted += usize::from(bound.problems.is_empty());
        let offset = (0..=text.len()).rev().find(|at| text.is_char_boundary(*at) && *at <= text.len() / 2).unwrap_or(0);
        for item in complete(&text, offset, &access) {
            assert!(item.replaces.start <= item.replaces.end && item.replaces.end as usize <= text.len(), "{text}");
        }
    }
    // Some changed queries are valid queries, so that binding was tested too.
    assert!(accepted > 20, "{accepted}");
}
