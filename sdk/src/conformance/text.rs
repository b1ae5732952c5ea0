//! Cases for strings: compared, grouped, sorted and counted by code point; searched case-sensitively, and with `%` and
//! `_` as ordinary characters.

use super::writer::{Expr, x, y};
use super::{Expected, Suite};
use crate::LogicalType;
use crate::dialect::Op;

/// Pairs of strings with the lesser first, by code point. A full-width tilde comes before an emoji, although UTF-16
/// sorts the emoji first.
const ORDERED: [(&str, &str, &str); 9] = [
    ("case", "A", "a"),
    ("upper before lower", "Z", "a"),
    ("a trailing space", "a", "a "),
    ("only a space", "", " "),
    ("an accent", "e", "é"),
    ("an accent after z", "z", "é"),
    ("a combining accent", "e\u{301}", "é"),
    ("beyond the basic plane", "～", "😀"),
    ("digits as text", "10", "9"),
];

/// A string, a string to search for, and the results of contains, starts with and ends with.
const SEARCHES: [(&str, &str, [bool; 3]); 20] = [
    ("Hello World", "Hello", [true, true, false]),
    ("Hello World", "World", [true, false, true]),
    ("Hello World", "hello", [false, false, false]),
    ("Hello World", "WORLD", [false, false, false]),
    ("Hello World", "", [true, true, true]),
    ("a", "abc", [false, false, false]),
    ("", "", [true, true, true]),
    ("abc", "%", [false, false, false]),
    ("100%", "%", [true, false, true]),
    ("abc", "_", [false, false, false]),
    ("_abc", "_", [true, true, false]),
    ("abc", "a.c", [false, false, false]),
    ("a*c", "*c", [true, false, true]),
    ("it's", "'", [true, false, false]),
    ("a\\b", "\\", [true, false, false]),
    ("a ", "a", [true, true, false]),
    ("a", "a ", [false, false, false]),
    ("日本語", "日", [true, true, false]),
    ("日本語", "語", [true, false, true]),
    ("naïve", "i", [false, false, false]),
];

pub(super) fn cases(suite: &mut Suite<'_>) {
    comparison(suite);
    sets(suite);
    search(suite);
}

fn comparison(suite: &mut Suite<'_>) {
    suite.group = "text comparison";
    let w = suite.writer;
    let collated = |column: Expr| w.op(Op::Collate, &[column]);
    for (name, less, more) in ORDERED {
        for (sign, op, truth) in [("=", Op::Eq, false), ("<>", Op::Ne, true), ("<", Op::Lt, true), (">", Op::Gt, false)]
        {
            // The right operand is a bound value, as in the host's filters.
            let test = collated(x()).and_then(|x| w.op(op, &[x, w.text_literal(more)]));
            suite.condition(format!("{name} {sign}"), &[w.text(less)], test, Some(truth));
        }
    }
    let same = collated(x()).and_then(|x| w.op(Op::Eq, &[x, w.text_literal("naïve ☃")]));
    suite.condition("equal texts", &[w.text("naïve ☃")], same, Some(true));
    let Some(x) = collated(x()) else { return };
    for (name, text, list, truth) in [("a", "a", "'A', 'a ', 'b'", "false"), ("a again", "a", "'A', 'a'", "true")] {
        let sql = format!("CASE WHEN {} IN ({list}) THEN 'true' ELSE 'false' END", x.sql);
        suite.of_columns(format!("in a list, {name}"), &[w.text(text)], Some(Expr::closed(sql)), Expected::text(truth));
    }
}

fn sets(suite: &mut Suite<'_>) {
    suite.group = "text groups and order";
    let w = suite.writer;
    let texts = ["b", "a", "B", "a ", "á", "A", "a", "b"];
    let rows = texts.map(|text| [w.text(text)]);
    let rows: Vec<&[Expr]> = rows.iter().map(|row| &row[..]).collect();
    let table = w.table(&rows);
    let Some(x) = w.op(Op::Collate, &[x()]) else { return };
    let key = w.quoted_name("t.key");
    let by_key = format!("SELECT {} AS {key}, count(*) AS n FROM {table} GROUP BY 1", x.sql);
    let groups = [("A", 1), ("B", 1), ("a", 2), ("a ", 1), ("b", 2), ("á", 1)];
    let rows: Vec<_> = groups.iter().map(|(key, n)| vec![Expected::text(key), Expected::number(n)]).collect();
    let reversed = rows.iter().rev().cloned().collect();
    suite.push("groups, ascending", format!("{by_key} {}", w.order(&key, false)), rows);
    suite.push("groups, descending", format!("{by_key} {}", w.order(&key, true)), reversed);
    for (name, op, expected) in [
        ("count distinct", Op::CountDistinct, Expected::number(6)),
        ("approximate count distinct", Op::ApproxDistinct, Expected::number(6)),
        ("min", Op::Min, Expected::text("A")),
        ("max", Op::Max, Expected::text("á")),
    ] {
        if let Some(call) = w.op_for(op, Some(LogicalType::Text), std::slice::from_ref(&x)) {
            suite.push(name, format!("SELECT {} AS r FROM {table}", call.sql), vec![vec![expected]]);
        }
    }
}

fn search(suite: &mut Suite<'_>) {
    suite.group = "text search";
    let w = suite.writer;
    for (text, part, truths) in SEARCHES {
        for (op, truth) in [Op::Contains, Op::StartsWith, Op::EndsWith].into_iter().zip(truths) {
            let test = w.op(Op::Collate, &[x()]).and_then(|x| w.op(op, &[x, w.text_literal(part)]));
            suite.condition(format!("{op:?} `{text}`, `{part}`"), &[w.text(text)], test, Some(truth));
        }
    }
    for op in [Op::Contains, Op::StartsWith, Op::EndsWith] {
        let test = w.op(op, &[x(), y()]);
        let columns = [w.null(LogicalType::Text), w.text("a")];
        suite.condition(format!("{op:?} of null"), &columns, test.clone(), None);
        // The columns have no collation, because the host adds none to strings that are not dimensions, such as the
        // greatest name of a group.
        suite.condition(format!("{op:?} of columns"), &[w.text("Ab"), w.text("AB")], test, Some(false));
    }
    let joined = w.op(Op::Concat, &[x(), w.text_literal("-"), y()]);
    suite.of_columns("concat", &[w.text("a "), w.text("b")], joined, Expected::text("a -b"));
}
