//! Imports a model and compiles the project.
//!
//! In: model files as text. Out: the access that an anonymous caller has in the compiled project, the files of the
//! project, and the findings.

use std::fs;
use std::sync::Arc;

use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::model::{self, Model};
use terrane_compiler::project::{self, Inputs, SourceTree};
use terrane_compiler::{Access, SecurityContext};
use terrane_importers::{Format, ImportReport, import};

/// An imported model with its compiled project.
pub(crate) struct Imported {
    pub(crate) report: ImportReport,
    pub(crate) model: Model,
}

impl Imported {
    pub(crate) fn of(format: Format, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let report = import(format, folder.path(), "duckdb").unwrap();
        let texts = report.files.iter().map(|(path, text)| (Arc::from(path.as_str()), Arc::from(text.as_str())));
        let mut tree = SourceTree { files: texts.collect() };
        tree.files.insert("service_project.yml".into(), "name: imported\n".into());
        let variables = ["A", "B"].map(|name| (format!("TERRANE_VAR_{name}"), "shop".to_owned()));
        let inputs = Inputs { warehouse: "duckdb".into(), env: variables.into(), ..Inputs::default() };
        let (definitions, mut problems) = project::read(&tree, &inputs);
        let (model, found) = model::build(&definitions);
        problems.extend(found);
        let errors: Vec<String> = problems.iter().filter(|p| p.is_error()).map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{errors:#?}\n{:#?}", report.files);
        Imported { report, model }
    }

    /// Returns true if a query of an anonymous caller may name the member.
    pub(crate) fn can_name(&self, member: &str) -> bool {
        let caller = SecurityContext::default();
        let access = Access::of(&self.model, &caller);
        let (cube, member) = member.split_once('.').unwrap();
        let cube = self.model.cube_named(cube).filter(|cube| cube.public && !access.is_closed(cube));
        cube.and_then(|cube| cube.member(member)).is_some_and(|member| access.can_name(member))
    }

    pub(crate) fn has(&self, member: &str) -> bool {
        let (cube, member) = member.split_once('.').unwrap();
        self.model.cube_named(cube).is_some_and(|cube| cube.member(member).is_some())
    }

    pub(crate) fn has_metric(&self, metric: &str) -> bool {
        self.model.metrics.iter().any(|known| &*known.name == metric)
    }

    /// Returns true if a row filter hides all rows of the cube.
    pub(crate) fn is_filtered(&self, cube: &str) -> bool {
        let caller = SecurityContext::default();
        let access = Access::of(&self.model, &caller);
        let cube = self.model.cube_named(cube).unwrap();
        access.is_closed(cube) || access.row_filters(cube.id).next().is_some()
    }

    /// Returns the text of a file of the project.
    pub(crate) fn file(&self, path: &str) -> &str {
        self.report.files.iter().find(|(known, _)| known == path).map(|(_, text)| text.as_str()).unwrap()
    }

    pub(crate) fn findings(&self, file: &str, line: u32) -> Vec<&Diagnostic> {
        let is_at = |f: &&Diagnostic| f.span.as_ref().is_some_and(|span| span.line == line && &*span.file == file);
        self.report.findings.iter().filter(is_at).collect()
    }

    pub(crate) fn codes(&self, file: &str, line: u32) -> Vec<Code> {
        self.findings(file, line).iter().map(|finding| finding.code).collect()
    }

    pub(crate) fn messages(&self, file: &str, line: u32) -> Vec<String> {
        self.findings(file, line).iter().map(|finding| finding.message.clone()).collect()
    }

    /// Returns the findings at a line of the model's only file.
    pub(crate) fn findings_at(&self, line: u32) -> Vec<&Diagnostic> {
        self.report.findings.iter().filter(|f| f.span.as_ref().is_some_and(|span| span.line == line)).collect()
    }

    pub(crate) fn codes_at(&self, line: u32) -> Vec<Code> {
        self.findings_at(line).iter().map(|finding| finding.code).collect()
    }
}
