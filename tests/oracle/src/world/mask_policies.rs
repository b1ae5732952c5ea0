//! Masks and denied members: their form in a project, and their effects.
//!
//! In: a [`World`]. Out: the masks of dimensions, the members that do not exist for the caller, and the columns that no
//! other member may read. Not here: the errors of a query (`oracle`).

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::policies::for_others;
use super::{Cell, Cube, Expr, World};

/// One policy on one cube.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaskPolicy {
    pub cube: String,
    pub masks: Vec<(String, Mask)>,
    pub deny: Vec<String>,
    #[serde(default)]
    pub allow_aggregate: bool,
    #[serde(default)]
    pub is_for_others: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Mask {
    Partial,
    Hash,
    Constant(Cell),
    Null,
}

/// A column of a cube's table, as (cube, index of the column).
type CoveredColumn = (String, usize);

impl Mask {
    fn strictness(&self) -> u8 {
        match self {
            Mask::Partial => 1,
            Mask::Hash => 2,
            Mask::Constant(_) => 3,
            Mask::Null => 4,
        }
    }
}

impl MaskPolicy {
    pub(super) fn json(&self, index: usize) -> Json {
        let mut json =
            json!({"name": format!("mask{index}"), "cubes": [self.cube], "allow_aggregate": self.allow_aggregate});
        if !self.masks.is_empty() {
            let masks = self.masks.iter().map(|(member, mask)| {
                let mask = match mask {
                    Mask::Partial => json!("partial"),
                    Mask::Hash => json!("hash"),
                    Mask::Null => json!("null"),
                    Mask::Constant(Cell::Text(text)) => json!({"constant": text}),
                    Mask::Constant(Cell::Int(value)) => json!({"constant": value}),
                    Mask::Constant(Cell::Bool(value)) => json!({"constant": value}),
                    Mask::Constant(_) => Json::Null,
                };
                (member.clone(), mask)
            });
            json["mask"] = Json::Object(masks.collect());
        }
        if !self.deny.is_empty() {
            json["deny"] = json!(self.deny);
        }
        if self.is_for_others {
            json["when"] = for_others();
        }
        json
    }
}

impl World {
    /// Returns the policies on the cube with this name or alias.
    fn mask_policies_on(&self, cube: &str) -> impl Iterator<Item = &MaskPolicy> {
        let of = self.behind(cube).map(|cube| cube.name.as_str());
        self.mask_policies
            .iter()
            .filter(move |mask_policy| !mask_policy.is_for_others && Some(mask_policy.cube.as_str()) == of)
    }

    /// Returns whether a policy denies a member, which then does not exist for the caller.
    pub fn is_denied(&self, cube: &str, member: &str) -> bool {
        self.mask_policies_on(cube).any(|mask_policy| mask_policy.deny.iter().any(|denied| denied == member))
    }

    /// Returns the strictest mask of a dimension; `None` if the dimension is not masked.
    pub fn mask(&self, cube: &str, dimension: &str) -> Option<&Mask> {
        let masks = self.mask_policies_on(cube).flat_map(|mask_policy| &mask_policy.masks);
        masks.filter(|(name, _)| name == dimension).map(|(_, mask)| mask).max_by_key(|mask| mask.strictness())
    }

    /// Returns whether an expression of a cube reads a column of a masked or denied dimension. If `is_measured` is
    /// true, the expression is part of a measure, in which a mask may allow the column.
    pub fn is_covered(&self, cube: &str, sql: &Expr, is_measured: bool) -> bool {
        self.reads_denied(cube, sql)
            || self.reads(cube, sql, |policy| {
                let masks = policy.masks.iter().filter(|_| !(is_measured && policy.allow_aggregate));
                masks.map(|(name, _)| name.as_str()).collect()
            })
    }

    /// Returns whether an expression of a cube reads a column of a denied dimension.
    pub fn reads_denied(&self, cube: &str, sql: &Expr) -> bool {
        self.reads(cube, sql, |policy| policy.deny.iter().map(String::as_str).collect())
    }

    /// Returns whether an expression of a cube reads a column of a dimension that `covered` returns for a policy.
    fn reads(&self, cube: &str, sql: &Expr, covered: impl Fn(&MaskPolicy) -> Vec<&str>) -> bool {
        let mut read = Vec::new();
        if let Some(own) = self.behind(cube) {
            self.columns(own, sql, &mut read);
        }
        self.mask_policies.iter().filter(|mask_policy| !mask_policy.is_for_others).any(|mask_policy| {
            let Some(own) = self.cube(&mask_policy.cube) else { return false };
            covered(mask_policy).into_iter().filter_map(|name| own.dimension(name)).any(|dimension| {
                let mut behind = Vec::new();
                self.columns(own, &dimension.sql, &mut behind);
                behind.iter().any(|column| read.contains(column))
            })
        })
    }

    /// Adds the columns that an expression of a cube reads, directly or through members.
    fn columns(&self, own: &Cube, sql: &Expr, found: &mut Vec<CoveredColumn>) {
        let of = |cube: &Option<String>| cube.as_deref().map_or(Some(own), |cube| self.behind(cube));
        match sql {
            Expr::Column { cube, column } => found.extend(of(cube).map(|cube| (cube.name.clone(), *column))),
            Expr::Member { cube, name } => {
                if let Some((cube, dimension)) = of(cube).and_then(|cube| Some((cube, cube.dimension(name)?))) {
                    self.columns(cube, &dimension.sql, found);
                }
            }
            other => other.parts().into_iter().for_each(|part| self.columns(own, part, found)),
        }
    }
}
