//! Reads models in JavaScript.
//!
//! In: a file with calls of `cube()` and `view()`. Out: the document that a file in YAML would contain. Object literals
//! become mappings, template strings become strings with `${…}`, and a collection by name becomes a list. Spreads of
//! constants of the file are replaced by their properties. Nothing is executed. If the value of an expression is known
//! only after running it, the value becomes a template, and later stages report or close the item.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, AssignmentExpression, BinaryExpression, BinaryOperator, BindingPattern, CallExpression, Expression,
    ObjectExpression, ObjectPropertyKind, Program, PropertyKey, Statement, TemplateLiteral, VariableDeclaration,
};
use oxc_parser::Parser;
use oxc_span::{GetSpan as _, SourceType, Span};
use terrane_authoring::names::snake;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::SourceFile;
use terrane_compiler::project::yaml::{Key, Node, NodeValue, Plain};
use terrane_compiler::text::Origin;

use super::objects::{ObjectConstants, assigned_objects, declaration, is_export};
use super::spread::{Spread, name_of, replace_unknown, replace_unknown_items};
use crate::finding::{left_out, unread_at};

/// The largest size of a file in bytes. The parser recurses once for each nested expression, and needs stack for it.
const MAX_BYTES: usize = 256 * 1024;
/// The largest stack, in bytes, that one character of a file can need.
const STACK_BYTES: usize = 8 * 1024;
const MAX_DEPTH: usize = 200;
/// The largest number of syntax errors of one file that are reported.
const MAX_MISTAKES: usize = 20;
/// The largest number of characters of code that a finding shows.
const MAX_SHOWN: usize = 40;

/// The keys of collections. In JavaScript, a collection is an object with the names of its items as keys. In YAML, it
/// is a list.
const COLLECTIONS: [&str; 5] = ["measures", "dimensions", "segments", "joins", "pre_aggregations"];
/// Keys whose values are names of cubes and members.
const REFERENCES: [&str; 11] = [
    "extends",
    "measures",
    "dimensions",
    "segments",
    "drill_members",
    "time_dimension",
    "includes",
    "excludes",
    "join_path",
    "rollups",
    "time_dimensions",
];
/// The collections whose items callers can see.
const MEMBERS: [&str; 3] = ["measures", "dimensions", "segments"];
const EXCLUDES: &str = "excludes";
/// The key of an item of a collection whose value is computed. A finding has reported the item.
pub(super) const COMPUTED: &str = "computed in javascript";
/// The beginning of a value that JavaScript computes. The rest of the value is the code and two braces.
pub(super) const CODE: &str = "{{ javascript: ";
/// Old names of keys, each with the new name.
const RENAMED: [(&str, &str); 5] = [
    ("drill_member_references", "drill_members"),
    ("measure_references", "measures"),
    ("dimension_references", "dimensions"),
    ("segment_references", "segments"),
    ("time_dimension_reference", "time_dimension"),
];

/// Parses a file. Adds findings for code that is not imported.
///
/// # Errors
/// A finding with the reason why the whole file is not imported.
pub(super) fn parse(file: &Arc<SourceFile>, findings: &mut Vec<Diagnostic>) -> Result<Node, Box<Diagnostic>> {
    let path = &file.path;
    let rejected = |offset: usize, reason: &str, cure: &str| {
        let span = Origin::at(file, offset, 1).span();
        Box::new(unread_at(span, format!("{path} was not read: {reason}"), cure))
    };
    if file.text.len() > MAX_BYTES {
        return Err(rejected(0, "it is larger than 256 KiB", "Split it."));
    }
    if let Some(offset) = deep_bracket(&file.text) {
        return Err(rejected(offset, "its expressions are nested too deeply", "Write the model as YAML."));
    }
    let of_thread = Arc::clone(file);
    // The parser runs on its own thread, whose stack is large enough for deeply nested expressions.
    let thread = thread::Builder::new().stack_size((1 << 24) + file.text.len() * STACK_BYTES);
    let result = thread.spawn(move || document(&of_thread)).ok().and_then(|thread| thread.join().ok());
    let Some(result) = result else {
        return Err(rejected(0, "it could not be parsed", "Write the model as YAML."));
    };
    let (node, found) = match result {
        Ok(document) => document,
        Err(mistakes) => {
            let mut mistakes = mistakes.into_iter();
            let (offset, message) = mistakes.next().unwrap_or_default();
            let first = rejected(offset, &message, "Correct the file.");
            findings.extend(mistakes.map(|(offset, message)| *rejected(offset, &message, "Correct the file.")));
            return Err(first);
        }
    };
    findings.extend(found);
    node.ok_or_else(|| rejected(0, "it contains no call of cube() or view() at its top", "Write the model as YAML."))
}

