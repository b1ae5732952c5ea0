//! Tests parsing through the public interface: accepted and refused queries, recovery, printing, limits.

use terrane_dax::parser::{MAX_NESTING, parse_expression, parse_query};
use terrane_dax::tree::{
    Definition, Evaluation, Expression, ExpressionKind, Literal, Name, Number, Operator, OrderKey, PrefixOperator,
    Query, Variable,
};
use terrane_dax::{MAX_CHARACTERS, Place, ProblemCode, ProblemKind};

/// Queries that use every part of the syntax.
const QUERIES: &[&str] = &[
    "EVALUATE orders",
    "evaluate 'Sales Orders'",
    "EVALUATE {1, 2.5, \"x\", TRUE, dt\"2024-01-01\"}",
    "EVALUATE {(1, \"a\"), (2, \"b\")};",
    "EVALUATE ROW(\"Value\", -2^2 + 3 * (4 - 5) / 6 & \"x\")",
    "// a comment\nEVALUATE -- another\n/* and\n a third */ orders",
    "DEFINE MEASURE orders[Twice] = [revenue] * 2 VAR x = 3 EVALUATE ROW(\"a\", [Twice], \"b\", x)",
    "DEFINE VAR a = VALUES(orders[status]) MEASURE 'orders'[m] = VAR b = 1 VAR c = b + 1 RETURN b * c EVALUATE a",
    "EVALUATE FILTER(orders, orders[status] IN {\"new\", \"paid\"} && NOT orders[id] IN {1, 2})",
    "EVALUATE FILTER(orders, (orders[a], orders[b]) IN {(1, 2), (3, 4)} || ! orders[c])",
    "EVALUATE TOPN(3, SUMMARIZECOLUMNS(orders[status], \"Total\", [revenue]), [Total], DESC) ORDER BY [Total] DESC, \
     orders[status] START AT 5, \"a\"",
    "EVALUATE SUMMARIZECOLUMNS('Sales Territory' [Category], \"x\", CALCULATE([m], ALL(orders), orders[a] == 1))",
    "EVALUATE ROW(\"a\", DIVIDE([x], [y],), \"b\", @limit + 1)",
    "EVALUATE orders ORDER BY orders[id] ASC EVALUATE customers",
    "EVALUATE VAR a = {1} RETURN FILTER(a, VAR b = [Value] RETURN b > 0)",
    "EVALUATE FILTER(T, T[a]<>1 && T[b]<=2 && T[c]>=3 && T[d]<4 && T[e]>5 && T[it]]s] = \"say \"\"hi\"\"\")",
];

