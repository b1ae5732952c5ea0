//! Tests imports of Cube models in JavaScript: the result is the same as for YAML, and nothing is executed.

use terrane_compiler::diagnostic::Code;
use terrane_importers::Format;

use crate::imported::Imported;

fn of(files: &[(&str, &str)]) -> Imported {
    Imported::of(Format::Cube, files)
}

#[test]
fn object_literals_become_cubes() {
    let imported = of(&[(
        "model/Orders.js",
        "const schema = 'shop';
const helper = require('./helper');
cube(`Orders`, {
  sql: `SELECT * FROM ${schema}.orders`,
  title: 'All ' + `orders`,
  joins: {
    Users: { relationship: `belongsTo`, sql: `${CUBE}.user_id = ${Users}.id` },
  },
  measures: {
    count: { type: `count`, drillMembers: [id, Users.city] },
    revenue: { sql: () => `amount`, type: 'sum', filters: [{ sql: `${CUBE.status} = 'paid'` }] },
    average: { sql: `${revenue} / 2.0`, type: `number` },
    computed: { sql: helper.sql(), type: `sum` },
    filtered: { sql: `${SECURITY_CONTEXT.tenant.filter('x')}`, type: `sum` },
  },
  dimensions: {
    id: { sql: `id`, type: `number`, primaryKey: true, shown: true },
    status: { sql: `status`, type: `string`, meta: { a: 1, b: [null, 2.5] } },
    email: { sql: `email`, type: `string`, public: COMPILE_CONTEXT.isAdmin },
    spread: { ...helper.common, sql: `spread`, type: `string` },
    [helper.name]: { sql: `x`, type: `string` },
    createdAt: { type: `time`, sql: `created_at` },
  },
  preAggregations: {
    main: { type: `rollup`, measureReferences: [CUBE.count], timeDimensionReference: createdAt, granularity: `day` },
  },
});
cube('Users', { sqlTable: 'shop.users', dimensions: { id: { sql: 'id', type: 'number', primaryKey: true }, city: { sql: 'city', type: 'string' } } });
view('users_view', { cubes: [{ joinPath: Users, includes: ['city'] }] });
",
    )]);
    let file = "model/Orders.js";
    let orders = imported.file("cubes/orders.yml");
    for line in [
        "sql_table: shop.orders",
        "{name: users, relationship: many_to_one, sql: \"{CUBE}.user_id = {users}.id\"}",
        "drill_members: [id, users.city]",
        "filters: [{sql: \"{status} = 'paid'\"}]",
        "meta: {a: 1, b: [null, 2.5]}",
        "time_dimension: created_at, granularity: day",
    ] {
        assert!(orders.contains(line), "{line}\n{orders}");
    }
    for member in ["orders.email", "orders.spread"] {
        assert!(imported.has(member) && !imported.can_name(member), "{member}");
    }
    assert!(imported.can_name("users_view.city") && !imported.can_name("users_view.id"));
    for (line, code) in [(13, Code::NotCarriedOver), (14, Code::NotCarriedOver), (19, Code::Closed)] {
        assert_eq!(imported.codes(file, line), [code], "{line}");
    }
    assert!(imported.codes(file, 21).contains(&Code::NotCarriedOver));
    assert!(
        imported.codes(file, 20).contains(&Code::Closed) && imported.codes(file, 20).contains(&Code::NotCarriedOver)
    );
}

#[test]
fn cube_with_an_unknown_part_is_closed() {
    let imported = of(&[(
        "a.js",
        "import { base } from './base';
cube('a', { ...base, sql_table: 'shop.a', measures: { count: { type: 'count' } } });
cube('b', { sql_table: 'shop.b', measures: { ...base, count: { type: 'count' } } });
cube('c', { sql_table: base.table, measures: { count: { type: 'count' } } });
cube(base.name, { sql_table: 'shop.d' });
asyncModule(async () => { cube('e', {}); });
for (const x of []) { cube(x, {}); }
",
    )]);
    assert!(!imported.can_name("a.count") && imported.can_name("b.count") && !imported.has("c.count"));
    for line in 2..=7 {
        assert!(!imported.codes("a.js", line).is_empty(), "{line}");
    }
}