/// Returns the byte offset of the first bracket that is nested too deeply.
fn deep_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.bytes().position(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > MAX_DEPTH
    })
}

/// The document of a file and the findings. The document is `None` if the file has no cube and no view.
type Parsed = (Option<Node>, Vec<Diagnostic>);

/// Parses a file of JavaScript. Nothing is executed.
///
/// # Errors
/// Returns the byte offset and the message of each syntax error. The parser can continue after some of them.
fn document(file: &Arc<SourceFile>) -> Result<Parsed, Vec<(usize, String)>> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &file.text, SourceType::mjs()).parse();
    let mistakes = parsed.diagnostics.iter().take(MAX_MISTAKES).map(|mistake| {
        let offset = mistake.labels.first().map_or(0, |label| label.offset());
        (offset as usize, mistake.message.to_string())
    });
    let mut mistakes: Vec<(usize, String)> = mistakes.collect();
    if !mistakes.is_empty() {
        mistakes.sort_by_key(|(offset, _)| *offset);
        return Err(mistakes);
    }
    let mut reader = Reader {
        file,
        objects: ObjectConstants::of(&parsed.program),
        constants: HashMap::new(),
        declared: HashSet::new(),
        findings: Vec::new(),
        cubes: Vec::new(),
        views: Vec::new(),
    };
    reader.program(&parsed.program);
    let Reader { cubes, views, findings, .. } = reader;
    if cubes.is_empty() && views.is_empty() && findings.is_empty() {
        return Ok((None, findings));
    }
    let list = |name: &str, items: Vec<Node>| {
        let origin = Origin::start_of(file);
        (Key { text: name.into(), origin: origin.clone() }, Node { origin, value: NodeValue::List(items) })
    };
    let value = NodeValue::Map(vec![list("cubes", cubes), list("views", views)]);
    Ok((Some(Node { origin: Origin::start_of(file), value }), findings))
}

struct Reader<'r, 'a> {
    file: &'r Arc<SourceFile>,
    objects: ObjectConstants<'r, 'a>,
    /// The strings and numbers that the top level of the file declares.
    constants: HashMap<String, String>,
    /// The names of variables that the top level of the file declares. Such a name is not a reference to a member.
    declared: HashSet<String>,
    findings: Vec<Diagnostic>,
    cubes: Vec<Node>,
    views: Vec<Node>,
}

impl<'r, 'a> Reader<'r, 'a> {
    fn program(&mut self, program: &Program<'a>) {
        for statement in &program.body {
            if let Some(declaration) = declaration(statement) {
                self.constants(declaration);
                continue;
            }
            match statement {
                Statement::ImportDeclaration(import) => {
                    let names = import.specifiers.iter().flatten().map(|specifier| specifier.local().name.to_string());
                    self.declared.extend(names);
                }
                // Uses of these declarations are reported where they occur.
                Statement::FunctionDeclaration(_)
                | Statement::ExportNamedDeclaration(_)
                | Statement::ExportDefaultDeclaration(_)
                | Statement::ExportAllDeclaration(_)
                | Statement::EmptyStatement(_) => {}
                Statement::ExpressionStatement(statement) => self.expression(&statement.expression),
                other => self.report_code(other.span()),
            }
        }
    }

