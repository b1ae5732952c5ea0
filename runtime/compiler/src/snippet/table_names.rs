//! Canonical names of tables and files, and their comparison.
//!
//! In: names as SQL writes them. Out: canonical names, and [`is_same`]. A canonical name is in lower case. The name of
//! a file begins with a slash, has no `.` and `..` components, and ends with a slash if the file may be a directory.
//! All other names are names of tables. Comparisons are conservative: names that may mean the same rows compare as the
//! same, since a false difference would open what a policy protects. Not here: symbolic links, and the working
//! directory.

/// The suffixes by which engines read the name of a table as a file.
const FILE_SUFFIXES: &[&str] = &[
    "arrow", "avro", "br", "bz2", "csv", "db", "ddb", "dta", "duckdb", "feather", "geojson", "gz", "ipc", "json",
    "jsonl", "ndjson", "orc", "parq", "parquet", "psv", "sas7bdat", "sav", "shp", "snappy", "sqlite", "sqlite3", "tsv",
    "txt", "xlsx", "zip", "zst", "zstd",
];
/// Qualifiers of Spark's path tables: `` parquet.`/lake/orders` ``.
const FORMATS: &[&str] = &["avro", "binaryfile", "csv", "delta", "hudi", "iceberg", "json", "orc", "parquet", "text"];
/// The largest number of recursive patterns in one comparison. With more, the names count as the same.
const MAX_RECURSIVE_GLOBS: usize = 4;

/// Returns the canonical name of a table with several parts, outermost first, and other names that an engine may read
/// the parts as.
pub(crate) fn of_parts(parts: &[String]) -> (String, Vec<String>) {
    let joined = parts.join(".");
    let last = parts.last().map_or("", String::as_str);
    let is_format = parts.len() == 2 && FORMATS.contains(&&*parts[0].to_lowercase());
    if has_path(last) {
        let name = if is_format { of_directory(last) } else { of_file(&joined) };
        let others = if parts.len() > 1 { vec![of_file(&joined), of_file(last)] } else { Vec::new() };
        return (name, others);
    }
    if has_path(&joined) || joined.starts_with('@') {
        return (of_directory(&joined), Vec::new());
    }
    let others = if is_format { vec![of_directory(last)] } else { Vec::new() };
    (of_table(&joined), others)
}

/// Returns the canonical name of a table whose name is one string.
pub(crate) fn of_table(text: &str) -> String {
    if has_path(text) { of_file(text) } else { text.to_lowercase().replace(['"', '`'], "") }
}

/// Returns the canonical name of a file, or of several files if the path is a pattern.
pub(crate) fn of_file(path: &str) -> String {
    let path = path.to_lowercase().replace('\\', "/").replace(['"', '`'], "");
    let path = without_scheme(path.trim_start_matches('@'));
    let mut components: Vec<&str> = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." | "~" => {}
            ".." if components.last() == Some(&"**") => {}
            ".." => {
                components.pop();
            }
            component => components.push(component),
        }
    }
    let mark = if path.ends_with('/') { "/" } else { "" };
    ["/", &components.join("/"), mark].concat()
}

/// Returns the canonical name of a file that may be a directory of files.
pub(crate) fn of_directory(path: &str) -> String {
    of_file(&[path, "/"].concat())
}

fn has_path(text: &str) -> bool {
    text.contains(['/', '\\']) || text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// Returns a location without its scheme, query and fragment.
fn without_scheme(path: &str) -> String {
    if let Some(local) = path.strip_prefix("file:") {
        return with_escapes_open(local);
    }
    let is_scheme = |scheme: &str| !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+');
    let Some((scheme, rest)) = path.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return path.to_owned();
    };
    let is_web = scheme == "http" || scheme == "https";
    let rest = match rest.split_once('?') {
        Some((before, query)) if is_web || query.contains('=') => before,
        _ => rest,
    };
    let rest = if is_web { rest.split('#').next().unwrap_or_default() } else { rest };
    with_escapes_open(rest)
}

/// Replaces percent escapes such as `%2e` with a wildcard, because they may stand for any character.
fn with_escapes_open(location: &str) -> String {
    let mut parts = location.split('%');
    let mut open = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_escape = part.len() >= 2 && part.bytes().take(2).all(|b| b.is_ascii_hexdigit());
        open.push_str(if is_escape { "*" } else { "%" });
        open.push_str(if is_escape { &part[2..] } else { part });
    }
    open
}

/// Returns whether a canonical name is a file's.
pub(crate) fn is_file(name: &str) -> bool {
    name.starts_with('/')
}

/// Returns whether a canonical name may stand for several tables or files. In names of tables, only `*` is a pattern.
/// A name counts as the name of a file only if it has a folder or the suffix of a file.
pub(crate) fn is_pattern(name: &str) -> bool {
    if is_file(name) || has_file_suffix(name) { has_glob(name) } else { name.contains('*') }
}

fn has_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// Returns the last component of a file's path, or the last part of a table's name.
pub(crate) fn last_component(name: &str) -> &str {
    let separator = if is_file(name) { '/' } else { '.' };
    name.trim_end_matches('/').rsplit(separator).next().unwrap_or(name)
}

