//! Collects the events of the log and the audit log, so that they can be read in one sitting.
//!
//! In: a source file. Out: each log event with its level and fields, each audit event, and each reason of a denial or a
//! failure. If an event or reason is computed, its expression is listed, so that no call is missed. Not here: types.
//! Events and reasons are recognized by the names of functions and fields.

use crate::tokens::{Located, Token, scan, without_tests};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogEvent {
    /// The name. If the name is computed, the expression in parentheses.
    pub name: String,
    pub level: String,
    /// The names of the fields, in order.
    pub fields: Vec<String>,
}

/// The macros that log an event.
const LEVELS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];
/// Functions that have an audit event among their first two arguments.
const ENTRIES: [&str; 6] = ["entry", "note", "record", "operator_entry", "record_decision", "replace_key"];
/// Functions that have a reason among their arguments: the name, and the index of the argument.
const REASONS: [(&str, usize); 5] =
    [("deny", 2), ("denied", 1), ("report_denial", 1), ("record_failure", 2), ("record_decision", 2)];
/// Fields that contain a reason.
const FIELDS: [&str; 2] = ["reason", "why"];

/// Returns the events that a source logs outside its tests, in order.
pub fn log_events(source: &str) -> Vec<LogEvent> {
    let tokens = product(source);
    let mut events = Vec::new();
    for (at, window) in tokens.windows(6).enumerate() {
        let [Token::Word("tracing"), Token::Symbol(':'), Token::Symbol(':'), Token::Word(level), ..] = window else {
            continue;
        };
        if !LEVELS.contains(level) || window[4..] != [Token::Symbol('!'), Token::Symbol('(')] {
            continue;
        }
        let arguments = arguments(&tokens[at + 6..]);
        let fields: Vec<String> =
            arguments.iter().filter_map(|argument| field(argument)).filter(|field| field != "event").collect();
        let names = event_names(&arguments, &tokens, at).into_iter();
        events.extend(names.map(|name| LogEvent { name, level: (*level).to_owned(), fields: fields.clone() }));
    }
    events
}

/// Returns the audit events that a source records outside its tests, in order.
pub fn audit_events(source: &str) -> Vec<String> {
    let tokens = product(source);
    let mut events = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        if is_call(&tokens, at) && ENTRIES.contains(word) {
            let arguments = arguments(&tokens[at + 2..]);
            events.extend(arguments.iter().take(2).filter_map(|argument| name_in(argument)));
        } else if *word == "event" && tokens.get(at + 1) == Some(&Token::Symbol(':')) {
            events.extend(tokens.get(at + 2).and_then(|value| name_in(std::slice::from_ref(value))));
        } else if *word == "event" && at > 0 && matches!(tokens[at - 1], Token::Word("let" | "fn")) {
            if tokens[at - 1] == Token::Word("let") && is_logged(&tokens[at..]) {
                continue;
            }
            let end = if tokens[at - 1] == Token::Word("fn") { '}' } else { ';' };
            events.extend(until(&tokens[at..], end).iter().filter_map(|token| name_in(std::slice::from_ref(token))));
        }
    }
    events
}

/// Returns the reasons of denials and failures that a source names outside its tests, in order.
pub fn reasons(source: &str) -> Vec<String> {
    let tokens = product(source);
    let has_faults = tokens.iter().any(|token| matches!(token, Token::Word("TokenFault" | "ProviderFault")));
    let mut reasons = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        if is_call(&tokens, at) && *word == "invalid" && has_faults {
            reasons.extend(arguments(&tokens[at + 2..]).first().map(|argument| value_of(argument, &tokens)));
        } else if let Some((_, index)) = REASONS.iter().find(|(name, _)| name == word).filter(|_| is_call(&tokens, at))
        {
            reasons.extend(arguments(&tokens[at + 2..]).get(*index).map(|argument| value_of(argument, &tokens)));
        } else if FIELDS.contains(word) && tokens.get(at + 1) == Some(&Token::Symbol(':')) {
            let value = arguments(&tokens[at + 2..]);
            reasons.extend(value.first().and_then(|value| literal(value)).map(str::to_owned));
        } else if *word == "reason" && at > 0 && tokens[at - 1] == Token::Word("fn") {
            let (signature, body) = (until(&tokens[at..], '{'), until(&tokens[at..], '}'));
            let is_static = signature.ends_with(&[Token::Word("static"), Token::Word("str")]);
            reasons.extend(body.iter().filter(|_| is_static).filter_map(|token| literal(&[*token]).map(str::to_owned)));
        } else if *word == "fn" && matches!(tokens.get(at + 1), Some(Token::Word("denied"))) {
            reasons.extend(public_constants(&tokens));
        }
    }
    reasons.retain(|reason| reason.contains(char::is_alphabetic));
    reasons
}

