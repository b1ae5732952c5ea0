//! Plants several mistakes at random places of the example project, and expects the code of each, and no other, in one
//! run. A mistake must neither hide another one nor cause errors where the broken item is used.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::build;
use terrane_compiler::project::yaml::{self, Key, Node, NodeValue};
use terrane_compiler::project::{Inputs, SourceFile, SourceTree, read};

const CASES: u64 = 400;
const MOST_MISTAKES: usize = 6;

/// Policies over the example, which has none.
const POLICIES: &str = "\
policies:
  - name: own_carrier
    description: Callers see their own carrier.
    cubes: [flights, airlines]
    when: {unless_roles: [admin]}
    row_filter: \"{CUBE}.carrier = {{ user.attributes.carrier }}\"
  - name: hidden_planes
    description: Some columns of planes are hidden.
    cubes: [planes]
    when:
      roles: [guest]
    mask: {tailnum: hash, manufacturer: \"null\"}
    deny: [seats_per_engine]
";

/// A source of numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// An entry of a list, where mistakes can be planted.
struct Site {
    file: Arc<str>,
    /// The key of the list: `measures`.
    list: &'static str,
    node: Node,
    /// The offset of the line of the next entry.
    next_line: Option<usize>,
}

/// A change of a file, and the code that it causes.
#[derive(Debug, Clone)]
struct Mistake {
    file: Arc<str>,
    range: Range<usize>,
    text: String,
    code: &'static str,
    /// The entry and the key. Two mistakes at the same place would count as one.
    place: (u32, String),
}

impl Site {
    fn entry(&self, name: &str) -> Option<(&Key, &Node)> {
        let NodeValue::Map(entries) = &self.node.value else { return None };
        entries.iter().find(|(key, _)| &*key.text == name).map(|(key, node)| (key, node))
    }

    fn text(&self) -> &str {
        &self.node.origin.file.text
    }

    /// Returns the place of a value that stands on one line.
    fn range(&self, name: &str) -> Option<Range<usize>> {
        let (_, node) = self.entry(name)?;
        if !matches!(node.value, NodeValue::Scalar { .. }) {
            return None;
        }
        let start = node.origin.offset as usize;
        let rest = &self.text()[start..];
        let length: usize = rest.chars().take(node.origin.length as usize).map(char::len_utf8).sum();
        // A block scalar begins on a line of its own.
        let is_behind_key = self.text()[..start].trim_end_matches(' ').ends_with(':');
        is_behind_key.then_some(start..start + length)
    }

    fn replace(&self, name: &str, text: &str, code: &'static str) -> Option<Mistake> {
        let range = self.range(name)?;
        Some(self.mistake(range, text.to_owned(), code, name))
    }

    fn mistake(&self, range: Range<usize>, text: String, code: &'static str, key: &str) -> Mistake {
        Mistake { file: self.file.clone(), range, text, code, place: (self.node.origin.offset, key.to_owned()) }
    }

    /// Adds a key after the name.
    fn insert(&self, key: &str, value: &str, code: &'static str) -> Option<Mistake> {
        if self.entry(key).is_some() {
            return None;
        }
        let end = self.range("name")?.end;
        let text = match self.text()[self.node.origin.offset as usize..].starts_with('{') {
            true => format!(", {key}: {value}"),
            false => format!("\n{}{key}: {value}", " ".repeat(self.entry("name")?.0.origin.column as usize - 1)),
        };
        Some(self.mistake(end..end, text, code, key))
    }

    /// Adds an entry after this one.
    fn add(&self, entry: &str, code: &'static str) -> Option<Mistake> {
        let at = self.next_line?;
        let line = &self.text()[at..];
        let indent = &line[..line.find('-')?];
        Some(self.mistake(at..at, format!("{indent}- {{{entry}}}\n"), code, "(next)"))
    }

    fn name(&self) -> Option<&str> {
        match &self.entry("name")?.1.value {
            NodeValue::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// Collects the entries of a list and of the lists below them.
fn collect(file: &Arc<str>, list: &'static str, items: &[Node], sites: &mut Vec<Site>) {
    for (at, node) in items.iter().enumerate() {
        let text = &node.origin.file.text;
        let line_of = |node: &Node| text[..node.origin.offset as usize].rfind('\n').map_or(0, |newline| newline + 1);
        let next_line = items.get(at + 1).map(line_of).filter(|next| *next > line_of(node));
        sites.push(Site { file: file.clone(), list, node: node.clone(), next_line });
        let NodeValue::Map(entries) = &node.value else { continue };
        for inner in ["measures", "dimensions", "segments", "joins", "pre_aggregations", "tables", "columns"] {
            if let Some((_, Node { value: NodeValue::List(items), .. })) =
                entries.iter().find(|(key, _)| &*key.text == inner)
                && items.iter().all(|item| matches!(item.value, NodeValue::Map(_)))
            {
                collect(file, inner, items, sites);
            }
        }
    }
}

fn sites(tree: &SourceTree) -> Vec<Site> {
    let mut sites = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| path.ends_with(".yml")) {
        let file = Arc::new(SourceFile { path: path.clone(), text: text.clone() });
        let NodeValue::Map(lists) = yaml::parse(&file).unwrap().value else { continue };
        for list in ["cubes", "metrics", "policies", "sources"] {
            if let Some((_, Node { value: NodeValue::List(items), .. })) =
                lists.iter().find(|(key, _)| &*key.text == list)
            {
                collect(path, list, items, &mut sites);
            }
        }
    }
    sites
}

/// Plants one mistake in an entry; `None` if the entry has no place for it.
fn plant(site: &Site, random: &mut Random) -> Option<Mistake> {
    let has_sql = matches!(site.list, "measures" | "dimensions" | "segments" | "joins");
    let fresh = format!("fresh_{}", site.node.origin.offset);
    match random.below(13) {
        0 => site.insert("colour", "red", "unknown-key"),
        1 => site.replace("description", "[some, [words]]", "wrong-type"),
        2 => site.replace("title", "{some: words}", "wrong-type"),
        3 if has_sql => site.replace("sql", "\"{no_such_member}\"", "unknown-member"),
        4 if has_sql => site.replace("sql", "\"{{ no_such_tag\"", "jinja-syntax"),
        5 if matches!(site.list, "measures" | "dimensions" | "metrics") => {
            let word = format!("{}x", site.text().get(site.range("type")?)?);
            site.replace("type", &word, "unknown-value")
        }
        5 if site.list == "joins" => site.replace("relationship", "one_to_few", "unknown-value"),
        6 if site.list == "measures" => site.add(&format!("name: {}, type: count", site.name()?), "duplicate-name"),
        6 if site.list == "dimensions" => {
            site.add(&format!("name: {}, type: string, sql: a", site.name()?), "duplicate-name")
        }
        6 if site.list == "columns" => site.add(&format!("name: {}", site.name()?), "duplicate-name"),
        7 if site.list == "measures" => site.add(&format!("name: {fresh}"), "missing-field"),
        8 if site.list == "measures" => site.add(&format!("name: Big {fresh}, type: count"), "invalid-name"),
        8 if site.list == "cubes" => {
            let mut name = site.name()?.to_owned();
            name[..1].make_ascii_uppercase();
            site.replace("name", &name, "invalid-name")
        }
        9 if site.list == "cubes" => site.replace("sql_table", "[a]", "wrong-type"),
        10 if site.list == "cubes" => site.insert("refresh", "{every: never}", "wrong-value"),
        10 if site.list == "policies" => site.insert("allow_aggregate", "perhaps", "wrong-type"),
        11 if site.list == "metrics" => site.replace("expression", "flights.no_such_measure", "unknown-member"),
        11 if site.list == "policies" => match site.name()? {
            "own_carrier" => site.replace("row_filter", "\"{CUBE}.carrier = {no_such_member}\"", "unknown-member"),
            _ => None,
        },
        12 => in_policy(site, random),
        _ => None,
    }
}

/// Replaces a word inside the lists and mappings of a policy.
fn in_policy(site: &Site, random: &mut Random) -> Option<Mistake> {
    let words = [
        ("tailnum: hash", "tailnum: shred", "unknown-value"),
        ("manufacturer: \"null\"", "no_such_member: \"null\"", "unknown-member"),
        ("[seats_per_engine]", "[seats_per_engine, no_such_member]", "unknown-member"),
        ("roles: [guest]", "roles: [guest]\n      rolls: []", "unknown-key"),
        ("[planes]", "[planes, no_such_cube]", "unknown-cube"),
        ("[flights, airlines]", "[flights, airlines, no_such_cube]", "unknown-cube"),
    ];
    let (from, to, code) = words[random.below(words.len())];
    let at = site.text().find(from).filter(|_| site.list == "policies")?;
    Some(site.mistake(at..at + from.len(), to.to_owned(), code, from))
}

fn example() -> SourceTree {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights");
    let mut tree = SourceTree::default();
    let mut add = |path: &str| tree.files.insert(path.into(), fs::read_to_string(root.join(path)).unwrap().into());
    add("service_project.yml");
    for folder in ["cubes", "metrics", "models", "sources"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            add(&format!("{folder}/{name}"));
        }
    }
    tree.files.insert("policies/policies.yml".into(), POLICIES.into());
    tree
}

fn errors(tree: &SourceTree) -> Vec<Diagnostic> {
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, mut diagnostics) = read(tree, &inputs);
    diagnostics.extend(build(&definitions).1);
    diagnostics.retain(Diagnostic::is_error);
    diagnostics
}

/// Applies the mistakes from the last to the first, so that offsets stay valid.
fn with_mistakes(tree: &SourceTree, mut mistakes: Vec<Mistake>) -> SourceTree {
    let mut tree = tree.clone();
    mistakes.sort_by_key(|mistake| std::cmp::Reverse(mistake.range.start));
    for mistake in mistakes {
        let mut text = tree.files[&mistake.file].to_string();
        text.replace_range(mistake.range, &mistake.text);
        tree.files.insert(mistake.file, text.into());
    }
    tree
}

#[test]
fn exactly_the_planted_mistakes_are_reported() {
    let tree = example();
    assert_eq!(errors(&tree), [], "the example has no errors");
    let sites = sites(&tree);
    for case in 1..=CASES {
        let mut random = Random(case.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let wanted = 1 + random.below(MOST_MISTAKES);
        let mut mistakes: Vec<Mistake> = Vec::new();
        let mut places = BTreeSet::new();
        while mistakes.len() < wanted {
            // An entry may get several mistakes.
            let last = mistakes.last().and_then(|mistake| {
                sites.iter().find(|site| site.file == mistake.file && site.node.origin.offset == mistake.place.0)
            });
            let site = last.filter(|_| random.below(3) == 0).unwrap_or(&sites[random.below(sites.len())]);
            let Some(mistake) = plant(site, &mut random) else { continue };
            if places.insert((mistake.file.clone(), mistake.place.clone())) {
                mistakes.push(mistake);
            }
        }
        let mut expected: Vec<&str> = mistakes.iter().map(|mistake| mistake.code).collect();
        let found = errors(&with_mistakes(&tree, mistakes.clone()));
        let mut codes: Vec<&str> = found.iter().map(|diagnostic| diagnostic.code.as_str()).collect();
        expected.sort_unstable();
        codes.sort_unstable();
        let report: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(codes, expected, "case {case}\nplanted: {mistakes:#?}\nreported:\n{}", report.join("\n"));
    }
}

/// Breaks the syntax of a file at the beginning of a line.
fn with_syntax_error(tree: &SourceTree, file: &Arc<str>, random: &mut Random) -> SourceTree {
    let mut text = tree.files[file].to_string();
    let starts: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    let at = starts[random.below(starts.len())];
    let errors = ["- [unclosed\n", "\t- name: tabbed\n", "a key: with: colons\n", "key: \"unclosed\n"];
    text.insert_str(at, errors[random.below(errors.len())]);
    let mut tree = tree.clone();
    tree.files.insert(Arc::clone(file), text.into());
    tree
}

/// Returns whether a mistake can only be found with the definitions of a file.
fn needs(mistake: &Mistake, file: &str) -> bool {
    let is_of = |cube: &str| file == format!("cubes/{cube}.yml");
    match mistake.code {
        // The cube of the expression, and of the policy's members, is in the broken file.
        "unknown-member" if &*mistake.file == "metrics/metrics.yml" => is_of("flights"),
        "unknown-member" if mistake.text.contains("no_such_member: ") || mistake.text.contains(", no_such_member") => {
            is_of("planes")
        }
        _ => false,
    }
}

#[test]
fn syntax_error_hides_no_mistake_of_another_file() {
    let tree = example();
    let sites = sites(&tree);
    let files: Vec<Arc<str>> = tree.files.keys().filter(|path| path.ends_with(".yml")).cloned().collect();
    for case in 1..=CASES {
        let mut random = Random(case.wrapping_mul(0xD1B5_4A32_D192_ED03));
        let broken = &files[random.below(files.len())];
        let wanted = 1 + random.below(MOST_MISTAKES);
        let mut mistakes: Vec<Mistake> = Vec::new();
        let mut places = BTreeSet::new();
        while mistakes.len() < wanted {
            let site = &sites[random.below(sites.len())];
            let Some(mistake) = plant(site, &mut random).filter(|mistake| mistake.file != *broken) else { continue };
            if !needs(&mistake, broken) && places.insert((mistake.file.clone(), mistake.place.clone())) {
                mistakes.push(mistake);
            }
        }
        let changed = with_mistakes(&with_syntax_error(&tree, broken, &mut random), mistakes.clone());
        let found = errors(&changed);
        let in_broken = |found: &&Diagnostic| found.span.as_ref().is_some_and(|span| span.file == *broken);
        let (of_broken, others): (Vec<_>, Vec<_>) = found.iter().partition(in_broken);
        let report = || found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(
            of_broken.iter().any(|found| found.code.as_str() == "yaml-syntax"),
            "case {case}: {}\nreported:\n{}",
            changed.files[broken],
            report()
        );
        let mut expected: Vec<&str> = mistakes.iter().map(|mistake| mistake.code).collect();
        let mut codes: Vec<&str> = others.iter().map(|diagnostic| diagnostic.code.as_str()).collect();
        expected.sort_unstable();
        codes.sort_unstable();
        assert_eq!(codes, expected, "case {case}, {broken} is broken\nplanted: {mistakes:#?}\nreported:\n{}", report());
    }
}

/// Tests that only the absence of names that the broken file may define is not reported.
#[test]
fn names_of_a_broken_file_excuse_only_references_to_it() {
    let project = "name: shop\nvars: {year: 2020}\nmodels: {materialization: tables}\nversion: \"1\n";
    let orders = "cubes:\n  - name: orders\n    sql_table: orders\n    measures:\n      - {name: count, type: count}\n      - {name: [\n";
    let others = "\
cubes:
  - name: customers
    sql_table: customers
    joins:
      - {name: orders, relationship: one_to_many, sql: \"{CUBE}.id = {orders.customer_id} AND {CUBE.no_such_member}\"}
    measures:
      - {name: revenue, type: sum, sql: amount}
      - {name: per_order, type: number, sql: \"{revenue} / {orders.count}\"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
  - name: late_orders
    extends: orders
    measures:
      - {name: double, type: number, sql: \"{count} * 2\"}
      - {name: triple, type: number, sql: \"{count} * {{ 3\"}
      - {name: refunds, type: sun, sql: amount}
";
    let metrics = "\
metrics:
  - {name: buyers, type: simple, expression: customers.count}
  - {name: all, type: simple, expression: orders.revenue}
  - {name: late, type: simple, expression: late_orders.count}
  - {name: unknown, type: simple, expression: order.count}
";
    let mut tree = SourceTree::default();
    for (path, text) in [
        ("service_project.yml", project),
        ("cubes/orders.yml", orders),
        ("cubes/others.yml", others),
        ("metrics/metrics.yml", metrics),
    ] {
        tree.files.insert(path.into(), text.into());
    }
    let mut found: Vec<(String, &str, u32)> = Vec::new();
    for problem in errors(&tree) {
        let place = problem.span.as_ref().unwrap();
        found.push((place.file.to_string(), problem.code.as_str(), place.line));
    }
    found.sort_unstable();
    let expected = [
        ("cubes/orders.yml", "yaml-syntax", 6),
        ("cubes/others.yml", "jinja-syntax", 15),
        ("cubes/others.yml", "unknown-member", 5),
        ("cubes/others.yml", "unknown-value", 16),
        ("metrics/metrics.yml", "unknown-cube", 5),
        // `customers` was read, and the broken file defines no member of it.
        ("metrics/metrics.yml", "unknown-member", 2),
        ("service_project.yml", "unknown-value", 3),
        ("service_project.yml", "yaml-syntax", 4),
    ];
    let expected = expected.map(|(file, code, line)| (file.to_owned(), code, line));
    assert_eq!(found, expected);
}

#[test]
fn policy_with_five_mistakes_has_five_errors() {
    let mut tree = example();
    let policy = "\
policies:
  - name: Own Carrier
    cubes: [flights, no_such_cube]
    when: {rolls: [admin], roles: []}
    row_filter: \"{CUBE}.carrier = {no_such_member}\"
    mask: {tailnum: shred, no_such_dimension: hash}
    deny: [no_such_measure]
";
    tree.files.insert("policies/policies.yml".into(), policy.into());
    let found: Vec<(&str, u32)> =
        errors(&tree).iter().map(|found| (found.code.as_str(), found.span.as_ref().unwrap().line)).collect();
    let expected = [
        ("invalid-name", 2),
        ("unknown-key", 4),
        ("missing-value", 4),
        ("unknown-value", 6),
        ("unknown-cube", 3),
        ("unknown-member", 6),
        ("unknown-member", 7),
        ("unknown-member", 5),
    ];
    let sorted = |mut of: Vec<(&'static str, u32)>| {
        of.sort_unstable();
        of
    };
    assert_eq!(sorted(found), sorted(expected.to_vec()));
}

/// Tests mistakes in parts of one definition, each of which does not hide the others.
#[test]
fn mistakes_inside_one_definition_do_not_hide_one_another() {
    let cubes = "\
cubes:
  - name: visits
    sql_table: visits
    joins:
      - {name: nowhere, relationship: many_to_on, sql: \"{CUBE}.a = {nowhere}.a\"}
    measures:
      - {name: count, type: count}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: day, type: time, sql: day}
    pre_aggregations:
      - {name: one, measures: [zz], time_dimension: day, granularity: day, timezone: Mars}
      - {name: two, measures: [count], time_dimension: dya, granularity: day, timezone: Mars}
";
    let metrics = "metrics:\n  - {name: rate, type: ratio, numerator: visits.zz}\n";
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: a\n".into());
    tree.files.insert("cubes/visits.yml".into(), cubes.into());
    tree.files.insert("metrics/rate.yml".into(), metrics.into());
    let mut found: Vec<(String, &str, u32)> = Vec::new();
    for problem in errors(&tree) {
        let place = problem.span.as_ref().unwrap();
        found.push((place.file.to_string(), problem.code.as_str(), place.line));
    }
    found.sort_unstable();
    let cube = |code, line| ("cubes/visits.yml".to_owned(), code, line);
    let metric = |code| ("metrics/rate.yml".to_owned(), code, 2);
    let expected = [
        cube("unknown-cube", 5),
        cube("unknown-member", 12),
        cube("unknown-member", 13),
        cube("unknown-value", 5),
        cube("wrong-value", 12),
        cube("wrong-value", 13),
        metric("missing-field"),
        metric("unknown-member"),
    ];
    assert_eq!(found, expected);
}
