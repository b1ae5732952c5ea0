//! The author's SQL of each item, and its place.
//!
//! In: definitions. Out: the SQL of an item, and the place where it refers to another item. It is used for messages,
//! because snippets do not contain their places.

use super::assemble::Skeleton;
use super::cycles::Item;
use super::inherit::Merged;
use super::{DimensionId, MeasureId, Model, SegmentId};
use crate::diagnostic::Span;
use crate::project::{Definitions, MetricBody, SqlText};

/// The SQL of every item, by cube and position.
pub(super) struct SourceText<'m, 'd> {
    cubes: Vec<&'m Merged<'d>>,
    definitions: &'d Definitions,
    joins: Vec<Vec<&'d SqlText>>,
}

impl<'m, 'd> SourceText<'m, 'd> {
    pub(super) fn new(skeleton: &Skeleton<'d>, merged: &'m [Merged<'d>], definitions: &'d Definitions) -> Self {
        SourceText {
            cubes: skeleton.texts.iter().map(|text| &merged[*text]).collect(),
            definitions,
            joins: skeleton.joins.iter().map(|joins| joins.iter().map(|join| &join.item.sql).collect()).collect(),
        }
    }

    /// Returns the SQL of an item, including a measure's filters.
    pub(super) fn texts(&self, item: Item) -> Vec<&'d SqlText> {
        match item {
            Item::Dimension(DimensionId { cube, index }) => {
                vec![&self.cubes[cube.0 as usize].dimensions[index as usize].item.sql]
            }
            Item::Measure(MeasureId { cube, index }) => {
                let measure = self.cubes[cube.0 as usize].measures[index as usize].item;
                measure.sql.iter().chain(&measure.filters).collect()
            }
            Item::Segment(SegmentId { cube, index }) => {
                vec![&self.cubes[cube.0 as usize].segments[index as usize].item.sql]
            }
            Item::Join(cube, index) => vec![self.joins[cube.0 as usize][index as usize]],
            Item::Metric(id) => match &self.definitions.metrics[id.0 as usize].body {
                MetricBody::Expression(sql) => vec![sql],
                MetricBody::Ratio { numerator, denominator } => vec![numerator, denominator],
            },
        }
    }

    /// Returns the span of an item's SQL, without surrounding white space.
    pub(super) fn whole(&self, item: Item) -> Option<Span> {
        let sql = *self.texts(item).first()?;
        Some(sql.locate(sql.text.len() - sql.text.trim_start().len(), sql.text.trim().chars().count()))
    }

    /// Returns the place where an item refers to another: the name without its braces.
    pub(super) fn reference(&self, model: &Model, from: Item, to: Item) -> Option<Span> {
        let full = super::cycles::name(model, to);
        let short = full.rsplit('.').next().unwrap_or(&full);
        let find = |sql: &SqlText, name: &str| {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
            let found = sql.text.match_indices(name).map(|(at, _)| at).find(|at| {
                let before = sql.text[..*at].chars().next_back();
                let after = sql.text[at + name.len()..].chars().next();
                let is_braced = matches!(before, Some('{')) || name == full || matches!(from, Item::Metric(_));
                is_braced && !before.is_some_and(is_part) && !after.is_some_and(is_part)
            })?;
            Some(sql.locate(found, name.chars().count()))
        };
        let texts = self.texts(from);
        texts.iter().find_map(|sql| find(sql, &full)).or_else(|| texts.iter().find_map(|sql| find(sql, short)))
    }
}