/// Returns a key that is equal for names that compare as the same; `None` for names that must be compared with all
/// others.
pub(crate) fn index_key(name: &str) -> Option<&str> {
    let last = name.rsplit('/').next().unwrap_or(name);
    let is_open = if is_file(name) { has_glob(last) || !last.contains('.') } else { is_pattern(last) };
    (!is_open).then(|| last.rsplit('.').next().unwrap_or(last))
}

/// Returns the names by which columns of a table may be qualified: `orders` and `raw.orders` may be one table.
pub(crate) fn column_owners(parts: &[&str]) -> Vec<String> {
    let file_name = |name: &str| name.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let Some(last) = parts.last() else { return Vec::new() };
    let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
    let mut owners = vec![file_name(&of_table(last)), file_name(&of_parts(&parts).0)];
    owners.dedup();
    owners
}

/// Returns whether two canonical names may refer to the same table or file, or one of them to a part of the other.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    match (is_file(a), is_file(b)) {
        (false, false) => is_same_table(a, b),
        (true, true) => is_same_file(a, b),
        (true, false) => has_file_suffix(b) && is_same_file(a, &["/", b].concat()),
        (false, true) => is_same(b, a),
    }
}

fn has_file_suffix(table: &str) -> bool {
    table.split(['.', '?', '*']).any(|part| FILE_SUFFIXES.contains(&part))
}

/// Compares names of tables. `orders` and `raw.orders` may be the same table, and so may `db.orders` and
/// `db.raw.orders`, because engines allow names without the schema.
fn is_same_table(a: &str, b: &str) -> bool {
    let ends_with = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('.'));
    let lacks_schema = |long: &str, short: &str| {
        let parts: Vec<&str> = long.split('.').collect();
        matches!(parts[..], [database, _, name] if short.split_once('.') == Some((database, name)))
    };
    if a == b || ends_with(a, b) || ends_with(b, a) || lacks_schema(a, b) || lacks_schema(b, a) {
        return true;
    }
    // A pattern of a table's name stays within the name: its qualifiers are compared one by one.
    let are_same_parts = || a.rsplit('.').zip(b.rsplit('.')).all(|(a, b)| patterns_overlap(a, b));
    (is_pattern(a) || is_pattern(b)) && (patterns_overlap(a, b) || are_same_parts())
}

/// Compares paths. A relative path is compared with the end of a longer one, because its base folder is unknown.
fn is_same_file(a: &str, b: &str) -> bool {
    let components = |name: &'_ str| -> Vec<String> {
        name.split('/').filter(|component| !component.is_empty()).map(str::to_owned).collect()
    };
    let (own, other) = (components(a), components(b));
    if own.iter().chain(&other).filter(|component| *component == "**").count() > MAX_RECURSIVE_GLOBS {
        return true;
    }
    ends_overlap(&own, &other) || may_hold(a, &own, &other) || may_hold(b, &other, &own)
}

fn ends_overlap(a: &[String], b: &[String]) -> bool {
    let (Some((last_a, rest_a)), Some((last_b, rest_b))) = (a.split_last(), b.split_last()) else { return true };
    if last_a == "**" {
        return (0..=b.len()).any(|count| ends_overlap(rest_a, &b[..b.len() - count]));
    }
    if last_b == "**" {
        return ends_overlap(b, a);
    }
    patterns_overlap(last_a, last_b) && ends_overlap(rest_a, rest_b)
}

/// Returns whether a directory may contain a file.
fn may_hold(directory: &str, own: &[String], file: &[String]) -> bool {
    let Some(last) = own.last() else { return true };
    if !directory.ends_with('/') && last.contains('.') {
        return false;
    }
    if own.iter().any(|component| component == "**") {
        return true;
    }
    let are_same = |a: &[String], b: &[String]| a.iter().zip(b).all(|(a, b)| patterns_overlap(a, b));
    let is_inside = || file[..file.len().saturating_sub(1)].windows(own.len()).any(|part| are_same(part, own));
    let is_above = |count: usize| are_same(&own[own.len() - count..], &file[..count]);
    is_inside() || (1..own.len().min(file.len())).any(is_above)
}

#[derive(Clone, Copy, PartialEq)]
enum Symbol {
    One(char),
    AnyOne,
    Any,
}

/// Returns the symbols of a pattern. Character classes and alternatives match any string.
fn symbols(pattern: &str) -> Vec<Symbol> {
    let mut symbols = Vec::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        symbols.push(match character {
            '*' => Symbol::Any,
            '?' => Symbol::AnyOne,
            '[' | '{' => {
                let close = if character == '[' { ']' } else { '}' };
                if characters.clone().any(|c| c == close) {
                    characters.by_ref().find(|c| *c == close);
                } else {
                    // The bracket is never closed, so the rest may be anything.
                    characters.by_ref().for_each(drop);
                }
                Symbol::Any
            }
            character => Symbol::One(character),
        });
    }
    symbols
}

