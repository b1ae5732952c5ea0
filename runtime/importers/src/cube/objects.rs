//! Finds the object literals that constants of a JavaScript file hold.
//!
//! In: a parsed file. Out: for an expression such as `base` or `common.times`, the object literal of the constant that
//! it names. A constant counts only if the file cannot change its object: every other mention of its name is a spread,
//! a value or a part of a template in literals that the import reads. Objects that code may change stay unknown. Not
//! here: the meaning of properties.

use std::cell::Cell;
use std::collections::HashMap;

use oxc_ast::ast::{
    Argument, ArrayExpressionElement, BindingPattern, Declaration, Expression, ObjectExpression, ObjectPropertyKind,
    Program, PropertyKey, PropertyKind, Statement, VariableDeclaration,
};
use oxc_span::{GetSpan as _, Span};

/// The largest number of times that constants of one file are resolved. Constants that spread others may double the
/// number with each level.
const MAX_RESOLVED: usize = 2_000;

/// The constants of a file that hold object literals.
pub(super) struct ObjectConstants<'p, 'a> {
    objects: HashMap<&'p str, &'p ObjectExpression<'a>>,
    resolved: Cell<usize>,
}

impl<'p, 'a> ObjectConstants<'p, 'a> {
    pub(super) fn of(program: &'p Program<'a>) -> Self {
        let mut objects = HashMap::new();
        let mut mentions = Mentions { harmless: program.comments.iter().map(|comment| comment.span).collect() };
        for statement in &program.body {
            mentions.statement(program.source_text, statement);
            let Some(declaration) = declaration(statement).filter(|declaration| declaration.kind.is_const()) else {
                continue;
            };
            for declarator in &declaration.declarations {
                let (BindingPattern::BindingIdentifier(name), Some(value)) = (&declarator.id, &declarator.init) else {
                    continue;
                };
                if let Expression::ObjectExpression(object) = value.without_parentheses() {
                    objects.insert(name.name.as_str(), &**object);
                }
            }
        }
        mentions.harmless.sort_by_key(|span| span.start);
        let words: Vec<_> = words(program.source_text).filter(|(_, word)| objects.contains_key(word)).collect();
        let harmful = words.iter().filter(|(start, _)| !mentions.is_harmless(*start));
        remove_changed(&mut objects, &words, harmful.map(|(_, word)| *word).collect());
        ObjectConstants { objects, resolved: Cell::new(0) }
    }

    /// Returns the object literal that an expression names. An object may name only constants that are declared before
    /// it, so no constant contains itself.
    pub(super) fn resolve(&self, expression: &Expression<'_>) -> Option<&'p ObjectExpression<'a>> {
        let (declared, object) = self.find(expression)?;
        let count = self.resolved.get() + 1;
        self.resolved.set(count);
        (declared.end <= expression.span().start && count <= MAX_RESOLVED).then_some(object)
    }

