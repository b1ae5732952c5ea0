//! The members that a request asks for.
//!
//! In: the restrictions of MDSCHEMA_MEMBERS. Out: the hierarchy to read, and those of its members that are asked for:
//! all, or those around one member. A request must name its hierarchy, because every other list needs a query for each.

use arrow::array::RecordBatch;
use terrane_compiler::sql::ResultColumn;
use terrane_wire::cells::TextCells;

use crate::fault::Fault;
use crate::request::Restriction;
use crate::rowset::Cell;
use crate::scope::{Hierarchy, MeasureRef, Member, Scope};

/// The most members of a list.
pub const MAX_MEMBERS: usize = 10_000;

const CUBE: &str = "CUBE_NAME";
const HIERARCHY: &str = "HIERARCHY_UNIQUE_NAME";
const DIMENSION: &str = "DIMENSION_UNIQUE_NAME";
const LEVEL: &str = "LEVEL_UNIQUE_NAME";
const MEMBER: &str = "MEMBER_UNIQUE_NAME";
const TREE_OPERATOR: &str = "TREE_OP";
/// The index of `LEVEL_NUMBER` and of `MEMBER_UNIQUE_NAME`.
const LEVEL_COLUMN: usize = 6;
const MEMBER_COLUMN: usize = 9;

/// The relations of the operator to the named member.
const CHILDREN: u32 = 0x01;
const SIBLINGS: u32 = 0x02;
const PARENT: u32 = 0x04;
const SELF: u32 = 0x08;
const DESCENDANTS: u32 = 0x10;
const ANCESTORS: u32 = 0x20;

/// A request for members of one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembersRequest {
    /// The unique name of the hierarchy, or of a part of it.
    name: String,
    /// The names of the cubes; empty for any.
    cubes: Vec<String>,
    /// The unique name of a member, and the relations of its result to it.
    around: Option<(String, u32)>,
}

impl MembersRequest {
    /// # Errors
    /// The request names no hierarchy.
    pub(super) fn of_hierarchy(name: Option<&str>) -> Result<Self, Fault> {
        let missing = "MDSCHEMA_MEMBERS needs a restriction of HIERARCHY_UNIQUE_NAME, LEVEL_UNIQUE_NAME or \
                       MEMBER_UNIQUE_NAME";
        let name = name.ok_or_else(|| Fault::argument(missing))?.to_owned();
        Ok(MembersRequest { name, cubes: Vec::new(), around: None })
    }

    /// Returns the hierarchy with the index of its cube among those of the scope.
    pub fn hierarchy(&self, scope: &Scope<'_>) -> Option<(usize, Hierarchy)> {
        let is_named = |hierarchy: &Hierarchy| {
            let unique = hierarchy.unique_name(scope).to_lowercase();
            let name = self.name.to_lowercase();
            let is_part = name.strip_prefix(&unique).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            // A dimension stands for its first hierarchy.
            is_part || hierarchy.dimension().unique_name(scope).to_lowercase() == name
        };
        let cubes = &self.cubes;
        let is_asked = |name: &str| cubes.is_empty() || cubes.iter().any(|cube| cube.eq_ignore_ascii_case(name));
        let mut asked = scope.cubes().iter().enumerate().filter(|(_, cube)| is_asked(&cube.name));
        asked.find_map(|(index, cube)| {
            let dimensions = scope.dimensions(cube).into_iter();
            let mut hierarchies = dimensions.flat_map(|dimension| scope.hierarchies(dimension));
            hierarchies.find(is_named).map(|hierarchy| (index, hierarchy))
        })
    }