/// Returns the names of the log event at an index: one name for a literal or a constant, and all values of the variable
/// `event`, which is declared before the index.
fn event_names(arguments: &[&[Token<'_>]], tokens: &[Token<'_>], at: usize) -> Vec<String> {
    let value = arguments.iter().find_map(|argument| match argument {
        [Token::Word("event"), Token::Symbol('='), value @ ..] => Some(value),
        _ => None,
    });
    if let Some(value) = value {
        return vec![value_of(value, tokens)];
    }
    if !arguments.iter().any(|argument| matches!(argument, [Token::Word("event")])) {
        return vec!["(none)".to_owned()];
    }
    let is_variable = |window: &[Token<'_>]| matches!(window, [Token::Word("let"), Token::Word("event")]);
    let values = tokens[..at].windows(2).rposition(is_variable).map(|start| until(&tokens[start..], ';'));
    let names: Vec<_> =
        values.unwrap_or_default().iter().filter_map(|token| name_in(std::slice::from_ref(token))).collect();
    if names.is_empty() { vec!["(event)".to_owned()] } else { names }
}

/// Returns whether the variable `event`, declared at the first token, is first used as the name of a log event.
fn is_logged(tokens: &[Token<'_>]) -> bool {
    let after = &tokens[until(tokens, ';').len()..];
    let first_use = after.iter().position(|token| *token == Token::Word("event"));
    first_use.is_some_and(|at| after[..at].ends_with(&[Token::Symbol('!'), Token::Symbol('(')]))
}

fn product(source: &str) -> Vec<Token<'_>> {
    let scanned = scan(source);
    let tokens = without_tests(&scanned).into_iter().map(|Located { token, .. }| token);
    tokens.filter(|token| !matches!(token, Token::Doc(_) | Token::Comment(_))).collect()
}

/// Returns whether the code calls the name at an index, rather than declares it.
fn is_call(tokens: &[Token<'_>], at: usize) -> bool {
    tokens.get(at + 1) == Some(&Token::Symbol('(')) && (at == 0 || tokens[at - 1] != Token::Word("fn"))
}

/// Returns the tokens before the first `end` outside nested blocks, or all tokens without it.
fn until<'t, 's>(tokens: &'t [Token<'s>], end: char) -> &'t [Token<'s>] {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Symbol(c) if *c == end && depth <= usize::from(end == '}') => return &tokens[..at],
            Token::Symbol('{') => depth += 1,
            Token::Symbol('}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    tokens
}

/// Splits the arguments after an opening parenthesis or brace, up to the matching one.
fn arguments<'t, 's>(tokens: &'t [Token<'s>]) -> Vec<&'t [Token<'s>]> {
    let (mut depth, mut start) = (0_usize, 0);
    let mut arguments = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Symbol('(' | '[' | '{') => depth += 1,
            Token::Symbol(')' | ']' | '}') if depth == 0 => {
                arguments.push(&tokens[start..at]);
                break;
            }
            Token::Symbol(')' | ']' | '}') => depth -= 1,
            Token::Symbol(',') if depth == 0 => {
                arguments.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

/// Returns the name of a field of a log event; `None` for the event's message and target.
fn field(argument: &[Token<'_>]) -> Option<String> {
    match argument {
        [Token::Word("target"), ..] | [Token::Text(_), ..] => None,
        [Token::Word(name), Token::Symbol('='), ..] | [Token::Word(name)] => Some((*name).to_owned()),
        [Token::Symbol('%' | '?'), rest @ ..] => field(rest),
        _ => Some(format!("({})", joined(argument))),
    }
}

/// Returns the argument if it is one string literal in snake case.
fn name_in(argument: &[Token<'_>]) -> Option<String> {
    match argument {
        [Token::Text(text)] if text.chars().all(|c| c.is_ascii_lowercase() || c == '_') && text.contains('_') => {
            Some((*text).to_owned())
        }
        _ => None,
    }
}

/// Returns the first string literal of an expression.
fn literal<'s>(expression: &[Token<'s>]) -> Option<&'s str> {
    expression.iter().find_map(|token| match token {
        Token::Text(text) => Some(*text),
        _ => None,
    })
}

/// Returns the value of an expression that is a literal or a constant of the source. Other expressions are returned in
/// parentheses.
fn value_of(expression: &[Token<'_>], tokens: &[Token<'_>]) -> String {
    let constant = || match expression {
        [Token::Word(name)] => constant(name, tokens),
        _ => None,
    };
    let text = literal(expression).or_else(constant);
    text.map_or_else(|| format!("({})", joined(expression)), str::to_owned)
}

/// Returns the public string constants of a source. Other sources pass them to its functions as reasons.
fn public_constants(tokens: &[Token<'_>]) -> Vec<String> {
    let constants = tokens.windows(8).filter_map(|window| match window {
        [Token::Word("pub"), Token::Word("const"), .., Token::Symbol('='), Token::Text(text)] => {
            Some((*text).to_owned())
        }
        _ => None,
    });
    constants.collect()
}

/// Returns the value of the constant `NAME` in `const NAME: &str = "…"`.
fn constant<'s>(name: &str, tokens: &[Token<'s>]) -> Option<&'s str> {
    tokens.windows(7).find_map(|window| match window {
        [Token::Word("const"), Token::Word(found), .., Token::Symbol('='), Token::Text(text)] if *found == name => {
            Some(*text)
        }
        _ => None,
    })
}

