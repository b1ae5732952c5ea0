//! The page that acknowledges an alert by the link of a message.
//!
//! In: a query string, and an alert. Out: the token of the link, and a page of HTML. The page has a form, because
//! programs that preview links send GET requests. It shows no numbers and no values of dimensions: its readers are not
//! callers.

use terrane_app::monitors::{AlertMove, SeenAlert};

use crate::fields::{FieldError, Path};
use crate::governance::report::escape;

const STYLE: &str = "body { font: 1rem/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 36rem; padding: 0 1rem } \
                     button { font: inherit; padding: 0.5rem 1rem }";

/// Reads the token of a link.
///
/// # Errors
/// The token is missing, or another parameter is given.
pub fn link_token_from_parameters(query: &str) -> Result<String, FieldError> {
    let mut token = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "token" => token = Some(value.into_owned()),
            other => return Err(Path::ROOT.unknown_field(other, &["token"])),
        }
    }
    token.ok_or_else(|| Path::ROOT.missing_parameter("token"))
}

/// Returns the page about an alert. If the alert can be acknowledged, the page has a form that does it: a POST to the
/// address of the page.
pub fn acknowledge_page(seen: &SeenAlert) -> String {
    let SeenAlert { alert, monitor } = seen;
    let state = alert.state.as_str().to_lowercase();
    let form = match AlertMove::Acknowledge.is_allowed_in(alert.state) {
        true => "<form method=\"post\"><button>Acknowledge the alert</button></form>",
        false => "",
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Alert</title>\n<style>{STYLE}</style></head>\n\
         <body>\n<h1>{}</h1>\n<p>The alert of severity {} is {state}.</p>\n{form}\n</body>\n</html>\n",
        escape(&monitor.definition.name),
        alert.severity.as_str(),
    )
}
