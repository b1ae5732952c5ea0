//! Creates names for members and files from the names that a database or another tool uses.
//!
//! In: any text. Out: snake_case names that the compiler accepts, titles, singulars, and SQL that refers to a
//! column or a table by its own name. Not here: the purpose that a name suggests (`draft::classify`).

use std::collections::HashSet;

use sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS};

/// The length at which names are cut.
const MAX_CHARACTERS: usize = 60;

/// Abbreviations that titles write in upper case.
const ACRONYMS: &[&str] =
    &["id", "url", "sku", "api", "ip", "uuid", "vat", "utc", "iso", "http", "ui", "usd", "eur", "gmv"];

/// The name for text without any letter that a name can contain.
const UNNAMED: &str = "unnamed";

/// Returns a snake_case name, or `other` if the text has no letter that a name can contain.
pub fn snake_or(text: &str, other: impl FnOnce() -> String) -> String {
    let has_letter = text.chars().any(|c| c.is_ascii_alphanumeric() || without_mark(c).is_some());
    if has_letter { snake(text) } else { other() }
}

/// Returns true if [`snake`] keeps every letter of a string. If not, two strings may get one name by accident.
pub fn is_spelled(text: &str) -> bool {
    let has_letter = text.chars().any(char::is_alphanumeric);
    has_letter && text.chars().all(|c| !c.is_alphanumeric() || c.is_ascii() || without_mark(c).is_some())
}