    fn constants(&mut self, declaration: &VariableDeclaration<'_>) {
        for declarator in &declaration.declarations {
            self.declared.extend(declarator.id.get_binding_identifiers().iter().map(|name| name.name.to_string()));
            let (BindingPattern::BindingIdentifier(name), Some(value)) = (&declarator.id, &declarator.init) else {
                continue;
            };
            let value = match value.without_parentheses() {
                Expression::StringLiteral(text) => Some(text.value.to_string()),
                Expression::NumericLiteral(number) => Some(self.source(number.span).to_owned()),
                Expression::TemplateLiteral(text) if text.expressions.is_empty() => Some(self.template(text)),
                _ => None,
            };
            if let Some(value) = value.filter(|_| declaration.kind.is_const()) {
                self.constants.insert(name.name.to_string(), value);
            }
        }
    }

    /// Reads a statement at the top level of the file, which should be a call of `cube` or `view`.
    fn expression(&mut self, expression: &Expression<'a>) {
        match expression.without_parentheses() {
            Expression::CallExpression(call) => {
                let function = self.source(call.callee.span()).to_owned();
                match function.as_str() {
                    "cube" | "view" => self.call(call, &function),
                    _ => self.report_code(call.span),
                }
            }
            Expression::AssignmentExpression(assignment) => self.assignment(assignment),
            other => self.report_code(other.span()),
        }
    }

    /// Reports an assignment, unless it exports something, such as `module.exports = …`.
    fn assignment(&mut self, assignment: &AssignmentExpression<'_>) {
        if !is_export(&self.file.text, assignment.left.span()) {
            self.report_code(assignment.span);
        }
    }

    fn report_code(&mut self, span: Span) {
        let what = format!("code is not executed, and cubes that it makes are not imported: {}", self.shown(span));
        self.findings.push(left_out(self.origin(span).span(), what, "Write these cubes as object literals."));
    }

    fn call(&mut self, call: &CallExpression<'a>, function: &str) {
        let name = call.arguments.first().and_then(Argument::as_expression).and_then(|name| self.plain_text(name));
        let body = call.arguments.get(1).and_then(Argument::as_expression).map(Expression::without_parentheses);
        let object = body.and_then(|body| self.object(body));
        let (Some(name), Some(object)) = (name, object) else {
            let what = format!("a {function} is not imported: its name or its body is computed");
            let cure = "Write a name and an object literal.";
            self.findings.push(left_out(self.origin(call.span).span(), what, cure));
            return;
        };
        let origin = self.origin(call.arguments[0].span());
        let spread = if function == "cube" { Spread::ClosesCube } else { Spread::ClosesView };
        let node = self.item(&name, &origin, object, spread);
        match function {
            "cube" => self.cubes.push(node),
            _ => self.views.push(node),
        }
    }

    /// Returns the object literal that an expression is or names.
    fn object<'e>(&self, expression: &'e Expression<'a>) -> Option<&'e ObjectExpression<'a>>
    where
        'r: 'e,
    {
        match expression.without_parentheses() {
            Expression::ObjectExpression(object) => Some(object),
            other => self.objects.resolve(other),
        }
    }

    /// Returns a mapping with the key `name` and the properties of an object literal.
    fn item(&mut self, name: &str, origin: &Origin, object: &ObjectExpression<'a>, spread: Spread) -> Node {
        let mut entries = vec![(self.key("name", origin), text_node(name, origin))];
        entries.extend(self.entries(object, spread));
        Node { origin: origin.clone(), value: NodeValue::Map(entries) }
    }

    /// Reads the properties of an object literal.
    fn entries(&mut self, object: &ObjectExpression<'a>, spread: Spread) -> Vec<(Key, Node)> {
        let mut entries = Vec::new();
        self.add_entries(object, spread, &mut entries);
        entries
    }