/// Returns whether some string matches both patterns.
fn patterns_overlap(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    if !has_glob(a) && !has_glob(b) {
        return false;
    }
    let (a, b) = (symbols(a), symbols(b));
    // `row[j]`: some string matches both the symbols of `a` from the current one on and those of `b` from `j` on.
    let mut row: Vec<bool> = vec![false; b.len() + 1];
    for i in (0..=a.len()).rev() {
        let below = row.clone();
        for j in (0..=b.len()).rev() {
            row[j] = match (a.get(i), b.get(j)) {
                (None, None) => true,
                (Some(Symbol::Any), Some(_)) => below[j] || row[j + 1],
                (Some(Symbol::Any), None) => below[j],
                (Some(_), Some(Symbol::Any)) => row[j + 1] || below[j],
                (None, Some(Symbol::Any)) => row[j + 1],
                (Some(Symbol::One(x)), Some(Symbol::One(y))) => x == y && below[j + 1],
                (Some(_), Some(_)) => below[j + 1],
                (None, Some(_)) | (Some(_), None) => false,
            };
        }
    }
    row[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        of_parts(&[text.to_owned()]).0
    }

    #[test]
    fn spellings_of_one_file_are_the_same() {
        for spelling in [
            "data/customers.csv",
            "./data/customers.csv",
            "data//customers.csv",
            "data/../data/customers.csv",
            "../p/data/customers.csv",
            "data\\customers.csv",
            "DATA/Customers.CSV",
            "/abs/p/data/customers.csv",
            "file:data/customers.csv",
            "file:///abs/p/data/customers.csv",
            "file://localhost/abs/p/data/customers.csv",
            "file:data/customers%2Ecsv",
            "data/*.csv",
            "data/cust?mers.csv",
            "data/[a-z]*.csv",
            "data/{orders,customers}.csv",
            "**/*.csv",
            "data/**",
            "*/customers.csv",
            "data",
            "./data/",
            "customers.csv",
        ] {
            assert!(is_same(&of_file(spelling), &name("data/customers.csv")), "{spelling}");
            assert!(is_same(&name("data/customers.csv"), &of_file(spelling)), "{spelling}");
        }
        assert!(is_same(&name("customers.csv"), &of_file("./customers.csv")));
        assert!(is_same(&of_file("s3://b/x.csv?s3_region=eu"), &of_file("s3a://b/x.csv")));
    }

    #[test]
    fn other_files_and_tables_are_not_the_same() {
        for (a, b) in [
            (of_file("data/orders.csv"), of_file("data/customers.csv")),
            (of_file("other/customers.csv"), of_file("data/customers.csv")),
            (of_file("data/*.parquet"), of_file("data/customers.csv")),
            (of_file("data/*.csv"), of_table("raw.customers")),
            (of_file("data/**"), of_table("customers")),
            (of_directory("lake/orders"), of_file("lake/customers/part.parquet")),
            (of_table("raw.orders"), of_table("staging.orders")),
            (of_table("ds.events_*"), of_table("ds.users")),
            (of_table("[q]"), of_table("users")),
            (of_table("what?"), of_table("whats")),
        ] {
            assert!(!is_same(&a, &b) && !is_same(&b, &a), "{a} {b}");
        }
        assert!(is_same(&of_table("ds.events_*"), &of_table("p.ds.events_2024")));
        assert!(is_same(&of_directory("lake/orders"), &of_file("/mnt/lake/orders/year=2024/part.parquet")));
        assert!(is_same(&of_directory("/mnt/lake/orders"), &of_file("lake/orders/part.parquet")));
    }

    /// Compares the result with matching every short string.
    #[test]
    fn overlapping_patterns_are_found() {
        fn matches(pattern: &[Symbol], text: &[char]) -> bool {
            match (pattern.split_first(), text.split_first()) {
                (None, rest) => rest.is_none(),
                (Some((Symbol::Any, rest)), _) => (0..=text.len()).any(|count| matches(rest, &text[count..])),
                (Some((Symbol::AnyOne, rest)), Some((_, others))) => matches(rest, others),
                (Some((Symbol::One(own), rest)), Some((first, others))) => own == first && matches(rest, others),
                (Some(_), None) => false,
            }
        }
        let words = |alphabet: &[char], most: usize| {
            let mut all = vec![String::new()];
            let mut from = 0;
            for _ in 0..most {
                let until = all.len();
                for at in from..until {
                    all.extend(alphabet.iter().map(|c| format!("{}{c}", all[at])).collect::<Vec<_>>());
                }
                from = until;
            }
            all
        };
        let patterns = words(&['a', 'b', '*', '?'], 3);
        let texts: Vec<Vec<char>> = words(&['a', 'b'], 6).iter().map(|text| text.chars().collect()).collect();
        for a in &patterns {
            for b in &patterns {
                let (left, right) = (symbols(a), symbols(b));
                let expected = texts.iter().any(|text| matches(&left, text) && matches(&right, text));
                assert_eq!(patterns_overlap(a, b), expected, "{a} {b}");
            }
        }
    }
}
