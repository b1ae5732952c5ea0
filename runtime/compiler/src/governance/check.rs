//! Checks one hook's obligations against the model and the query, and merges those of all hooks.
//!
//! In: [`Obligations`]. Out: [`Checked`], or the fault of the hook; then [`MergedObligations`] for `Access`. An
//! obligation on a cube also applies to its aliases. If another cube reads the same table and the hook did not mention
//! it, this cube is closed, because it is unknown which of its rows the caller may see. A policy of the project has the
//! same effect.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::condition::{predicate, type_of};
use super::inspect::Inspection;
use super::{HookMask, MemberMask, Obligations};
use crate::access::MergedObligations;
use crate::model::{Cube, CubeId, DimensionId, DimensionType, Mask, Member, Model};
use crate::plan::fit;
use crate::query::Predicate;
use crate::types::{LogicalType, Value};

/// The largest number of levels of a condition.
pub const MAX_CONDITION_DEPTH: usize = 32;
/// The largest number of tests and connectives of a condition.
pub const MAX_CONDITION_NODES: usize = 512;

/// An error in a hook's obligations: a fault of the hook, not of the query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObligationFault {
    #[error("obligation refers to unknown cube `{cube}`")]
    UnknownCube { cube: Arc<str> },
    #[error("obligation refers to cube `{cube}`, which the query does not read")]
    NotRead { cube: Arc<str> },
    #[error("obligation refers to unknown member `{member}` of cube `{cube}`")]
    UnknownMember { cube: Arc<str>, member: Arc<str> },
    #[error("`{member}` of cube `{cube}` is not a dimension; only dimensions can be filtered by and masked")]
    NotADimension { cube: Arc<str>, member: Arc<str> },
    #[error("`{operator}` on `{member}`, a {expected:?}, has a value of the type {found:?}")]
    WrongType { member: Arc<str>, operator: &'static str, found: LogicalType, expected: LogicalType },
    #[error("`{operator}` on `{member}` takes {expected}, and has {found}")]
    ValueCount { member: Arc<str>, operator: &'static str, expected: &'static str, found: usize },
    #[error("a condition is nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    #[error("a condition has more than {limit} nodes")]
    TooLarge { limit: usize },
}

/// The obligations of one hook, with ids instead of names.
#[derive(Debug, Default)]
pub struct Checked {
    filters: HashMap<CubeId, Vec<Predicate>>,
    masks: HashMap<DimensionId, Mask>,
    denied: HashSet<Member>,
    closed: HashSet<CubeId>,
    max_rows: Option<u64>,
}

/// Merges the obligations of all hooks: filters are ANDed, the strictest mask and the lowest limit win.
pub(super) fn merged(all: Vec<(Arc<str>, Checked)>) -> MergedObligations {
    let mut merged = MergedObligations::default();
    for (hook, checked) in all {
        merged.hooks.push(hook);
        for (cube, filters) in checked.filters {
            merged.filters.entry(cube).or_default().extend(filters);
        }
        for (id, mask) in checked.masks {
            stricter(&mut merged.masks, id, mask);
        }
        merged.denied.extend(checked.denied);
        merged.closed.extend(checked.closed);
        merged.max_rows = [merged.max_rows, checked.max_rows].into_iter().flatten().min();
    }
    merged
}

fn stricter(masks: &mut HashMap<DimensionId, Mask>, id: DimensionId, mask: Mask) {
    match masks.get(&id) {
        Some(known) if known.strictness() >= mask.strictness() => {}
        _ => {
            masks.insert(id, mask);
        }
    }
}

/// Resolves the names of obligations, and checks the obligations against the query.
pub(super) fn check(inspection: &Inspection<'_>, obligations: &Obligations) -> Result<Checked, ObligationFault> {
    let model = inspection.model;
    let mut checked = Checked { max_rows: obligations.max_rows, ..Checked::default() };
    let (mut filtered, mut masked) = (HashSet::new(), HashSet::new());
    for filter in &obligations.row_filters {
        let cube = inspection.cube(&filter.cube)?;
        for id in cube.with_aliases(model) {
            match predicate(model.cube(id), &cube.name, &filter.condition) {
                Ok(predicate) => checked.filters.entry(id).or_default().push(predicate),
                Err(fault) => only_its_table(inspection, cube, &mut checked, fault)?,
            }
        }
        filtered.insert(cube.id);
    }
    for mask in &obligations.masks {
        let cube = inspection.cube(&mask.cube)?;
        for id in cube.with_aliases(model) {
            if let Err(fault) = add_mask(&mut checked, cube, model.cube(id), mask) {
                only_its_table(inspection, cube, &mut checked, fault)?;
            }
        }
        masked.insert(cube.id);
    }
    for origin in filtered.union(&masked) {
        // The hook must also filter or mask every other cube that shows the filtered rows or masked values of `origin`.
        let lacks_filter = |id: CubeId| filtered.contains(origin) && !filtered.contains(&id);
        // A masked column is covered in every cube that reads its table. The columns of a query are unknown, so a
        // cube over a query needs a mask of its own.
        let lacks_mask =
            |id: CubeId| masked.contains(origin) && !masked.contains(&id) && !model.has_rows_of(id, *origin);
        let readers = model.shared_rows(*origin).readers.iter().copied();
        checked.closed.extend(readers.filter(|id| lacks_filter(*id) || lacks_mask(*id)));
    }
    Ok(checked)
}

/// Closes the cube to the caller if a hook names a member that the cube lacks, and the query reads the cube's table
/// only through other cubes. If this were an error, anyone who defines a cube over a table could make the hook fail for
/// queries of other cubes.
///
/// # Errors
/// Returns the fault if the query reads the cube itself.
fn only_its_table(
    inspection: &Inspection<'_>,
    cube: &Cube,
    checked: &mut Checked,
    fault: ObligationFault,
) -> Result<(), ObligationFault> {
    if inspection.names(cube.id) || !matches!(fault, ObligationFault::UnknownMember { .. }) {
        return Err(fault);
    }
    checked.closed.insert(cube.id);
    Ok(())
}

fn add_mask(checked: &mut Checked, own: &Cube, cube: &Cube, wanted: &MemberMask) -> Result<(), ObligationFault> {
    let (name, member) = (own.name.clone(), wanted.member.clone());
    let Some(found) = cube.member(&wanted.member) else {
        return Err(ObligationFault::UnknownMember { cube: name, member });
    };
    let id = match (found, &wanted.mask) {
        (found, HookMask::DropColumn) => {
            checked.denied.insert(found);
            return Ok(());
        }
        (Member::Dimension(id), _) => id,
        _ => return Err(ObligationFault::NotADimension { cube: name, member }),
    };
    let dimension = &cube.dimensions[id.index as usize];
    let mask = match &wanted.mask {
        HookMask::Fixed(text) => fit(Value::Text(text.clone()), type_of(dimension)).map_or(Mask::Null, Mask::Constant),
        HookMask::Hash => Mask::Hash,
        HookMask::Partial => Mask::Partial,
        HookMask::TruncateDate(granularity) if dimension.ty == DimensionType::Time => Mask::Truncate(*granularity),
        HookMask::DropColumn | HookMask::Nullify | HookMask::TruncateDate(_) => Mask::Null,
    };
    stricter(&mut checked.masks, id, mask);
    Ok(())
}

impl Cube {
    /// Returns the cube and its aliases.
    fn with_aliases(&self, model: &Model) -> Vec<CubeId> {
        std::iter::once(self.id).chain(model.shared_rows(self.id).aliases.iter().copied()).collect()
    }
}
