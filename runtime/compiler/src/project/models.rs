//! Reads SQL model files in dependency order.
//!
//! In: `*.sql` below the models' folder. Out: [`ModelDefinition`]s, each after the models that it refers to. Models of
//! a cycle are reported with the cycle's path and returned separately. Not here: building models.

use std::collections::HashMap;
use std::sync::Arc;

use super::definitions::ModelDefinition;
use super::fields::{is_snake_case, snake_case};
use super::jinja::Renderer;
use super::settings::Settings;
use crate::diagnostic::{Code, Diagnostic, Step, cycle_path};
use crate::text::{Origin, SourceFile, Text};

/// The largest size of a model's file. Larger files are not read.
const MAX_MODEL_BYTES: usize = 256 * 1024;

/// Returns the names of the models, which are the stems of their files, each with the place of the file's first
/// character.
pub(super) fn names(files: &[Arc<SourceFile>], diagnostics: &mut Vec<Diagnostic>) -> Vec<Text> {
    let mut names: Vec<Text> = Vec::new();
    let mut seen: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    for file in files {
        let stem = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".sql");
        let name = Text { value: stem.into(), origin: Origin::start_of(file) };
        if !is_snake_case(stem) {
            diagnostics.push(
                Diagnostic::error(Code::InvalidName, format!("the model `{stem}` is not snake_case"))
                    .hint(match snake_case(stem) {
                        Some(better) => format!("Rename the file to {better}.sql."),
                        None => "Rename the file, with lower-case letters, digits and `_` only.".to_owned(),
                    })
                    .at(name.span()),
            );
        } else if let Some(first) = seen.get(stem) {
            diagnostics.push(
                Diagnostic::error(Code::DuplicateName, format!("duplicate model `{stem}`"))
                    .hint(format!("Rename one of the files. The other one is {first}."))
                    .at(name.span()),
            );
        } else if file.text.len() > MAX_MODEL_BYTES {
            diagnostics.push(
                Diagnostic::error(Code::FileTooLarge, format!("the model has {} bytes", file.text.len()))
                    .hint("Split it. A model may have at most 256 KiB.")
                    .at(name.span()),
            );
        } else {
            seen.insert(Arc::clone(&name.value), Arc::clone(&file.path));
            names.push(name);
        }
    }
    names
}

/// Renders every model. Also returns the names of models that cannot be read.
pub(super) fn read(
    names: &[Text],
    settings: &Settings,
    renderer: &Renderer,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<ModelDefinition>, Vec<Text>) {
    let (mut models, mut broken) = (Vec::with_capacity(names.len()), Vec::new());
    for name in names {
        match model(name, settings, renderer, diagnostics) {
            Some(model) => models.push(model),
            None => broken.push(name.clone()),
        }
    }
    (models, broken)
}

fn model(
    name: &Text,
    settings: &Settings,
    renderer: &Renderer,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ModelDefinition> {
    let text = Text { value: Arc::clone(&name.origin.file.text), origin: name.origin.clone() };
    let rendered = renderer.model(&text, diagnostics)?;
    Some(ModelDefinition {
        name: name.clone(),
        sql: rendered.sql,
        materialization: rendered.materialization.unwrap_or(settings.materialization),
        schema: rendered.schema.or_else(|| settings.schema.clone()),
        refs: rendered.refs,
        sources: rendered.sources,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    New,
    Open,
    Done,
    InCycle,
}

/// Returns the models in dependency order, and those of cycles. The search is not recursive, because a chain of models
/// may be as long as the project is large.
pub(super) fn in_order(
    models: Vec<ModelDefinition>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<ModelDefinition>, Vec<ModelDefinition>) {
    let index: HashMap<Arc<str>, usize> =
        models.iter().enumerate().map(|(at, model)| (Arc::clone(&model.name.value), at)).collect();
    let mut state = vec![Visit::New; models.len()];
    let mut order = Vec::with_capacity(models.len());
    for start in 0..models.len() {
        let mut stack = vec![(start, 0)];
        while let Some((at, next)) = stack.pop() {
            if next == 0 && state[at] != Visit::New {
                continue;
            }
            state[at] = if state[at] == Visit::New { Visit::Open } else { state[at] };
            let Some(reference) = models[at].refs.get(next) else {
                if state[at] == Visit::Open {
                    state[at] = Visit::Done;
                    order.push(at);
                }
                continue;
            };
            stack.push((at, next + 1));
            let Some(&target) = index.get(&reference.name) else { continue };
            match state[target] {
                Visit::New => stack.push((target, 0)),
                Visit::Open => {
                    let from = stack.iter().position(|(open, _)| *open == target).unwrap_or(0);
                    let path: Vec<Step> = stack[from..]
                        .iter()
                        // The stack contains the index of the next reference; the current reference is the previous
                        // one.
                        .map(|(open, next)| Step {
                            name: Arc::clone(&models[*open].name.value),
                            span: models[*open].refs.get(next - 1).map(|reference| reference.span.clone()),
                        })
                        .collect();
                    let hint = if path.len() == 1 {
                        "Refer to the table that it reads, as in `source('source', 'table')`."
                    } else {
                        "Remove one of these calls of `ref`, or move the common part into a third model."
                    };
                    diagnostics.push(
                        Diagnostic::error(
                            Code::ModelCycle,
                            format!("models refer to one another in a cycle: {}", cycle_path(&path)),
                        )
                        .hint(hint)
                        .along(path)
                        .at(reference.span.clone()),
                    );
                    for (open, _) in &stack[from..] {
                        state[*open] = Visit::InCycle;
                    }
                }
                Visit::Done | Visit::InCycle => {}
            }
        }
    }
    let mut slots: Vec<Option<ModelDefinition>> = models.into_iter().map(Some).collect();
    let ordered = order.into_iter().filter_map(|at| slots[at].take()).collect();
    (ordered, slots.into_iter().flatten().collect())
}