#[test]
fn last_statement_on_visibility_counts() {
    let imported = of(&[(
        "a.js",
        "cube('a', { sql_table: 'shop.a', dimensions: {
  hidden: { sql: 'hidden', type: 'string', public: true, public: false },
  spread: { sql: 'spread', type: 'string', shown: true, ...common },
  called: { sql: 'called', type: 'string', public: ({ securityContext }) => securityContext.isAdmin },
  open: { sql: 'open', type: 'string', public: false, public: true },
} });
",
    )]);
    for member in ["a.hidden", "a.spread", "a.called"] {
        assert!(imported.has(member) && !imported.can_name(member), "{member}");
    }
    assert!(imported.can_name("a.open"));
}

#[test]
fn malformed_files_are_reported() {
    let cube = "cube('a', { sql_table: 'shop.a', measures: { count: { type: 'count' } } });";
    let nested = format!("x = {}", "[".repeat(1000));
    let large = "//".repeat(200 * 1024);
    let files = [
        ("a.js", cube),
        ("broken.js", "cube('b', {\n  sql: `open\n"),
        ("empty.js", ""),
        ("nested.js", nested.as_str()),
        ("large.js", large.as_str()),
        ("cube.js", "module.exports = { queryRewrite: (query) => query };"),
        ("types.ts", "cube('t', {});"),
    ];
    let imported = of(&files);
    assert!(imported.has("a.count"));
    for (file, _) in &files[1..] {
        let codes: Vec<Code> = (1..4).flat_map(|line| imported.codes(file, line)).collect();
        assert_eq!(codes, [Code::NotRead], "{file}");
    }
}

#[test]
fn deep_expressions_do_not_overflow_the_stack() {
    let cube = "cube('a', { sql_table: 'shop.a', measures: { count: { type: 'count' } } });";
    let deep: Vec<String> = [
        "!".repeat(200_000),
        "a=>".repeat(80_000),
        "a?b:".repeat(60_000),
        "a**".repeat(80_000),
        "a.".repeat(100_000),
        "if(a)".repeat(50_000),
        "([')'],".repeat(30_000),
        "`${".repeat(80_000),
    ]
    .iter()
    .map(|text| format!("{text}1"))
    .collect();
    for text in &deep {
        let imported = of(&[("a.js", cube), ("deep.js", text)]);
        assert!(imported.has("a.count"));
        assert!(imported.report.findings.iter().any(|f| f.span.as_ref().is_some_and(|s| &*s.file == "deep.js")));
    }
}

#[test]
fn exclusions_that_are_computed_leave_the_view_out() {
    let people = "cube('people', { sql_table: 'people', public: false,
  dimensions: { ssn: { sql: 'ssn', type: 'string' }, name: { sql: 'name', type: 'string' } } });";
    for part in ["excludes: PII", "excludes: rules.pii", "excludes: [rules.pii]", "excludes: [HIDE]", "...HIDE"] {
        let text = format!(
            "const PII = ['ssn'];\nlet HIDE = 'ssn';\n{people}\nview('directory', {{ cubes: [{{ join_path: people, includes: '*', {part} }}] }});"
        );
        let imported = of(&[("a.js", &text)]);
        assert!(imported.model.cube_named("directory").is_none(), "{part}");
    }
    for part in ["excludes: [ssn]", "excludes: [KEY]"] {
        let text = format!(
            "const KEY = 'ssn';\n{people}\nview('directory', {{ cubes: [{{ join_path: people, includes: '*', {part} }}] }});"
        );
        let imported = of(&[("a.js", &text)]);
        assert!(!imported.can_name("directory.ssn") && imported.can_name("directory.name"), "{part}");
    }
}

