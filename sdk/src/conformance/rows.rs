//! Cases for comparisons, nulls, order, pages and the clauses around them.

use super::writer::{Expr, x, y};
use super::{Expected, Suite};
use crate::LogicalType;
use crate::dialect::{Feature, Op};

pub(super) fn cases(suite: &mut Suite<'_>) {
    comparison(suite);
    nulls(suite);
    order(suite);
    clauses(suite);
}

fn comparison(suite: &mut Suite<'_>) {
    suite.group = "comparison";
    let w = suite.writer;
    let pairs = [
        ("integers", w.integer(-2), w.integer(10)),
        ("large integers", w.integer(9_007_199_254_740_992), w.integer(9_007_199_254_740_993)),
        ("decimals", w.decimal("1.10"), w.decimal("1.2")),
        ("doubles", w.float(-1.5), w.float(1e300)),
        ("dates", w.date("1999-12-31"), w.date("2024-02-29")),
        ("times", w.timestamp("2024-02-29 23:59:59"), w.timestamp("2024-03-01 00:00:00")),
        ("microseconds", w.timestamp("2024-02-29 12:00:00.1"), w.timestamp("2024-02-29 12:00:00.100001")),
        ("instants", w.timestamp_tz("2024-02-29 23:59:59"), w.timestamp_tz("2024-03-01 00:00:00")),
    ];
    let tests = [
        ("=", Op::Eq, [false, true, false]),
        ("<>", Op::Ne, [true, false, true]),
        ("<", Op::Lt, [true, false, false]),
        ("<=", Op::Le, [true, true, false]),
        (">", Op::Gt, [false, false, true]),
        (">=", Op::Ge, [false, true, true]),
    ];
    for (kind, less, more) in pairs {
        for (sign, op, truth) in tests {
            // A case has three comparisons, one per column: `less` with `more`, `less` with `less`, `more` with `less`.
            let columns = [less.clone(), more.clone()];
            let ask = |a: Expr, b: Expr| suite.writer.op(op, &[a, b]).and_then(|test| suite.writer.three_valued(&test));
            let (Some(a), Some(b), Some(c)) = (ask(x(), y()), ask(x(), x()), ask(y(), x())) else { continue };
            let table = suite.writer.table(&[&columns]);
            let sql = format!("SELECT {} AS a, {} AS b, {} AS c FROM {table}", a.sql, b.sql, c.sql);
            let expected = truth.map(|t| Expected::text(if t { "true" } else { "false" }));
            suite.push(format!("{kind} {sign}"), sql, vec![expected.to_vec()]);
        }
    }
    let truth = suite.writer.op(Op::Eq, &[x(), suite.writer.boolean(true)]);
    let columns = [suite.writer.boolean(true)];
    suite.condition("true = true", &columns, truth, Some(true));
    let truth = suite.writer.op(Op::Eq, &[x(), suite.writer.boolean(true)]);
    let columns = [suite.writer.boolean(false)];
    suite.condition("false = true", &columns, truth, Some(false));
}

fn nulls(suite: &mut Suite<'_>) {
    suite.group = "nulls";
    let null = || suite.writer.null(LogicalType::Integer);
    let one = || suite.writer.integer(1);
    let pairs = [("1, 1", one(), one(), true), ("1, null", one(), null(), false), ("null, null", null(), null(), true)];
    for (name, a, b, truth) in pairs {
        let test = suite.writer.op(Op::NullSafeEq, &[x(), y()]);
        suite.condition(format!("null-safe-eq {name}"), &[a, b], test, Some(truth));
    }
    let (null, one) = (suite.writer.null(LogicalType::Integer), suite.writer.integer(1));
    for (op, of_null) in [(Op::IsNull, true), (Op::IsNotNull, false)] {
        for (name, value, truth) in [("null", &null, of_null), ("1", &one, !of_null)] {
            let test = suite.writer.op(op, &[x()]);
            suite.condition(format!("{op:?} of {name}"), std::slice::from_ref(value), test, Some(truth));
        }
    }
    for op in [Op::Eq, Op::Ne, Op::Lt] {
        let test = suite.writer.op(op, &[x(), y()]);
        suite.condition(format!("{op:?} with null is null"), &[one.clone(), null.clone()], test, None);
    }
    let test = suite.writer.op(Op::IsNull, &[x()]);
    let empty = suite.writer.text("");
    suite.condition("an empty text is not null", &[empty], test, Some(false));
    let filled = suite.writer.op(Op::Coalesce, &[x(), y()]);
    suite.of_columns("coalesce", &[null.clone(), one.clone()], filled, Expected::number(1));
    let emptied = suite.writer.op(Op::Nullif, &[x(), y()]);
    suite.of_columns("nullif of equals", &[one.clone(), one.clone()], emptied.clone(), Expected::Null);
    suite.of_columns("nullif with null", &[one, null], emptied, Expected::number(1));
}