    /// Adds the properties of an object literal to the properties before it, of which it may replace some.
    fn add_entries(&mut self, object: &ObjectExpression<'a>, spread: Spread, entries: &mut Vec<(Key, Node)>) {
        for property in &object.properties {
            let property = match property {
                ObjectPropertyKind::ObjectProperty(property) => property,
                ObjectPropertyKind::SpreadProperty(property) => {
                    self.spread_entries(Some(&property.argument), property.span, spread, entries);
                    continue;
                }
            };
            let origin = self.origin(property.key.span());
            let Some(name) = self.name(&property.key, property.computed) else {
                let what = format!("`{}` is not imported: its name is computed", self.shown(property.key.span()));
                self.findings.push(left_out(origin.span(), what, "Write its name."));
                replace_unknown(entries, spread, &self.computed(property.key.span()));
                continue;
            };
            let snaked = snake(&name);
            let renamed = RENAMED.iter().find(|(old, _)| *old == snaked).map(|(_, new)| *new);
            let value = match property.kind {
                oxc_ast::ast::PropertyKind::Init => self.value(renamed.unwrap_or(&snaked), &property.value),
                _ => self.computed(property.span),
            };
            // If several properties have one name, JavaScript uses the last one.
            entries.retain(|(key, _)| *key.text != *renamed.unwrap_or(&name));
            entries.push((Key { text: renamed.unwrap_or(&name).into(), origin }, value));
        }
    }

    /// Adds the properties of a spread object. If the object is unknown, reports it and changes what it may replace.
    fn spread_entries(
        &mut self,
        object: Option<&Expression<'a>>,
        span: Span,
        spread: Spread,
        entries: &mut Vec<(Key, Node)>,
    ) {
        if let Some(object) = object.and_then(|object| self.object(object)) {
            return self.add_entries(object, spread, entries);
        }
        let what = format!("`{}` is computed and not imported", self.shown(span));
        self.findings.push(left_out(self.origin(span).span(), what, "Write the properties that it adds."));
        replace_unknown(entries, spread, &self.computed(span));
    }

    /// Returns the name of a property. A computed name such as `['public']` is known if it is a constant string.
    fn name(&self, key: &PropertyKey<'_>, is_computed: bool) -> Option<String> {
        match is_computed {
            false => key.static_name().map(|name| name.to_string()),
            true => key.as_expression().and_then(|expression| self.plain_text(expression)),
        }
    }

    /// Converts the value of a key.
    fn value(&mut self, key: &str, expression: &Expression<'a>) -> Node {
        let expression = expression.without_parentheses();
        let origin = self.origin(expression.span());
        if let Some(text) = self.plain_text(expression) {
            return text_node(&text, &origin);
        }
        if let Some(object) = self.object(expression) {
            return Node { origin, value: self.object_value(key, object) };
        }
        if let Some(objects) = assigned_objects(expression) {
            return Node { origin, value: self.assigned_value(key, objects) };
        }
        let value = match expression {
            Expression::TemplateLiteral(template) => return text_node(&self.template(template), &origin),
            Expression::BooleanLiteral(literal) => NodeValue::Scalar {
                text: if literal.value { "true" } else { "false" }.into(),
                plain: Plain::Boolean(literal.value),
            },
            Expression::NumericLiteral(literal) => number(self.source(literal.span)),
            Expression::NullLiteral(_) => NodeValue::Null,
            Expression::ArrayExpression(array) => {
                let items = array.elements.iter().map(|element| match element.as_expression() {
                    Some(expression) => self.element(key, expression),
                    None => self.computed(element.span()),
                });
                NodeValue::List(items.collect())
            }
            Expression::ArrowFunctionExpression(function) => match function.body.as_expression() {
                Some(body) => return self.value(key, body),
                None => return self.computed(expression.span()),
            },
            Expression::Identifier(name) if name.name == "undefined" => NodeValue::Null,
            // A single value of `excludes` is the name of a list, whose value is unknown.
            Expression::Identifier(_) | Expression::StaticMemberExpression(_)
                if REFERENCES.contains(&key) && key != EXCLUDES =>
            {
                return self.path(expression.span());
            }
            _ => return self.computed(expression.span()),
        };
        Node { origin, value }
    }

