//! A check that reports the number of missing values of each column.

use terrane_sdk::check::{
    Aggregate, Answer, Answers, Check, Column, Finding, Plan, Planner, QualityDimension, Severity,
};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The component.
pub struct Plugin;

impl Check for Plugin {
    const INFO: PluginInfo = PluginInfo::new("check-template", "0.1.0", "Template");

    fn make_plan(_: &CallContext, columns: &[Column]) -> Result<Plan, PluginError> {
        let mut planner = Planner::default();
        for column in 0..columns.len() {
            planner.ask(column, Aggregate::RowCount);
            planner.ask(column, Aggregate::NullCount);
        }
        Ok(planner.plan())
    }

    fn evaluate(context: &CallContext, columns: &[Column], answers: &[Answer]) -> Result<Vec<Finding>, PluginError> {
        let plan = Self::make_plan(context, columns)?;
        let answers = Answers::new(&plan, answers);
        let finding = |(at, column): (usize, &Column)| {
            let rows = answers.number(at, &Aggregate::RowCount)?;
            let nulls = answers.number(at, &Aggregate::NullCount)?;
            let message = format!("{nulls} of {rows} values of {} are missing", column.member);
            let finding = Finding::new(at, QualityDimension::Completeness, Severity::Medium, "missing", &message);
            (nulls > 0.0).then(|| finding.with_score(1.0 - nulls / rows))
        };
        Ok(columns.iter().enumerate().filter_map(finding).collect())
    }
}

terrane_sdk::export_check!(Plugin);

#[cfg(test)]
mod tests {
    use terrane_sdk::LogicalType;

    use super::*;

    #[test]
    fn missing_values_are_found() {
        let columns = [Column::for_tests("status", LogicalType::Text)];
        let answers = [Answer::for_tests(0, 8), Answer::for_tests(1, 2)];
        let found = Plugin::evaluate(&CallContext::for_tests(), &columns, &answers).unwrap();
        assert_eq!(found[0].score, Some(0.75));
    }

    #[test]
    fn manifest_matches_the_plugin() {
        terrane_sdk::manifest::check(Plugin::INFO, include_str!("../plugin.toml"));
    }
}