fn order(suite: &mut Suite<'_>) {
    suite.group = "order and page";
    let w = suite.writer;
    let key = w.quoted_name("a b");
    let numbers = [w.integer(2), w.null(LogicalType::Integer), w.integer(10), w.integer(-1)];
    let rows: Vec<&[Expr]> = numbers.iter().map(std::slice::from_ref).collect();
    let select = format!("SELECT t.x AS {key} FROM {}", w.table(&rows));
    let expected = |values: &[&str]| {
        let cell = |v: &&str| vec![if v.is_empty() { Expected::Null } else { Expected::number(v) }];
        values.iter().map(cell).collect::<Vec<_>>()
    };
    let asc = format!("{select} {}", w.order(&key, false));
    let desc = format!("{select} {}", w.order(&key, true));
    let pages = [
        ("first page", &asc, 2, 0, &["-1", "2"][..]),
        ("second page", &asc, 2, 2, &["10", ""]),
        ("last page, descending", &desc, 3, 3, &[""]),
    ];
    let pages = pages.map(|(name, sql, limit, offset, values)| {
        (name, w.page(limit, offset).map(|page| format!("{sql} {page}")), expected(values))
    });
    let asc_rows = expected(&["-1", "2", "10", ""]);
    suite.push("ascending, nulls last", asc, asc_rows);
    suite.push("descending, nulls last", desc, expected(&["10", "2", "-1", ""]));
    for (name, sql, rows) in pages {
        if let Some(sql) = sql {
            suite.push(name, sql, rows);
        }
    }
}