/// Texts that are not DAX queries, each with the code, the line and the column of its first problem.
const REFUSED: &[(&str, ProblemCode, u32, u32)] = &[
    ("", ProblemCode::Syntax, 1, 1),
    ("SELECT 1", ProblemCode::Syntax, 1, 1),
    ("EVALUTE orders", ProblemCode::Syntax, 1, 1),
    ("EVALUATE", ProblemCode::Syntax, 1, 9),
    ("EVALUATE orders)", ProblemCode::Syntax, 1, 16),
    ("EVALUATE FILTER(orders, orders[a] = )", ProblemCode::Syntax, 1, 37),
    ("EVALUATE FILTER(orders, orders[a] = 1", ProblemCode::Syntax, 1, 16),
    ("EVALUATE FILTER(orders orders[a] = 1)", ProblemCode::Syntax, 1, 24),
    ("EVALUATE\n  {1, }", ProblemCode::Syntax, 2, 7),
    ("EVALUATE {}", ProblemCode::Syntax, 1, 11),
    ("EVALUATE {1 2}", ProblemCode::Syntax, 1, 13),
    ("EVALUATE 'orders", ProblemCode::Syntax, 1, 10),
    ("EVALUATE ROW(\"a, 1)", ProblemCode::Syntax, 1, 13),
    ("EVALUATE orders[a", ProblemCode::Syntax, 1, 16),
    ("EVALUATE orders /* open", ProblemCode::Syntax, 1, 17),
    ("EVALUATE orders ORDER BY", ProblemCode::Syntax, 1, 25),
    ("EVALUATE orders ORDER orders[a]", ProblemCode::Syntax, 1, 23),
    ("EVALUATE orders ORDER", ProblemCode::Syntax, 1, 22),
    ("EVALUATE orders ORDER BY orders[a] START 1", ProblemCode::Syntax, 1, 42),
    ("EVALUATE orders ORDER BY orders[a] ORDER BY orders[b]", ProblemCode::Syntax, 1, 36),
    ("EVALUATE orders ORDER BY orders[a] ORDER orders[b]", ProblemCode::Syntax, 1, 36),
    ("EVALUATE orders START AT 1", ProblemCode::Syntax, 1, 17),
    ("EVALUATE orders ORDER BY orders[a] START AT 1, 2", ProblemCode::Syntax, 1, 36),
    ("DEFINE MEASURE [m] = 1 EVALUATE {1}", ProblemCode::Syntax, 1, 16),
    ("DEFINE MEASURE orders = 1 EVALUATE {1}", ProblemCode::Syntax, 1, 23),
    ("DEFINE EVALUATE {1}", ProblemCode::Syntax, 1, 8),
    ("DEFINE VAR x 1 EVALUATE {x}", ProblemCode::Syntax, 1, 14),
    ("DEFINE MEASURE orders[m] = 1", ProblemCode::Syntax, 1, 29),
    ("EVALUATE VAR x = 1", ProblemCode::Syntax, 1, 19),
    ("EVALUATE {dt\"2024-13-01\"}", ProblemCode::Syntax, 1, 11),
    ("EVALUATE {1x}", ProblemCode::Syntax, 1, 11),
    ("EVALUATE {1 § 2}", ProblemCode::Syntax, 1, 13),
    ("EVALUATE {a AND b}", ProblemCode::Syntax, 1, 13),
    ("EVALUATE FILTER(T, T[a] NOT IN {1})", ProblemCode::Syntax, 1, 25),
    ("EVALUATE {1 +* 2}", ProblemCode::Syntax, 1, 14),
    ("DEFINE FUNCTION f = (t : TABLE VAL) => COUNTROWS(t) EVALUATE {1}", ProblemCode::NotSupported, 1, 8),
    ("DEFINE TABLE t = {1} EVALUATE t", ProblemCode::NotSupported, 1, 8),
    ("EVALUATE FILTER(T, T[Date].[Year] = 2021)", ProblemCode::NotSupported, 1, 20),
];

/// Removes the places from the debug form of a tree.
fn structure(tree: &impl std::fmt::Debug) -> String {
    let text = format!("{tree:?}");
    let mut parts = text.split("place: ");
    let mut structure = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        structure.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    }
    structure
}

#[test]
fn queries_are_accepted_and_printed() {
    for text in QUERIES {
        let parsed = parse_query(text);
        assert_eq!(parsed.problems, [], "{text}");
        let printed = parsed.tree.to_string();
        let again = parse_query(&printed);
        assert_eq!(again.problems, [], "{printed}");
        assert_eq!(structure(&again.tree), structure(&parsed.tree), "{text}\n{printed}");
    }
}

#[test]
fn other_texts_are_refused_with_place_and_suggestion() {
    for (text, code, line, column) in REFUSED {
        let parsed = parse_query(text);
        let Some(first) = parsed.problems.first() else { panic!("accepted: {text}") };
        let position = first.place.position(text);
        assert_eq!((first.code(), position.line, position.column), (*code, *line, *column), "{text}: {first:?}");
        assert!(*code != ProblemCode::Syntax || first.suggestion().is_some(), "{text}: {first:?}");
    }
}

#[test]
fn all_problems_of_a_text_are_reported() {
    let text =
        "DEFINE MEASURE orders[m] = 1 +\nMEASURE orders[n] = (2\nEVALUATE ROW(\"a\", ) ORDER orders[x]\nEVALUATE {,}";
    let parsed = parse_query(text);
    let lines: Vec<u32> = parsed.problems.iter().map(|problem| problem.place.position(text).line).collect();
    // `ROW("a", )` parses: whether an argument may be omitted is checked by the binder.
    assert_eq!(lines, [2, 2, 3, 4, 4], "{:?}", parsed.problems);
    assert_eq!((parsed.tree.definitions.len(), parsed.tree.evaluations.len()), (2, 2));
}

#[test]
fn problems_are_shown_with_place_and_suggestion() {
    let text = "EVALUATE\n FILTER(orders orders[a] = 1)";
    let parsed = parse_query(text);
    let shown: Vec<String> = parsed.problems.iter().map(|problem| problem.in_text(text).to_string()).collect();
    assert_eq!(shown, ["line 2, column 16: expected `,`, found `orders`. Separate arguments with commas."]);
    let text = "EVALUATE orders ORDER orders[a] DESC START 1 EVALUATE orders";
    let parsed = parse_query(text);
    let shown: Vec<String> = parsed.problems.iter().map(|problem| problem.in_text(text).to_string()).collect();
    let expected = [
        "line 1, column 23: expected `BY` after `ORDER`, found `orders`. Write `ORDER BY` and the keys of the order.",
        "line 1, column 44: expected `AT` after `START`, found a number. \
         Write `START AT` and a value for each key of `ORDER BY`.",
    ];
    assert_eq!(shown, expected);
    assert_eq!(parsed.tree.evaluations.len(), 2);
    let misspelled = parse_query("EVALUTE orders");
    assert_eq!(misspelled.problems[0].suggestion().as_deref(), Some("Did you mean `EVALUATE`?"));
}

