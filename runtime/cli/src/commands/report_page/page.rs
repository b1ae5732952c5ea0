//! The page: one HTML document without a reference to anything outside.
//!
//! In: the contents. Out: the document. The template escapes every string, control characters are replaced, and the
//! policy of the document allows its own style and script only, by their digests. Not here: collecting the contents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value, escape_formatter};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use terrane_terminal::{TerminalText, is_unsafe};

use super::contents::Contents;

/// The name of the template, whose extension makes the engine escape strings for HTML.
const NAME: &str = "page.html";
const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

#[derive(Serialize)]
struct Page<'a> {
    #[serde(flatten)]
    contents: &'a Contents,
    version: &'static str,
    policy: String,
    style: &'a str,
    script: &'static str,
}

/// Writes the document.
///
/// # Errors
/// The template is faulty.
pub(super) fn render(contents: &Contents) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() && text.chars().any(is_unsafe) => {
            let text = TerminalText::lines(&text.replace('\t', " ")).into_string();
            escape_formatter(out, state, &Value::from(text))
        }
        _ => escape_formatter(out, state, value),
    });
    environment.add_template(NAME, TEMPLATE)?;
    let style = format!("{STYLE}{}", terrane_pictures::STYLE);
    let policy = policy(&style, SCRIPT);
    let page = Page { contents, version: env!("CARGO_PKG_VERSION"), policy, style: &style, script: SCRIPT };
    environment.get_template(NAME)?.render(Serde(&page))
}

/// Returns the content security policy of the document.
fn policy(style: &str, script: &str) -> String {
    let digest = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        digest(style),
        digest(script)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::contents::{Lineage, Profile, Series};
    use super::*;

    fn contents() -> Contents {
        let evil = "<script>alert(1)</script>\u{1b}";
        let cube = json!({
            "name": "orders", "title": evil, "description": "a \"quote\" & more",
            "measures": [{"name": "revenue", "type": "sum", "title": "Revenue", "format": "currency", "description": null}],
            "dimensions": [{"name": "id", "type": "number", "title": "Id", "description": null, "primary_key": true}],
            "segments": ["paid"], "joins": ["customers"], "certification": null,
        });
        let metric =
            json!({"name": "margin", "type": "ratio", "title": evil, "description": evil, "cubes": ["orders"]});
        Contents {
            project: evil.to_owned(),
            cubes: vec![cube],
            metrics: vec![metric],
            joins: "<svg></svg>".to_owned(),
            lineages: vec![Lineage {
                name: "margin".to_owned(),
                title: evil.to_owned(),
                svg: "<svg></svg>".to_owned(),
            }],
            ..Contents::default()
        }
    }

    #[test]
    fn strings_are_escaped_and_pictures_are_not() {
        let page = render(&contents()).unwrap();
        assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'), "{page}");
        assert!(page.contains("&lt;script&gt;alert(1)&lt;&#x2f;script&gt;\u{fffd}"), "{page}");
        assert!(page.contains("<svg></svg>") && page.contains("orders.revenue"), "{page}");
        assert!(page.contains("<td>sum, currency</td>"), "{page}");
        assert!(page.contains("Segments: <code>paid</code>") && page.contains("<td>number, key</td>"), "{page}");
    }

    #[test]
    fn page_loads_no_external_resources() {
        let page = render(&contents()).unwrap();
        for word in ["http:", "https:", "@import", "url(", " src=", "srcset"] {
            assert!(!page.contains(word), "{word}: {page}");
        }
        assert!(page.contains("default-src &#x27;none&#x27;"), "{page}");
        // Style attributes and handlers would be refused by the policy.
        assert!(!page.contains(" style=") && !page.contains(" onclick="), "{page}");
    }

    #[test]
    fn data_sections_are_included_on_request() {
        let mut contents = contents();
        assert!(!render(&contents).unwrap().contains("id=\"profiles\""));
        contents.has_data = true;
        contents.profiles.push(Profile {
            cube: "orders".to_owned(),
            title: "All orders".to_owned(),
            rows: 7,
            score: Some("0.9".to_owned()),
            columns: Vec::new(),
            insights: Vec::new(),
        });
        contents.anomalies.push(Series {
            measure: "orders.revenue".to_owned(),
            title: "Revenue of orders".to_owned(),
            detector: "z_score".to_owned(),
            found: 0,
            points: 9,
            svg: "<svg></svg>".to_owned(),
            rows: Vec::new(),
        });
        contents.note("anomalies", "a limit".to_owned());
        let page = render(&contents).unwrap();
        assert!(page.contains("7 rows, quality 0.9") && page.contains("0 of 9 points are anomalous"), "{page}");
        assert_eq!(page.matches("<p class=\"note\">a limit</p>").count(), 1, "{page}");
        assert!(page.contains("<span class=\"title\">All orders</span>"), "{page}");
        assert!(page.contains("<span class=\"title\">Revenue of orders</span>"), "{page}");
    }

    #[test]
    fn embedded_files_cannot_end_their_elements() {
        assert!(!STYLE.contains("</") && !terrane_pictures::STYLE.contains("</") && !SCRIPT.contains("</script"));
    }
}