    /// Converts an object literal that is the value of a key.
    fn object_value(&mut self, key: &str, object: &ObjectExpression<'a>) -> NodeValue {
        match key {
            _ if COLLECTIONS.contains(&key) => NodeValue::List(self.collection(key, object)),
            "cubes" => NodeValue::Map(self.entries(object, Spread::ClosesPart)),
            _ => NodeValue::Map(self.entries(object, Spread::Replaces)),
        }
    }

    /// Converts a call of `Object.assign`, which means the same as a literal that spreads its arguments.
    fn assigned_value(&mut self, key: &str, objects: &[Argument<'a>]) -> NodeValue {
        if COLLECTIONS.contains(&key) {
            let spread = spread_of_items(key);
            let mut items = Vec::new();
            for object in objects {
                self.spread_items(object.as_expression(), object.span(), spread, &mut items);
            }
            return NodeValue::List(items);
        }
        let spread = if key == "cubes" { Spread::ClosesPart } else { Spread::Replaces };
        let mut entries = Vec::new();
        for object in objects {
            self.spread_entries(object.as_expression(), object.span(), spread, &mut entries);
        }
        NodeValue::Map(entries)
    }

    /// Converts an item of an array.
    fn element(&mut self, key: &str, expression: &Expression<'a>) -> Node {
        match expression.without_parentheses() {
            Expression::Identifier(name)
                if key == EXCLUDES
                    && !self.declared.contains(name.name.as_str())
                    && !self.constants.contains_key(name.name.as_str()) =>
            {
                self.path(expression.span())
            }
            _ => self.value(key, expression),
        }
    }

    /// Converts an object such as `{count: {…}}` to a list of mappings, each with its key as `name`. An item of the
    /// list that is not a mapping stands for a property that is not imported, and may replace an inherited item.
    fn collection(&mut self, key: &str, object: &ObjectExpression<'a>) -> Vec<Node> {
        let mut items = Vec::new();
        self.add_items(object, spread_of_items(key), &mut items);
        items
    }

    /// Adds the items of a spread object. If the object is unknown, reports it and changes what it may replace.
    fn spread_items(&mut self, object: Option<&Expression<'a>>, span: Span, spread: Spread, items: &mut Vec<Node>) {
        if let Some(object) = object.and_then(|object| self.object(object)) {
            return self.add_items(object, spread, items);
        }
        let what = format!("`{}` is computed and not imported", self.shown(span));
        self.findings.push(left_out(self.origin(span).span(), what, "Write the members that it adds."));
        replace_unknown_items(items, spread, self.computed(span));
    }

    /// Adds the items of an object to the items before it, of which it may replace some.
    fn add_items(&mut self, object: &ObjectExpression<'a>, spread: Spread, items: &mut Vec<Node>) {
        for property in &object.properties {
            let property = match property {
                ObjectPropertyKind::ObjectProperty(property) => property,
                ObjectPropertyKind::SpreadProperty(property) => {
                    self.spread_items(Some(&property.argument), property.span, spread, items);
                    continue;
                }
            };
            let origin = self.origin(property.key.span());
            let name = self.name(&property.key, property.computed);
            if let (Some(name), Some(object)) = (&name, self.object(&property.value)) {
                items.retain(|item| name_of(item) != Some(name.as_str()));
                items.push(self.item(name, &origin, object, spread));
                continue;
            }
            let what = format!("`{}` is not imported: it is computed", self.shown(property.key.span()));
            self.findings.push(left_out(origin.span(), what, "Write its name and an object literal."));
            match name {
                Some(name) => {
                    items.retain(|item| name_of(item) != Some(name.as_str()));
                    let entries = vec![
                        (self.key("name", &origin), text_node(&name, &origin)),
                        (self.key(COMPUTED, &origin), self.computed(property.span)),
                    ];
                    items.push(Node { origin, value: NodeValue::Map(entries) });
                }
                None => replace_unknown_items(items, spread, self.computed(property.span)),
            }
        }
    }

    /// Returns the text of a string, of a constant, of a template string without expressions, or of strings and numbers
    /// that `+` joins.
    fn plain_text(&self, expression: &Expression<'_>) -> Option<String> {
        match expression.without_parentheses() {
            Expression::StringLiteral(text) => Some(text.value.to_string()),
            Expression::TemplateLiteral(text) if text.expressions.is_empty() => Some(self.template(text)),
            Expression::Identifier(name) => self.constants.get(name.name.as_str()).cloned(),
            Expression::BinaryExpression(sum) if sum.operator == BinaryOperator::Addition => self.joined(sum),
            _ => None,
        }
    }

    /// Returns the text of a sum with a string. A sum of numbers is not text.
    fn joined(&self, sum: &BinaryExpression<'_>) -> Option<String> {
        let part = |side: &Expression<'_>| match side.without_parentheses() {
            Expression::NumericLiteral(number) => {
                let digits = self.source(number.span);
                digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.to_owned())
            }
            Expression::Identifier(_) => None,
            side => self.plain_text(side),
        };
        let is_number = |side: &Expression<'_>| matches!(side.without_parentheses(), Expression::NumericLiteral(_));
        if is_number(&sum.left) && is_number(&sum.right) {
            return None;
        }
        Some(part(&sum.left)? + &part(&sum.right)?)
    }

    /// Returns the text of a template string. Its expressions become `${…}`, as in YAML; constants are replaced by
    /// their values.
    fn template(&self, template: &TemplateLiteral<'_>) -> String {
        let mut text = String::new();
        for (at, part) in template.quasis.iter().enumerate() {
            text.push_str(part.value.cooked.as_ref().unwrap_or(&part.value.raw).as_str());
            let Some(expression) = template.expressions.get(at) else { continue };
            match self.plain_text(expression) {
                Some(constant) => text.push_str(&constant),
                None => {
                    text.push_str("${");
                    text.push_str(self.source(expression.span()));
                    text.push('}');
                }
            }
        }
        text
    }

    /// Returns a reference such as `Orders.count` as text.
    fn path(&self, span: Span) -> Node {
        let text = self.source(span);
        match text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$')) {
            true => text_node(text, &self.origin(span)),
            false => self.computed(span),
        }
    }

    /// Returns the value for an expression that would have to be executed. It is a template, whose value counts as
    /// unknown.
    fn computed(&self, span: Span) -> Node {
        let text = self.shown(span).replace(['{', '}', '\n'], " ");
        text_node(&format!("{CODE}{text} }}}}"), &self.origin(span))
    }

    fn source(&self, span: Span) -> &str {
        self.file.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// Returns the beginning of the code at a place, for a message.
    fn shown(&self, span: Span) -> String {
        let line = self.source(span).lines().next().unwrap_or_default();
        let shown: String = line.chars().take(MAX_SHOWN).collect();
        if shown.len() < self.source(span).len() { format!("{shown}…") } else { shown }
    }

    fn origin(&self, span: Span) -> Origin {
        Origin::at(self.file, span.start as usize, 1)
    }

    fn key(&self, name: &str, origin: &Origin) -> Key {
        Key { text: name.into(), origin: origin.clone() }
    }
}

/// Returns the consequence of an item with an unknown name in a collection.
fn spread_of_items(key: &str) -> Spread {
    if MEMBERS.contains(&key) { Spread::ClosesMember } else { Spread::Replaces }
}

fn text_node(text: &str, origin: &Origin) -> Node {
    Node { origin: origin.clone(), value: NodeValue::Scalar { text: text.into(), plain: Plain::Text } }
}

fn number(text: &str) -> NodeValue {
    let plain = if text.contains(['.', 'e']) { Plain::Fraction } else { Plain::Integer };
    NodeValue::Scalar { text: text.into(), plain }
}