fn clauses(suite: &mut Suite<'_>) {
    suite.group = "clauses";
    let w = suite.writer;
    let rows = [
        [w.text("a"), w.integer(1)],
        [w.text("b"), w.integer(2)],
        [w.text("a"), w.integer(4)],
        [w.null(LogicalType::Text), w.integer(8)],
    ];
    let rows: Vec<&[Expr]> = rows.iter().map(|row| &row[..]).collect();
    let table = w.table(&rows);
    let sum = |arg: Expr| w.op_for(Op::Sum, Some(LogicalType::Integer), &[arg]).map_or(String::new(), |e| e.sql);
    let count = w.op(Op::Count, &[]).map_or(String::new(), |e| e.sql);
    let row = |key: Option<&str>, values: &[i64]| {
        let mut row = vec![key.map_or(Expected::Null, Expected::text)];
        row.extend(values.iter().map(Expected::number));
        row
    };
    let mut found = Vec::new();
    let (key, value) = (w.quoted_name("t.key"), w.quoted_name("t.sum"));
    let by_key = format!("SELECT t.x AS {key}, {} AS {value} FROM {table} GROUP BY 1", sum(y()));
    found.push((
        "group by position",
        format!("{by_key} {}", w.order(&key, false)),
        vec![row(Some("a"), &[5]), row(Some("b"), &[2]), row(None, &[8])],
    ));
    let having = format!("{by_key} HAVING {} > 2 {}", sum(y()), w.order(&key, true));
    found.push(("having", having, vec![row(Some("a"), &[5]), row(None, &[8])]));
    let total = format!(
        "SELECT t.x AS {key}, {count} OVER () AS total_rows FROM {table} GROUP BY 1 {} LIMIT 1",
        w.order(&key, false)
    );
    if w.has(Feature::WINDOW_FUNCTIONS) {
        found.push(("number of groups before paging", total, vec![row(Some("a"), &[3])]));
    }
    let condition = "t.x = 'a'";
    let filtered = if w.has(Feature::FILTER_CLAUSE) {
        format!("{} FILTER (WHERE {condition})", sum(y()))
    } else {
        sum(Expr::closed(format!("CASE WHEN {condition} THEN t.y END")))
    };
    found.push(("filtered aggregate", format!("SELECT {filtered} AS r FROM {table}"), vec![vec![Expected::number(5)]]));
    let merged = format!(
        "SELECT merged.g0 AS {key}, max(merged.a0) AS {value}, max(merged.a1) AS r FROM (SELECT t.x AS g0, {sum} AS a0, \
         {null} AS a1 FROM {table} GROUP BY 1 UNION ALL SELECT t.x AS g0, NULL AS a0, {count} AS a1 FROM {table} GROUP BY 1) \
         AS merged GROUP BY 1 {order}",
        sum = sum(y()),
        null = w.null(LogicalType::Integer).sql,
        order = w.order(&key, false),
    );
    found.push((
        "merge of two facts",
        merged,
        vec![row(Some("a"), &[5, 2]), row(Some("b"), &[2, 1]), row(None, &[8, 1])],
    ));
    let members = format!("SELECT t.y AS r FROM {table} WHERE t.x IN ('b', 'c') AND t.y NOT IN (1, 4)");
    found.push(("in lists", members, vec![vec![Expected::number(2)]]));
    let joined = format!(
        "SELECT t.y AS r FROM {table} LEFT JOIN (SELECT 'a' AS k, 1 AS v) AS u ON t.x = u.k WHERE u.v IS NULL {}",
        w.order("r", false)
    );
    found.push((
        "left join keeps rows and gives nulls",
        joined,
        vec![vec![Expected::number(2)], vec![Expected::number(8)]],
    ));
    if w.has(Feature::CTES) {
        let model = w.name("orders");
        let sql = format!("SELECT o.v AS r FROM (WITH {model} AS (SELECT 7 AS v) SELECT * FROM {model}) AS o");
        found.push(("model in a derived table", sql, vec![vec![Expected::number(7)]]));
    }
    if w.has(Feature::WINDOW_FUNCTIONS) {
        let sql =
            format!("SELECT max(n.k) AS r FROM (SELECT t.*, row_number() OVER (ORDER BY NULL) AS k FROM {table}) AS n");
        found.push(("numbered rows", sql, vec![vec![Expected::number(4)]]));
        let running = sum(y());
        let sql = format!("SELECT {running} OVER (ORDER BY t.y) AS r FROM {table} {}", w.order("r", false));
        found.push(("running total", sql, [1, 3, 7, 15].map(|n| vec![Expected::number(n)]).to_vec()));
    }
    if w.has(Feature::CTES) {
        let sql = "WITH digits AS (SELECT 0 AS d UNION ALL SELECT 1 AS d), numbers AS (SELECT d0.d * 2 + d1.d AS n FROM digits AS d0 \
                   CROSS JOIN digits AS d1) SELECT count(*) AS a, max(numbers.n) AS b FROM numbers";
        found.push(("numbers out of digits", sql.to_owned(), vec![vec![Expected::number(4), Expected::number(3)]]));
    }
    let shadow = w.quoted_name("t.y");
    let sql = format!("SELECT {} AS {shadow} FROM {table} WHERE t.y > 1", sum(y()));
    found.push(("a key that looks like a column", sql, vec![vec![Expected::number(14)]]));
    let explained = (!w.profile.explain.is_empty()).then(|| w.profile.explain.replace("{0}", "SELECT 1 AS r"));
    for (name, sql, rows) in found {
        suite.push(name, sql, rows);
    }
    if let Some(sql) = explained {
        suite.push("explain is understood", sql, Vec::new());
    }
}