#[test]
fn semicolons_between_arguments_are_one_problem_of_each_list() {
    for (text, places) in [
        ("EVALUATE FILTER(orders; orders[a] = 1)", &[23][..]),
        ("EVALUATE {1; 2; 3}", &[12]),
        ("EVALUATE {IF(1 = 1;; 2); 3}", &[19, 24]),
        ("EVALUATE ADDCOLUMNS(t; \"a\"; IF([b] > 1; 2; 3)) ORDER BY [a]; EVALUATE t", &[22, 39]),
    ] {
        let parsed = parse_query(text);
        let columns: Vec<u32> = parsed.problems.iter().map(|problem| problem.place.position(text).column).collect();
        assert_eq!(columns, places, "{text}: {:?}", parsed.problems);
        let suggestions: Vec<Option<String>> = parsed.problems.iter().map(|problem| problem.suggestion()).collect();
        let expected = Some("Separate arguments and values with commas.".to_owned());
        assert!(suggestions.iter().all(|suggestion| *suggestion == expected), "{text}: {suggestions:?}");
    }
    let unclosed = "EVALUATE FILTER(orders, 1 = 1; EVALUATE orders;";
    let parsed = parse_query(unclosed);
    assert!(matches!(parsed.problems[0].kind, ProblemKind::UnclosedBracket { .. }), "{:?}", parsed.problems);
    assert_eq!((parsed.problems.len(), parsed.tree.evaluations.len()), (1, 2));
}

#[test]
fn precedence_is_that_of_dax() {
    for (text, same) in [
        ("-2^2", "-(2^2)"),
        ("2^-1^2", "2^(-(1^2))"),
        ("1 + 2 * 3 & 4 = 5", "((1 + (2 * 3)) & 4) = 5"),
        ("NOT a = b && c || d", "((NOT (a = b)) && c) || d"),
        ("NOT T[a] IN {1}", "NOT (T[a] IN {1})"),
        ("1 - 2 - 3", "(1 - 2) - 3"),
        ("2 ^ 3 ^ 2", "(2 ^ 3) ^ 2"),
        ("a = b = c", "(a = b) = c"),
        ("-1 * -2", "(-1) * (-2)"),
    ] {
        let (one, two) = (parse_expression(text), parse_expression(same));
        assert_eq!((&one.problems[..], &two.problems[..]), (&[][..], &[][..]), "{text}");
        assert_eq!(structure(&one.tree), structure(&two.tree), "{text}");
    }
    for (one, two) in [("1 - (2 - 3)", "1 - 2 - 3"), ("(-2)^2", "-2^2"), ("NOT (a && b)", "NOT a && b")] {
        assert_ne!(structure(&parse_expression(one).tree), structure(&parse_expression(two).tree), "{one}");
    }
}

#[test]
fn nesting_ends_at_the_limit() {
    let nest = |open: &str, close: &str, levels: usize| format!("{}1{}", open.repeat(levels), close.repeat(levels));
    let forms = [
        ("(", ")"),
        ("ABS(", ")"),
        ("1 + (2 * -(", "))"),
        ("{", "}"),
        ("VAR a = ", " RETURN a"),
        ("- ", ""),
        ("NOT ", ""),
    ];
    for (open, close) in forms {
        let step = open.matches('(').count().max(1);
        for levels in [1, 50, 100, 150, 199, MAX_NESTING] {
            let text = nest(open, close, levels / step);
            let parsed = parse_expression(&text);
            assert_eq!(parsed.problems, [], "{open} {levels}");
            // Printing and dropping the tree visit every level too.
            assert!(parsed.tree.to_string().contains('1'));
        }
        for levels in [MAX_NESTING + 1, 300, 1_000, 5_000, 10_000] {
            let parsed = parse_expression(&nest(open, close, levels));
            assert_eq!(parsed.problems.len(), 1, "{open} {levels}: {:?}", parsed.problems.get(..3));
            assert_eq!(parsed.problems[0].code(), ProblemCode::Limit, "{open} {levels}");
        }
    }
}

