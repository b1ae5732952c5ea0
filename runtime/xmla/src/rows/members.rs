//! Selects the members of a hierarchy that a request needs.
//!
//! In: the restrictions of MDSCHEMA_MEMBERS. Out: the hierarchy to read, and the selected members: all, or those
//! related to one member. A request must name its hierarchy, because a list of several hierarchies would need a query
//! for each.

use std::sync::OnceLock;

use arrow::array::RecordBatch;
use terrane_compiler::sql::ResultColumn;
use terrane_compiler::types::Granularity;
use terrane_wire::cells::TextCells;

use crate::fault::Fault;
use crate::request::Restriction;
use crate::rowset::{Cell, is_same_member};
use crate::rowsets::unique_name;
use crate::scope::{Hierarchy, Level, MeasureRef, Member, VisibleProject};

/// The largest number of members in a result.
pub const MAX_MEMBERS: usize = 10_000;

const CUBE: &str = "CUBE_NAME";
const HIERARCHY: &str = "HIERARCHY_UNIQUE_NAME";
const DIMENSION: &str = "DIMENSION_UNIQUE_NAME";
const LEVEL: &str = "LEVEL_UNIQUE_NAME";
const MEMBER: &str = "MEMBER_UNIQUE_NAME";
const TREE_OPERATOR: &str = "TREE_OP";
/// The index of the column `MEMBER_ORDINAL`.
const ORDINAL_COLUMN: usize = 7;

/// The bits of the tree operator. Each bit selects the members in one relation to the named member.
const CHILDREN: u32 = 0x01;
const SIBLINGS: u32 = 0x02;
const PARENT: u32 = 0x04;
const SELF: u32 = 0x08;
const DESCENDANTS: u32 = 0x10;
const ANCESTORS: u32 = 0x20;

/// A request for members of one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembersRequest {
    /// The unique name of the hierarchy or of one of its parts.
    name: String,
    /// The names of the cubes. If empty, any cube.
    cubes: Vec<String>,
    around: Option<Around>,
}

/// The selection of members that are related to one member.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Around {
    /// The unique name of the member.
    member: String,
    /// The relations to select, as bits of the tree operator.
    relations: u32,
    /// The index of the member, after it was looked up.
    index: OnceLock<Option<u32>>,
}

impl MembersRequest {
    /// Creates a request for the members of the hierarchy with this name.
    ///
    /// # Errors
    /// The request names no hierarchy.
    pub(super) fn of_hierarchy(name: Option<&str>) -> Result<Self, Fault> {
        let missing = "MDSCHEMA_MEMBERS needs a restriction of HIERARCHY_UNIQUE_NAME, LEVEL_UNIQUE_NAME or \
                       MEMBER_UNIQUE_NAME";
        let name = name.ok_or_else(|| Fault::argument(missing))?.to_owned();
        Ok(MembersRequest { name, cubes: Vec::new(), around: None })
    }