fn joined(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    for token in tokens {
        match token {
            Token::Symbol(c) => text.push(*c),
            Token::Word(word) => {
                if text.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                    text.push(' ');
                }
                text.push_str(word);
            }
            Token::Text(literal) => text.push_str(&format!("{literal:?}")),
            Token::Doc(_) | Token::Comment(_) => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_events_have_their_level_and_fields() {
        let source = "tracing::warn!(event = \"a_b\", name, at = %f(x, y), %error, \"text\");\n\
                      tracing::debug!(target: \"t\", event = NAME, n);\n\
                      const LOST: &str = \"it_went\";\ntracing::info!(event = LOST);\ntracing::info!(n, \"no event\");";
        let event = |name: &str, level: &str, fields: &[&str]| LogEvent {
            name: name.to_owned(),
            level: level.to_owned(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        };
        let expected = [
            event("a_b", "warn", &["name", "at", "error"]),
            event("(NAME)", "debug", &["n"]),
            event("it_went", "info", &[]),
            event("(none)", "info", &["n"]),
        ];
        assert_eq!(log_events(source), expected);
        let source = "let event = if x { \"one_way\" } else { \"the_other\" };\ntracing::warn!(event, n = 1);";
        assert_eq!(log_events(source), [event("one_way", "warn", &["n"]), event("the_other", "warn", &["n"])]);
        assert!(audit_events(source).is_empty());
        assert_eq!(log_events("tracing::warn!(event);"), [event("(event)", "warn", &[])]);
        assert_eq!(log_events("#[cfg(test)] mod tests { fn f() { tracing::warn!(event = \"x_y\"); } }"), []);
    }

    #[test]
    fn audit_events_are_found_in_calls_fields_and_matches() {
        let source = "fn entry(event: &'static str) {}\nlet a = self.entry(\"key_made\", b);\n\
                      AuditEntry { event: \"table_built\".into(), count: 1 }\n\
                      let event = match x { A => \"user_left\", _ => \"user_came\" };\n\
                      fn event(&self) -> &'static str { match self { A => \"one_more\" } }\nmap.entry(\"a b\");";
        assert_eq!(audit_events(source), ["key_made", "table_built", "user_left", "user_came", "one_more"]);
    }

    #[test]
    fn reasons_are_literals_or_the_expressions_that_compute_them() {
        let source = "access.denied(request, \"missing scope\");\naccess.denied(request, error.reason());\n\
                      Denial { reason: \"unknown host\", error }\nstruct A { why: &'static str, reason: Option<X> }\n\
                      fn reason(&self) -> &'static str { match self { B => \"too late\" } }\n\
                      type F = TokenFault;\nreturn Err(invalid(\"no key\"));\nconst POLICY: &str = \"policy\";\ndeny(a, b, POLICY);";
        let expected = ["missing scope", "(error.reason())", "unknown host", "too late", "no key", "policy"];
        assert_eq!(reasons(source), expected);
    }
}