#[test]
fn mixed_nesting_does_not_exhaust_the_stack() {
    let unit = "IF(NOT 1 + 2 * -3 ^ (";
    for levels in 1..=MAX_NESTING / 2 {
        let text = format!("{}1{}", unit.repeat(levels), "), 1)".repeat(levels));
        let parsed = parse_expression(&text);
        let is_too_deep = parsed.problems.iter().any(|p| p.code() == ProblemCode::Limit);
        assert!(parsed.problems.is_empty() || is_too_deep, "{levels}: {:?}", parsed.problems);
        assert!(levels > 100 || !is_too_deep || levels * 2 > MAX_NESTING, "{levels}");
        assert!(!format!("{}", parsed.tree).is_empty());
    }
}

#[test]
fn long_chains_are_flat() {
    for operator in [" + 1", " && 1", " & 1", " = 1", " ^ 1"] {
        let text = format!("1{}", operator.repeat((MAX_CHARACTERS - 1) / operator.len()));
        let parsed = parse_expression(&text);
        assert_eq!(parsed.problems, []);
        let ExpressionKind::Chain { rest, .. } = &parsed.tree.kind else { panic!("not a chain") };
        assert!(rest.len() > 15_000);
        assert_eq!(structure(&parse_expression(&parsed.tree.to_string()).tree), structure(&parsed.tree));
    }
}

#[test]
fn long_texts_are_refused() {
    let text = format!("EVALUATE {{{}1}}", "1, ".repeat(MAX_CHARACTERS / 3));
    let parsed = parse_query(&text);
    assert!(matches!(parsed.problems[..], [ref only] if matches!(only.kind, ProblemKind::TooLong { .. })));
}

/// A generator of pseudo-random numbers (xorshift), so that failures can be reproduced.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

#[test]
fn random_tokens_never_panic() {
    let tokens = [
        "EVALUATE",
        "DEFINE",
        "MEASURE",
        "VAR",
        "RETURN",
        "ORDER",
        "BY",
        "START",
        "AT",
        "ASC",
        "DESC",
        "IN",
        "NOT",
        "AND",
        "TRUE",
        "x",
        "'t a'",
        "'",
        "[c]",
        "[",
        "]",
        "\"s\"",
        "\"",
        "(",
        ")",
        "{",
        "}",
        ",",
        ";",
        ".",
        "+",
        "-",
        "--",
        "/",
        "/*",
        "*/",
        "*",
        "^",
        "&",
        "&&",
        "||",
        "!",
        "=",
        "==",
        "<>",
        "<",
        ">",
        "1",
        "1.5e3",
        "1e999",
        "dt\"2024-01-01\"",
        "dt\"",
        "@p",
        "@",
        "§",
        "é",
        "\n",
        "SUM",
        "TABLE",
        "FUNCTION",
        "=>",
        "\u{feff}",
    ];
    let mut random = Random(42);
    for _ in 0..30_000 {
        let length = random.below(40);
        let mut text = String::new();
        for _ in 0..length {
            text.push_str(random.of(&tokens));
            if random.below(3) > 0 {
                text.push(' ');
            }
        }
        let parsed = parse_query(&text);
        for problem in &parsed.problems {
            assert!(!problem.in_text(&text).to_string().is_empty());
        }
        if parsed.problems.is_empty() {
            let printed = parsed.tree.to_string();
            assert_eq!(structure(&parse_query(&printed).tree), structure(&parsed.tree), "{text}\n{printed}");
            assert!(!structure(&parsed.tree).contains("Invalid"), "{text}");
        }
    }
}

#[test]
fn random_trees_survive_printing() {
    let mut random = Random(7);
    for _ in 0..5_000 {
        let tree = query(&mut random);
        let printed = tree.to_string();
        let parsed = parse_query(&printed);
        assert_eq!(parsed.problems, [], "{printed}");
        assert_eq!(structure(&parsed.tree), structure(&tree), "{printed}");
    }
}

fn query(random: &mut Random) -> Query {
    let mut definitions: Vec<Definition> = Vec::new();
    for _ in 0..random.below(3) {
        definitions.push(if random.below(2) == 0 {
            Definition::Variable(variable(random))
        } else {
            Definition::Measure { table: table(random), name: member(random), expression: expression(random, 4) }
        });
    }
    let evaluations = (0..1 + random.below(2)).map(|_| {
        let order: Vec<OrderKey> = (0..random.below(3))
            .map(|_| OrderKey { expression: expression(random, 2), descending: random.below(2) == 0 })
            .collect();
        let start_at = (0..random.below(order.len() + 1)).map(|_| expression(random, 1)).collect();
        Evaluation { table: expression(random, 4), order, start_at, place: Place::default() }
    });
    let evaluations = evaluations.collect();
    Query { definitions, evaluations }
}