/// Returns a snake_case name, which is never empty: `CustomerID` and `customer id` become `customer_id`.
pub fn snake(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut name = String::new();
    for (at, c) in characters.iter().copied().enumerate() {
        let before = at.checked_sub(1).and_then(|before| characters.get(before).copied());
        let after = characters.get(at + 1).copied();
        if c.is_ascii_uppercase() {
            let begins = before.is_some_and(|c| c.is_lowercase() || c.is_ascii_digit())
                || (before.is_some_and(char::is_uppercase) && after.is_some_and(char::is_lowercase));
            if begins && !name.ends_with('_') {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        } else if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if let Some(plain) = without_mark(c) {
            name.push_str(plain);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    name.truncate(MAX_CHARACTERS);
    let name = name.trim_end_matches('_');
    match name.chars().next() {
        None => UNNAMED.to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n_{name}"),
        Some(_) => name.to_owned(),
    }
}

/// Returns the usual ASCII spelling of a Latin letter with a diacritical mark.
fn without_mark(c: char) -> Option<&'static str> {
    Some(match c {
        'à' | 'á' | 'â' | 'ã' | 'å' | 'À' | 'Á' | 'Â' | 'Ã' | 'Å' => "a",
        'ä' | 'Ä' | 'æ' | 'Æ' => "ae",
        'ç' | 'Ç' | 'č' | 'Č' => "c",
        'è' | 'é' | 'ê' | 'ë' | 'È' | 'É' | 'Ê' | 'Ë' => "e",
        'ì' | 'í' | 'î' | 'ï' | 'Ì' | 'Í' | 'Î' | 'Ï' => "i",
        'ñ' | 'Ñ' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'Ò' | 'Ó' | 'Ô' | 'Õ' => "o",
        'ö' | 'Ö' | 'ø' | 'Ø' => "oe",
        'š' | 'Š' => "s",
        'ß' => "ss",
        'ù' | 'ú' | 'û' | 'Ù' | 'Ú' | 'Û' => "u",
        'ü' | 'Ü' => "ue",
        'ž' | 'Ž' => "z",
        _ => return None,
    })
}

/// A set of names that must differ.
#[derive(Debug, Clone, Default)]
pub struct Taken(HashSet<String>);

impl Taken {
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Adds the name, or the first free one of `name_2`, `name_3` …, and returns it.
    pub fn take(&mut self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !self.0.contains(name));
        let free = free.unwrap_or_else(|| name.to_owned());
        self.0.insert(free.clone());
        free
    }
}

/// Returns the title for a name: `Order items` for `order_items`, `Customer ID` for `customer_id`.
pub fn title(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let words: Vec<String> =
        words.map(|word| if ACRONYMS.contains(&word) { word.to_uppercase() } else { word.to_owned() }).collect();
    let text = words.join(" ");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the singular of a snake_case English noun by simple rules: `order_item` for `order_items`.
pub fn singular(name: &str) -> String {
    let (lead, word) = name.rsplit_once('_').map_or(("", name), |(lead, word)| (&name[..=lead.len()], word));
    let irregular = [("people", "person"), ("children", "child"), ("men", "man"), ("women", "woman"), ("data", "data")];
    let unchanged = ["ss", "us", "is", "news", "series"];
    let word = if let Some((_, one)) = irregular.iter().find(|(many, _)| *many == word) {
        (*one).to_owned()
    } else if unchanged.iter().any(|end| word.ends_with(end)) || word.len() < 3 {
        word.to_owned()
    } else if let Some(stem) = word.strip_suffix("ies") {
        format!("{stem}y")
    } else if ends_in_es(word) {
        word[..word.len() - 2].to_owned()
    } else {
        word.strip_suffix('s').unwrap_or(word).to_owned()
    };
    format!("{lead}{word}")
}

/// Returns true if the singular loses two letters: `boxes`, `addresses` and `statuses`, but not `houses`.
fn ends_in_es(word: &str) -> bool {
    ["sses", "xes", "ches", "shes", "zzes"].iter().any(|end| word.ends_with(end))
        || (word.ends_with("uses") && !word.ends_with("ouses") && !word.ends_with("auses"))
}

/// Returns the SQL for a column of a cube's own rows. A lower-case word that is not a SQL keyword is written without
/// quotes. Other names are quoted, since engines fold unquoted names.
pub fn column_sql(name: &str) -> String {
    match word(name) {
        Word::Free => name.to_owned(),
        Word::Keyword => format!("{{CUBE}}.{name}"),
        Word::Quoted => format!("{{CUBE}}.{}", quoted(name)),
    }
}

/// Returns the SQL for a column of another cube.
pub fn column_of(cube: &str, name: &str) -> String {
    format!("{{{cube}}}.{}", identifier(name))
}

/// Returns an identifier, quoted if necessary.
pub fn identifier(name: &str) -> String {
    match word(name) {
        Word::Quoted => quoted(name),
        Word::Free | Word::Keyword => name.to_owned(),
    }
}

/// Returns an identifier in the double quotes of standard SQL, which DuckDB and PostgreSQL use.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

enum Word {
    Free,
    /// A keyword that may be a column's name.
    Keyword,
    Quoted,
}

fn word(name: &str) -> Word {
    // Reserved words that the parser's lists of words reserved for aliases do not contain.
    const RESERVED: &[&str] = &[
        "ALL",
        "ANALYZE",
        "AND",
        "ANY",
        "ASC",
        "CASE",
        "CAST",
        "CHECK",
        "COLLATE",
        "COLUMN",
        "CONSTRAINT",
        "CREATE",
        "DEFAULT",
        "DESC",
        "DISTINCT",
        "ELSE",
        "FALSE",
        "FOREIGN",
        "GRANT",
        "IN",
        "LEADING",
        "NOT",
        "NULL",
        "OR",
        "PLACING",
        "PRIMARY",
        "REFERENCES",
        "SOME",
        "SYMMETRIC",
        "TABLE",
        "THEN",
        "TO",
        "TRAILING",
        "TRUE",
        "UNIQUE",
        "USER",
        "VARIADIC",
        "WHEN",
        "INTERVAL",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "CURRENT_USER",
    ];
    let is_word = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !is_word {
        return Word::Quoted;
    }
    let upper = name.to_ascii_uppercase();
    match ALL_KEYWORDS.binary_search(&upper.as_str()) {
        Err(_) => Word::Free,
        Ok(index) => {
            let keyword = ALL_KEYWORDS_INDEX[index];
            let is_reserved = RESERVED.contains(&upper.as_str())
                || RESERVED_FOR_COLUMN_ALIAS.contains(&keyword)
                || RESERVED_FOR_TABLE_ALIAS.contains(&keyword);
            if is_reserved { Word::Quoted } else { Word::Keyword }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_snake_case() {
        let cases = [
            ("orders", "orders"),
            ("OrderItems", "order_items"),
            ("CustomerID", "customer_id"),
            ("HTTPRequest", "http_request"),
            ("Order Date", "order_date"),
            ("  % of total ", "of_total"),
            ("2024 sales", "n_2024_sales"),
            ("größe", "groesse"),
            ("注文", "unnamed"),
            ("a--b__c", "a_b_c"),
            ("address2Line", "address2_line"),
        ];
        for (text, name) in cases {
            assert_eq!(snake(text), name, "{text}");
        }
        assert!(snake(&"x".repeat(500)).len() <= MAX_CHARACTERS);
    }

    #[test]
    fn name_without_latin_letters_is_detected() {
        assert_eq!(snake_or("日本", || "column_1".to_owned()), "column_1");
        assert_eq!(snake_or("Größe", || "column_1".to_owned()), "groesse");
        let spelled = ["customer id", "Größe", "日本_id", "日本", "%"].map(is_spelled);
        assert_eq!(spelled, [true, true, false, false, false]);
    }

    #[test]
    fn taken_names_get_a_number() {
        let mut taken = Taken::default();
        assert_eq!([taken.take("a"), taken.take("a"), taken.take("a")], ["a", "a_2", "a_3"]);
    }

    #[test]
    fn titles_and_singulars_follow_the_rules() {
        assert_eq!((title("customer_id"), title("order_items")), ("Customer ID".to_owned(), "Order items".to_owned()));
        let cases = [
            ("orders", "order"),
            ("order_items", "order_item"),
            ("categories", "category"),
            ("statuses", "status"),
            ("boxes", "box"),
            ("houses", "house"),
            ("addresses", "address"),
            ("status", "status"),
            ("people", "person"),
            ("purchases", "purchase"),
            ("gas", "ga"),
            ("bus", "bus"),
        ];
        for (many, one) in cases {
            assert_eq!(singular(many), one, "{many}");
        }
    }

    #[test]
    fn only_identifiers_that_need_quotes_get_them() {
        assert_eq!(column_sql("amount"), "amount");
        assert_eq!(column_sql("year"), "{CUBE}.year");
        assert_eq!(column_sql("order"), "{CUBE}.\"order\"");
        assert_eq!(column_sql("Order \"x\""), "{CUBE}.\"Order \"\"x\"\"\"");
        assert_eq!(column_of("orders", "user"), "{orders}.\"user\"");
        assert_eq!(identifier("public"), "public");
    }
}