#[test]
fn unknown_properties_close_what_they_may_replace() {
    let imported = of(&[(
        "a.js",
        "const HIDE = require('./hide'), key = 'public';
cube('a', { sql_table: 't', dimensions: { ssn: { sql: 'ssn', type: 'string' }, ...HIDE, city: { sql: 'city', type: 'string' } } });
cube('b', { sql_table: 't', dimensions: { ssn: { sql: 'ssn', type: 'string', ...HIDE, public: true }, low: { sql: `LOWER(${ssn})`, type: 'string' } } });
cube('c', { sql_table: 't', ['accessPolicy']: [{ role: 'x' }], measures: { count: { type: 'count' } } });
cube('d', { sql_table: 't', [`public`]: false, measures: { count: { type: 'count' } } });
cube('e', { sql_table: 't', dimensions: { s: { sql: 's', type: 'string', ['mask']: 'x' }, k: { sql: 'k', type: 'string', [key]: false }, u: { sql: 'u', type: 'string', [HIDE.key]: 1 } } });
cube('f', { ...HIDE, sql_table: 't', public: true, measures: { count: { type: 'count' } } });
cube('g', { extends: a, dimensions: { get city() { return {}; } }, measures: { count: { type: 'count' } } });
cube('h', { extends: a, dimensions: { ...HIDE }, measures: { count: { type: 'count' } } });
cube('i', { sql_table: 't', measures: { sum: { sql: 'x', type: 'sum', filters: [{ sql: 'a = 1', ...HIDE }] } } });
cubes.a.public = false;
cube('j', { sql_table: 't', dimensions: { id: { sql: 'id', type: 'number', primaryKey: HIDE.pk } } });
",
    )]);
    for member in ["a.ssn", "b.ssn", "b.low", "c.count", "d.count", "e.s", "e.k", "e.u", "f.count", "g.city"] {
        assert!(imported.has(member), "{member}");
        let is_closed = !imported.can_name(member) || imported.is_filtered(member.split('.').next().unwrap());
        assert!(is_closed, "{member}");
    }
    assert!(imported.can_name("a.city") && imported.can_name("g.count"));
    assert!(imported.is_filtered("h"), "`HIDE` may replace members of the extended cube");
    assert!(!imported.has("i.sum"), "`HIDE` may replace the condition");
    for line in [11, 12] {
        assert_eq!(imported.codes("a.js", line), [Code::NotCarriedOver], "{line}");
    }
}

#[test]
fn sql_that_code_computes_is_named_so() {
    let imported = of(&[(
        "a.js",
        "cube('a', { sql_table: 'shop.a', measures: {
  lost: { sql: foo('x'), type: 'sum' },
  count: { type: 'count' } } });
",
    )]);
    let found = imported.report.findings.iter().find(|f| f.span.as_ref().is_some_and(|span| span.line == 2)).unwrap();
    insta::assert_snapshot!(found.message, @"measure `lost` of cube `a` is not imported: its SQL is computed by JavaScript, which is not executed");
    insta::assert_snapshot!(found.hint.as_deref().unwrap_or_default(), @"Write the SQL as a string.");
}

#[test]
fn computed_names_leave_out_only_their_members() {
    let imported = of(&[(
        "a.js",
        "cube('a', { sql_table: 'shop.a', dimensions: { id: { sql: 'id', type: 'number', primary_key: true } } });
cube('b', { extends: a, measures: { ['dyn' + 1]: { type: 'count' }, count: { type: 'count' } } });
cube('c', { extends: a, measures: { [x()]: { type: 'count' }, count: { type: 'count' } } });
cube('d', { extends: c, public: true });
",
    )]);
    assert!(imported.can_name("b.dyn1") && imported.can_name("b.count"));
    assert!(imported.has("c.count") && imported.is_filtered("c") && imported.is_filtered("d"));
    assert!(
        imported.codes("a.js", 3).contains(&Code::NotCarriedOver) && imported.codes("a.js", 3).contains(&Code::Closed)
    );
}

#[test]
fn spreads_of_constants_are_resolved() {
    let imported = of(&[(
        "a.js",
        "// `base` is shared by all cubes.
const key = { id: { sql: 'id', type: 'number', primaryKey: true } };
export const base = { sql_table: 'shop.a' };
const times = { created: { sql: 'created', type: 'time' }, city: { sql: 'old', type: 'string' } };
const common = { dimensions: { ...key, ...times }, counts: { count: { type: 'count' } }, hidden: { public: false } };
cube('a', { ...base, title: `The base`, dimensions: { city: { sql: 'before', type: 'string' }, ...common.dimensions, city: { sql: 'city', type: 'string' } }, measures: common.counts });
cube('b', { public: true, ...base, ...common.hidden, measures: { ...common.counts } });
cube('c', { ...base, dimensions: { ssn: { sql: 'ssn', type: 'string', ...common.hidden }, tag: { ...common.hidden, sql: 'tag', type: 'string', public: true } }, measures: { sum: { type: 'sum', sql: 'x', ...{ title: 'Sum' } } } });
module.exports = { base };
",
    )]);
    assert!(imported.report.findings.is_empty(), "{:#?}", imported.report.findings);
    for member in ["a.id", "a.created", "a.city", "a.count", "c.tag", "c.sum"] {
        assert!(imported.can_name(member), "{member}");
    }
    for member in ["b.count", "c.ssn"] {
        assert!(imported.has(member) && !imported.can_name(member), "{member}");
    }
    let a = imported.file("cubes/a.yml");
    assert!(a.contains("sql_table: shop.a") && a.contains("{name: city, type: string, sql: city}"), "{a}");
}

