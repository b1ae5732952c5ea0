//! Cases for names: a name of a member or table must stay a name, whatever characters it contains.

use super::{Expected, Suite};

const HOSTILE: [&str; 22] = [
    "order",
    "SELECT",
    "CamelCase",
    "camelcase",
    "a b",
    " a ",
    "a\"b",
    "\"",
    "a`b",
    "a]b[",
    "a'b",
    "a\\b",
    "a\\",
    "a;b -- c",
    "a/*b*/c",
    "orders.created_at.month",
    "a?b:c@d$1%s#e",
    "{0}",
    "1st",
    "日本語",
    "naïve",
    "😀",
];

/// Words that some engine reserves or treats specially. If a dialect does not reserve a word, the word must be valid as
/// an unquoted table name.
const WORDS: &str = "\
    abs access account action add admin after all alter always analyse analyze and anti any apply array as asc asof \
    assert at attach authorization auto backup base before begin between bigint binary bit blob boolean both break \
    browse bulk by call cascade case cast catalog change char character check clone cluster coalesce collate collation \
    column columns comment commit concat concurrently condition connect connection constraint contains continue \
    convert copy create cross cube cume_dist current current_catalog current_date current_path current_role \
    current_schema current_time current_timestamp current_user cursor cycle data database databases date datetime day \
    deallocate dec decimal declare default deferrable delayed delete dense_rank deny desc describe detach \
    deterministic distinct distribute div do double drop each element else elseif empty encode end end_frame enum \
    escape every except exclude exec execute exists explain export extend extract false fetch fields file filter final \
    first first_value float following for force foreign freeze from full fulltext function functions generated get \
    glob global grant group grouping groups having high_priority hour identified if ignore ilike immediate import in \
    increment index inner inout insert int integer intersect intersection interval into is isnull issue join json \
    json_table key keys kill lag language last last_value lateral lead leading leave left level like limit linear \
    lines load localtime localtimestamp lock long loop macro map match maxvalue merge metric minus minute mod model \
    month name national natural nchar next no nocycle none normalize not nothing notnull nth_value ntile null nullif \
    nulls number numeric of off offline offset oid old on online only open optimize option or order organization \
    others out outer over overlaps overlay parallel partition path percent percent_rank pivot placing plan position \
    precision preceding primary prior procedure proto purge qualify quarter range rank raw read real recursive \
    references regexp release rename repeat replace require respect restrict return returning revoke right rlike role \
    rollback rollup row row_number rows sample savepoint schema schemas second select semi sensitive separator session \
    session_user set setof sets show signal similar skip smallint snapshot some source sql stage start starting status \
    straight_join stream struct subset substring sum summarize symmetric synonym system table tables tablesample tag \
    temporary terminated test then time timestamp tinyint to top total trailing transaction treat trigger trim true \
    truncate try try_cast type uescape unbounded union unique unknown unlock unnest unpivot unsigned update usage use \
    user using uuid vacuum value values varchar variadic varying verbose view virtual visits volatile week when \
    whenever where while window with within without work write xml xor year zone";

pub(super) fn cases(suite: &mut Suite<'_>) {
    let w = suite.writer;
    suite.group = "names";
    let long = "x".repeat(200);
    let longest = "y".repeat(w.profile.quoting.max_ident_bytes.min(200) as usize);
    let holds_long = w.profile.quoting.max_ident_bytes >= 200;
    let names = HOSTILE.into_iter().chain([longest.as_str()]).chain(holds_long.then_some(long.as_str()));
    for name in names {
        let quoted = w.quoted_name(name);
        let label: String = name.chars().take(24).collect();
        let sql = format!("SELECT t.{quoted} AS r FROM (SELECT 1 AS {quoted}) AS t");
        suite.push(format!("column {label}, {} bytes", name.len()), sql, vec![vec![Expected::number(1)]]);
        let table = w.name(name);
        let sql = format!("SELECT {table}.x AS r FROM (SELECT 1 AS x) AS {table}");
        suite.push(format!("table {label}, {} bytes", name.len()), sql, vec![vec![Expected::number(1)]]);
    }
    let (a, b) = (w.quoted_name("a"), w.quoted_name("A"));
    let sql = format!("SELECT t.{b} AS r FROM (SELECT 1 AS {b}) AS t WHERE t.{b} = 1 {}", w.order("r", false));
    suite.push("a name in upper case", sql, vec![vec![Expected::number(1)]]);
    let sql = format!("SELECT t.{a} AS r FROM (SELECT 1 AS {a}) AS t GROUP BY 1");
    suite.push("a name in lower case", sql, vec![vec![Expected::number(1)]]);

    suite.group = "plain words as names";
    // If the dialect folds names to upper case, all lower-case names are quoted, and only upper-case names show which
    // words the dialect reserves.
    let folds = w.name("x") != "x";
    for word in WORDS.split_whitespace() {
        let name = if folds { w.name(&word.to_ascii_uppercase()) } else { w.name(word) };
        let sql = format!("SELECT {name}.x AS r FROM (SELECT 1 AS x) AS {name} WHERE {name}.x = 1");
        suite.push(word, sql, vec![vec![Expected::number(1)]]);
    }
}