fn name(text: &str, is_quoted: bool) -> Name {
    Name { text: text.into(), is_quoted, place: Place::default() }
}

fn table(random: &mut Random) -> Name {
    match random.below(3) {
        0 => name("orders", false),
        1 => name("it's a table", true),
        _ => name("Größe_1", false),
    }
}

fn member(random: &mut Random) -> Name {
    name(random.of(&["amount", "Sales Amount", "a]b", "it's"]), false)
}

fn variable(random: &mut Random) -> Variable {
    Variable { name: name(random.of(&["x", "_y", "z1"]), false), value: expression(random, 3) }
}

fn expression(random: &mut Random, depth: usize) -> Expression {
    let kind = kind(random, depth);
    Expression { kind, place: Place::default() }
}

fn kind(random: &mut Random, depth: usize) -> ExpressionKind {
    let inner = depth.saturating_sub(1);
    match random.below(if depth == 0 { 4 } else { 10 }) {
        0 => ExpressionKind::Literal(literal(random)),
        1 => ExpressionKind::Member { table: (random.below(2) == 0).then(|| table(random)), name: member(random) },
        2 => ExpressionKind::Name(table(random)),
        3 => ExpressionKind::Parameter("limit".into()),
        4 => {
            let mut arguments: Vec<Expression> = (0..random.below(4)).map(|_| expression(random, inner)).collect();
            if arguments.len() > 1 && random.below(3) == 0 {
                arguments[0] = Expression { kind: ExpressionKind::Omitted, place: Place::default() };
            }
            ExpressionKind::Call { function: name(random.of(&["SUM", "NORM.S.INV", "f"]), false), arguments }
        }
        5 => {
            let operator = random.of(&[PrefixOperator::Minus, PrefixOperator::Plus, PrefixOperator::Not]);
            ExpressionKind::Prefix { operator, operand: Box::new(expression(random, inner)) }
        }
        6 | 7 => chain(random, inner),
        8 => ExpressionKind::Rows((0..1 + random.below(3)).map(|_| row(random, inner)).collect()),
        _ => ExpressionKind::Block {
            variables: (0..1 + random.below(2)).map(|_| variable(random)).collect(),
            result: Box::new(expression(random, inner)),
        },
    }
}

fn row(random: &mut Random, depth: usize) -> Expression {
    if random.below(2) == 0 {
        return expression(random, depth);
    }
    let values = (0..2 + random.below(2)).map(|_| expression(random, depth)).collect();
    Expression { kind: ExpressionKind::Tuple(values), place: Place::default() }
}

fn chain(random: &mut Random, depth: usize) -> ExpressionKind {
    let levels: [&[Operator]; 7] = [
        &[Operator::Power],
        &[Operator::Multiply, Operator::Divide],
        &[Operator::Add, Operator::Subtract],
        &[Operator::Concatenate],
        &[Operator::Equal, Operator::StrictEqual, Operator::NotEqual, Operator::Less, Operator::In],
        &[Operator::And],
        &[Operator::Or],
    ];
    let level = random.of(&levels);
    let mut first = expression(random, depth);
    // The parser merges a chain that starts with a chain of the same precedence, so such a tree is not created here.
    if first.precedence() == level[0].precedence() {
        first = Expression { kind: ExpressionKind::Literal(literal(random)), place: Place::default() };
    }
    let rest = (0..1 + random.below(3)).map(|_| (random.of(level), expression(random, depth))).collect();
    ExpressionKind::Chain { first: Box::new(first), rest }
}

fn literal(random: &mut Random) -> Literal {
    match random.below(7) {
        0 => Literal::Number(Number::Integer(random.below(1000) as i64)),
        1 => Literal::Number(Number::Decimal("12.50".into())),
        2 => Literal::Number(Number::Double(1.5e300)),
        3 => Literal::Text(random.of(&["", "a \"b\" c", "it's"]).into()),
        4 => Literal::Date(jiff::civil::datetime(2024, 2, 29, random.below(24) as i8, 0, 0, 0)),
        5 => Literal::Number(Number::Decimal("123456789012345678901234567890".into())),
        _ => Literal::Boolean(random.below(2) == 0),
    }
}