#[test]
fn assigned_objects_are_spread() {
    let imported = of(&[(
        "a.js",
        "const shared = { city: { sql: 'city', type: 'string' } };
const statuses = ['paid', 'open'];
cube('a', { sql_table: 'shop.a', dimensions: Object.assign({ id: { sql: 'id', type: 'number', primaryKey: true } }, shared),
  measures: Object.assign({ total: { type: 'count' } }, statuses.reduce((all, status) => ({ ...all, [status]: { type: 'count' } }), {})) });
const changed = {};
cube('b', { sql_table: 'shop.b', measures: Object.assign(changed, { count: { type: 'count' } }) });
",
    )]);
    for member in ["a.id", "a.city", "a.total"] {
        assert!(imported.has(member), "{member}");
    }
    assert!(imported.can_name("a.city") && !imported.can_name("a.total"), "another object may replace `total`");
    for code in [Code::Closed, Code::NotCarriedOver] {
        assert!(imported.codes("a.js", 4).contains(&code), "{:?}", imported.messages("a.js", 4));
    }
    assert!(!imported.has("b.count") && !imported.codes("a.js", 6).is_empty(), "`changed` is not a new object");
}

#[test]
fn percentiles_in_sql_become_measure_types() {
    let imported = of(&[(
        "a.js",
        "cube('a', { sql_table: 't', measures: {
  middle: { type: 'number', sql: `PERCENTILE_CONT(0.50) WITHIN GROUP (ORDER BY ${CUBE}.age)` },
  high: { type: 'number', sql: `percentile_cont(0.95) within group (order by age)`, format: 'decimal' } } });
",
    )]);
    let text = imported.file("cubes/a.yml");
    assert!(text.contains("type: median, sql: \"{CUBE}.age\""), "{text}");
    assert!(text.contains("type: percentile, percentile: 0.95, sql: age"), "{text}");
}

#[test]
fn objects_that_code_may_change_are_not_resolved() {
    for change in [
        "base.shown = { public: false };",
        "Object.assign(base, { public: false });",
        "hide(base);",
        "const other = base; other.public = false;",
        "const outer = { inner: base }; outer.inner.public = false;",
        "function hide() { base.public = false; }",
        "const hide = () => { delete base.public; };",
        "for (const name in base) { base[name] = null; }",
    ] {
        let text = format!(
            "const base = {{ public: true, sql_table: 't' }};\n{change}\ncube('a', {{ ...base, sql_table: 't', measures: {{ count: {{ type: 'count' }} }} }});"
        );
        let imported = of(&[("a.js", &text)]);
        assert!(imported.is_filtered("a"), "{change}");
        assert!(imported.codes("a.js", 3).contains(&Code::NotCarriedOver), "{change}");
    }
    for text in [
        "let base = { sql_table: 't' };\ncube('a', { ...base, sql_table: 't', measures: { count: { type: 'count' } } });",
        "const base = { ...base };\ncube('a', { ...base, sql_table: 't', measures: { count: { type: 'count' } } });",
        "cube('a', { ...base, sql_table: 't', measures: { count: { type: 'count' } } });\nconst base = { x: 1 };",
        "import { base } from './base';\ncube('a', { ...base, sql_table: 't', measures: { count: { type: 'count' } } });",
    ] {
        let imported = of(&[("a.js", text)]);
        let unresolved = imported.report.findings.iter().filter(|finding| finding.code == Code::NotCarriedOver);
        assert!(imported.is_filtered("a") && unresolved.count() > 0, "{text}");
    }
}

#[test]
fn spreads_that_double_each_other_end() {
    let mut text = "const a0 = { title: 'x' };\n".to_owned();
    for level in 1..60 {
        let before = level - 1;
        text += &format!("const a{level} = {{ ...a{before}, ...a{before} }};\n");
    }
    text += "cube('a', { ...a59, sql_table: 't', measures: { count: { type: 'count' } } });";
    let imported = of(&[("a.js", &text)]);
    assert!(imported.has("a.count") && imported.is_filtered("a"));
}
