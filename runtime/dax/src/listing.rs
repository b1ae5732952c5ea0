//! The model as DAX clients see it: tables with typed columns and measures.
//!
//! In: the members that a caller may see. Out: the tables and members that metadata lists. Hidden members are not
//! listed, although queries can name them.

use terrane_compiler::Access;
use terrane_compiler::model::{Cube, DimensionId, MeasureId, MetricId, Model};

use crate::names::{Names, TableMember};
use crate::types::Type;

/// A table with the members that metadata lists.
#[derive(Debug)]
pub struct Listing<'m> {
    pub cube: &'m Cube,
    pub columns: Vec<(DimensionId, Type)>,
    pub measures: Vec<(MeasureId, Type)>,
}

/// Returns the tables that metadata lists for a caller, in the order of the model.
pub fn tables<'m>(access: &'m Access<'m>) -> Vec<Listing<'m>> {
    let names = Names::new(access);
    names.tables().map(|cube| listing(&names, cube)).collect()
}

/// Returns the metrics that metadata lists for a caller.
pub fn metrics(access: &Access<'_>) -> Vec<MetricId> {
    Names::new(access).listed_metrics().collect()
}

fn listing<'m>(names: &Names<'m>, cube: &'m Cube) -> Listing<'m> {
    let model: &Model = names.model();
    let (mut columns, mut measures) = (Vec::new(), Vec::new());
    for (_, member) in names.members(cube).filter(|(_, member)| names.is_listed(*member)) {
        match member {
            TableMember::Column(id) => columns.push((id, Type::of_dimension(model.dimension(id)))),
            TableMember::Measure(id) => measures.push((id, Type::of_measure(&model.measure(id).kind))),
        }
    }
    Listing { cube, columns, measures }
}