    /// Returns the object that an expression names, and the place of the constant's literal that contains it.
    fn find(&self, expression: &Expression<'_>) -> Option<(Span, &'p ObjectExpression<'a>)> {
        match expression.without_parentheses() {
            Expression::Identifier(name) => self.objects.get(name.name.as_str()).map(|object| (object.span, *object)),
            Expression::StaticMemberExpression(member) if !member.optional => {
                let (declared, object) = self.find(&member.object)?;
                match only_value(object, member.property.name.as_str())?.without_parentheses() {
                    Expression::ObjectExpression(object) => Some((declared, &**object)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Removes the constants that code may change, and those that their objects contain, which can be changed through them.
fn remove_changed<'p>(
    objects: &mut HashMap<&'p str, &ObjectExpression<'_>>,
    words: &[(u32, &'p str)],
    mut changed: Vec<&'p str>,
) {
    while let Some(name) = changed.pop() {
        let Some(object) = objects.remove(name) else { continue };
        let within = |start: &u32| object.span.start <= *start && *start < object.span.end;
        changed.extend(words.iter().filter(|(start, _)| within(start)).map(|(_, word)| *word));
    }
}

/// Returns the value of a property, unless another property may replace it.
fn only_value<'p, 'a>(object: &'p ObjectExpression<'a>, name: &str) -> Option<&'p Expression<'a>> {
    let mut found = None;
    for property in &object.properties {
        let ObjectPropertyKind::ObjectProperty(property) = property else { return None };
        if property.kind != PropertyKind::Init {
            return None;
        }
        if property.key.static_name()? == name && found.replace(&property.value).is_some() {
            return None;
        }
    }
    found
}

/// Returns the variables that a statement declares.
pub(super) fn declaration<'p, 'a>(statement: &'p Statement<'a>) -> Option<&'p VariableDeclaration<'a>> {
    match statement {
        Statement::VariableDeclaration(declaration) => Some(declaration),
        Statement::ExportDeclaration(export) => match &export.declaration {
            Declaration::VariableDeclaration(declaration) => Some(declaration),
            _ => None,
        },
        _ => None,
    }
}

/// The places where the name of a constant cannot change its object.
struct Mentions {
    harmless: Vec<Span>,
}

impl Mentions {
    /// Returns whether a byte offset is in a harmless place. The places are sorted and do not overlap.
    fn is_harmless(&self, offset: u32) -> bool {
        let after = self.harmless.partition_point(|span| span.start <= offset);
        after.checked_sub(1).is_some_and(|last| offset < self.harmless[last].end)
    }

    fn statement(&mut self, source: &str, statement: &Statement<'_>) {
        if let Some(declaration) = declaration(statement) {
            for declarator in &declaration.declarations {
                let BindingPattern::BindingIdentifier(name) = &declarator.id else { continue };
                self.harmless.push(name.span);
                // Another name of an object, or a variable with it, may be used to change it.
                if let (true, Some(value)) = (declaration.kind.is_const(), &declarator.init)
                    && let Expression::ObjectExpression(_) | Expression::StringLiteral(_) = value.without_parentheses()
                {
                    self.literal(value);
                }
            }
            return;
        }
        let Statement::ExpressionStatement(statement) = statement else { return };
        match statement.expression.without_parentheses() {
            Expression::CallExpression(call) => {
                let is_model = matches!(&call.callee, Expression::Identifier(name) if ["cube", "view"].contains(&name.name.as_str()));
                let arguments =
                    call.arguments.iter().filter(|_| is_model).filter_map(|argument| argument.as_expression());
                arguments.for_each(|argument| self.literal(argument));
            }
            Expression::AssignmentExpression(assignment) if is_export(source, assignment.left.span()) => {
                self.literal(&assignment.right);
            }
            _ => {}
        }
    }

    /// Adds the places of an expression that only reads.
    fn literal(&mut self, expression: &Expression<'_>) {
        match expression.without_parentheses() {
            Expression::Identifier(name) => self.harmless.push(name.span),
            Expression::StringLiteral(text) => self.harmless.push(text.span),
            Expression::StaticMemberExpression(member) => {
                self.literal(&member.object);
                self.harmless.push(member.property.span);
            }
            Expression::TemplateLiteral(template) => {
                self.harmless.extend(template.quasis.iter().map(|part| part.span));
                template.expressions.iter().for_each(|part| self.literal(part));
            }
            Expression::BinaryExpression(binary) => {
                self.literal(&binary.left);
                self.literal(&binary.right);
            }
            Expression::ArrayExpression(array) => array.elements.iter().for_each(|element| match element {
                ArrayExpressionElement::SpreadElement(spread) => self.literal(&spread.argument),
                element => element.as_expression().into_iter().for_each(|item| self.literal(item)),
            }),
            Expression::ObjectExpression(object) => {
                object.properties.iter().for_each(|property| self.property(property));
            }
            Expression::ArrowFunctionExpression(function) => {
                function.body.as_expression().into_iter().for_each(|body| self.literal(body));
            }
            call => assigned_objects(call).into_iter().flatten().for_each(|object| {
                object.as_expression().into_iter().for_each(|object| self.literal(object));
            }),
        }
    }

    fn property(&mut self, property: &ObjectPropertyKind<'_>) {
        match property {
            ObjectPropertyKind::SpreadProperty(spread) => self.literal(&spread.argument),
            ObjectPropertyKind::ObjectProperty(property) => {
                match &property.key {
                    // The key of a shorthand is also its value.
                    PropertyKey::StaticIdentifier(_) if property.shorthand => {}
                    PropertyKey::StaticIdentifier(name) => self.harmless.push(name.span),
                    key => key.as_expression().into_iter().for_each(|key| self.literal(key)),
                }
                if property.kind == PropertyKind::Init {
                    self.literal(&property.value);
                }
            }
        }
    }
}

/// Returns the arguments of `Object.assign({…}, …)`, whose first one is a new object.
pub(super) fn assigned_objects<'e, 'a>(expression: &'e Expression<'a>) -> Option<&'e [Argument<'a>]> {
    let Expression::CallExpression(call) = expression.without_parentheses() else { return None };
    let Expression::StaticMemberExpression(callee) = &call.callee else { return None };
    let is_object = matches!(&callee.object, Expression::Identifier(name) if name.name == "Object");
    let is_assign = is_object && callee.property.name == "assign" && !call.optional;
    let first = call.arguments.first()?.as_expression()?.without_parentheses();
    (is_assign && matches!(first, Expression::ObjectExpression(_))).then(|| call.arguments.as_slice())
}

/// Returns whether the target of an assignment exports its value, as in `module.exports = …`.
pub(super) fn is_export(source: &str, target: Span) -> bool {
    let target = source.get(target.start as usize..target.end as usize).unwrap_or_default();
    target == "module.exports" || target.starts_with("module.exports.") || target.starts_with("exports.")
}

/// Returns the words of a source with their byte offsets.
fn words(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut at = 0;
    text.split_inclusive(move |c: char| !is_word(c)).filter_map(move |piece| {
        let start = at;
        at += piece.len();
        let word = piece.trim_end_matches(|c: char| !is_word(c));
        (!word.is_empty()).then_some((u32::try_from(start).ok()?, word))
    })
}