    /// Returns the named hierarchy, with the index of its cube in the scope.
    pub fn hierarchy(&self, scope: &VisibleProject<'_>) -> Option<(usize, Hierarchy)> {
        let is_named = |hierarchy: &Hierarchy| {
            let unique = hierarchy.unique_name(scope).to_lowercase();
            let name = self.name.to_lowercase();
            let is_part = name.strip_prefix(&unique).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            // The name of a dimension refers to its first hierarchy.
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

    /// Returns whether a row is one of the selected members.
    pub(super) fn includes(&self, scope: &VisibleProject<'_>, cells: &[Cell<'_>]) -> bool {
        let Some(around) = &self.around else { return true };
        let Cell::Integer(row) = cells[ORDINAL_COLUMN] else { return false };
        let Some((named, row)) = around.index(scope).zip(u32::try_from(row).ok()) else { return false };
        let parent = |index: u32| scope.members.get(index as usize).and_then(|member| member.parent);
        let is_above =
            |above: u32, below: u32| std::iter::successors(parent(below), |at| parent(*at)).any(|at| at == above);
        let is_of = |relation: u32| around.relations & relation != 0;
        let is_child = parent(row) == Some(named);
        is_of(SELF) && row == named
            || is_of(CHILDREN) && is_child
            || is_of(SIBLINGS) && row != named && parent(row) == parent(named)
            || is_of(PARENT) && parent(named) == Some(row)
            || is_of(DESCENDANTS) && is_above(named, row)
            || is_of(ANCESTORS) && is_above(row, named)
    }
}

impl Around {
    fn index(&self, scope: &VisibleProject<'_>) -> Option<u32> {
        let is_named = |member: &Member| is_same_member(&unique_name(scope, member), &self.member);
        let find = || scope.members.iter().position(is_named).and_then(|at| u32::try_from(at).ok());
        *self.index.get_or_init(find)
    }
}

/// Splits restrictions into the request for members and the restrictions that apply to rows. With a tree operator, the
/// named member selects other members, and therefore does not restrict the rows.
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
        request.around = Some(Around { member: member.clone(), relations: operator, index: OnceLock::new() });
        rest.retain(|restriction| !restriction.column.eq_ignore_ascii_case(MEMBER));
    }
    rest.retain(|restriction| !restriction.column.eq_ignore_ascii_case(TREE_OPERATOR));
    Ok((Some(request), rest))
}

/// Returns the members of a hierarchy. `values` are the rows of a query that has read the values of its attribute in
/// order.
pub fn members(
    scope: &VisibleProject<'_>,
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
            parent: None,
            children: 0,
        };
        return measures.map(member).collect();
    }
    let texts = values.map(|(columns, batches)| texts(columns, batches)).unwrap_or_default();
    let mut members = vec![Member {
        cube,
        hierarchy,
        level: 0,
        ordinal: 0,
        caption: "All".to_owned(),
        key: Some("All".to_owned()),
        parent: None,
        children: 0,
    }];
    let periods: Vec<Granularity> = scope.levels(hierarchy).into_iter().filter_map(Level::period).collect();
    for text in texts {
        let path = match &text {
            Some(text) if !periods.is_empty() => periods.iter().map(|period| Some(containing(text, *period))).collect(),
            _ => vec![text],
        };
        add_path(&mut members, path);
    }
    members
}

/// Adds the members of a path from the top level down. A member that equals the last one of its level is not added
/// again.
fn add_path(members: &mut Vec<Member>, path: Vec<Option<String>>) {
    let mut parent = 0;
    for (key, level) in path.into_iter().zip(1..) {
        let last = members.iter().rposition(|member| member.level == level && member.parent == Some(parent));
        let same = last.filter(|at| members[*at].key == key);
        if let Some(at) = same {
            parent = at as u32;
            continue;
        }
        members[parent as usize].children += 1;
        let (Member { cube, hierarchy, .. }, ordinal) = (&members[0], members.len() as u32);
        let caption = key.clone().unwrap_or_default();
        let member = Member {
            cube: *cube,
            hierarchy: *hierarchy,
            level,
            ordinal,
            caption,
            key,
            parent: Some(parent),
            children: 0,
        };
        members.push(member);
        parent = ordinal;
    }
}

/// Returns the period of a granularity that contains a given period: `2024-Q1` contains `2024-01` and `2024-01-31`.
fn containing(period: &str, granularity: Granularity) -> String {
    let mut parts = period.splitn(3, '-');
    let (year, second) = (parts.next().unwrap_or(period), parts.next());
    match (granularity, second) {
        (Granularity::Year, _) => year.to_owned(),
        (Granularity::Quarter, Some(month)) => match month.parse::<u32>() {
            Ok(month) => format!("{year}-Q{}", month.div_ceil(3)),
            Err(_) => period.to_owned(),
        },
        (Granularity::Month, Some(month)) => format!("{year}-{month}"),
        _ => period.to_owned(),
    }
}

/// Returns the values of the first column as text.
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