    /// Returns whether a row is one of those around the named member.
    pub(super) fn includes(&self, scope: &Scope<'_>, cells: &[Cell<'_>]) -> bool {
        let Some((member, relations)) = &self.around else { return true };
        let (Cell::Integer(level), Cell::Text(name)) = (&cells[LEVEL_COLUMN], &cells[MEMBER_COLUMN]) else {
            return false;
        };
        let is_self = name.eq_ignore_ascii_case(member);
        // Measures have one level; others have the member above all, and its children.
        let has_top = scope.members.iter().any(|member| member.hierarchy != Hierarchy::Measures);
        let is_top = has_top && member.to_ascii_lowercase().ends_with(".[all]");
        let is_of = |relation: u32| relations & relation != 0;
        match (is_self, is_top) {
            (true, _) => is_of(SELF),
            (false, true) => *level > 0 && is_of(CHILDREN | DESCENDANTS),
            (false, false) if has_top && *level == 0 => is_of(PARENT | ANCESTORS),
            (false, false) => is_of(SIBLINGS),
        }
    }
}

/// Returns the request for members, and the restrictions that apply to rows. With an operator, the named member is not
/// a restriction of the rows.
pub(super) fn split(
    restrictions: &[Restriction],
    is_members: bool,
) -> Result<(Option<MembersRequest>, Vec<Restriction>), Fault> {
    if !is_members {
        return Ok((None, restrictions.to_vec()));
    }
    let value = |name: &str| {
        let found = restrictions.iter().find(|restriction| restriction.column.eq_ignore_ascii_case(name));
        found.and_then(|restriction| restriction.values.first())
    };
    let named = [MEMBER, LEVEL, HIERARCHY, DIMENSION].into_iter().find_map(value);
    let mut request = MembersRequest::of_hierarchy(named.map(String::as_str))?;
    let cubes = restrictions.iter().find(|restriction| restriction.column.eq_ignore_ascii_case(CUBE));
    request.cubes = cubes.map(|cubes| cubes.values.clone()).unwrap_or_default();
    let operator = value(TREE_OPERATOR).map(|operator| operator.parse().map_err(|_| operator)).transpose();
    let operator = operator.map_err(|found| Fault::argument(format!("TREE_OP is not an integer: `{found}`")))?;
    let mut rest = restrictions.to_vec();
    if let (Some(operator), Some(member)) = (operator, value(MEMBER)) {
        request.around = Some((member.clone(), operator));
        rest.retain(|restriction| !restriction.column.eq_ignore_ascii_case(MEMBER));
    }
    rest.retain(|restriction| !restriction.column.eq_ignore_ascii_case(TREE_OPERATOR));
    Ok((Some(request), rest))
}

/// Returns the members of a hierarchy, of whose attribute a query has read the values in order.
pub fn members(
    scope: &Scope<'_>,
    cube: usize,
    hierarchy: Hierarchy,
    values: Option<(&[ResultColumn], &[RecordBatch])>,
) -> Vec<Member> {
    if hierarchy == Hierarchy::Measures {
        let measures = scope.measures(scope.cubes()[cube]).into_iter().zip(0..);
        let name = |measure: MeasureRef| measure.name(scope).to_owned();
        let member = |(measure, ordinal)| Member {
            cube,
            hierarchy,
            level: 0,
            ordinal,
            caption: name(measure),
            key: Some(name(measure)),
            children: 0,
        };
        return measures.map(member).collect();
    }
    let texts = values.map(|(columns, batches)| texts(columns, batches)).unwrap_or_default();
    let top = Member {
        cube,
        hierarchy,
        level: 0,
        ordinal: 0,
        caption: "All".to_owned(),
        key: Some("All".to_owned()),
        children: texts.len() as u32,
    };
    let member = |(key, ordinal): (Option<String>, u32)| Member {
        cube,
        hierarchy,
        level: 1,
        ordinal,
        caption: key.clone().unwrap_or_default(),
        key,
        children: 0,
    };
    std::iter::once(top).chain(texts.into_iter().zip(1..).map(member)).collect()
}

/// Returns the values of the first column.
fn texts(columns: &[ResultColumn], batches: &[RecordBatch]) -> Vec<Option<String>> {
    let mut texts = Vec::new();
    for batch in batches {
        let mut cells = TextCells::new(columns, batch);
        for row in 0..batch.num_rows() {
            let mut text = Vec::new();
            let has_value = cells.write(row, 0, &mut text);
            texts.push(has_value.then(|| String::from_utf8_lossy(&text).into_owned()));
        }
    }
    texts
}
