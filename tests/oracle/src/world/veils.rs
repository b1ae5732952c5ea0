//! Masks and denied members: as a project's text, and as what they say of a column (semantics, rule 21).
//!
//! In: a [`World`]. Out: what stands in place of a dimension's value, which members don't exist, and
//! which columns nothing else may read. Not here: what a query is refused for (`oracle`).

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::policies::for_others;
use super::{Cell, Cube, Expr, World};

/// One policy on one cube.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Veil {
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

/// A column of a cube's table.
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

impl Veil {
    pub(super) fn json(&self, index: usize) -> Json {
        let mut json =
            json!({"name": format!("veil{index}"), "cubes": [self.cube], "allow_aggregate": self.allow_aggregate});
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
    /// Those on the cube of this name or behind this alias.
    fn veils_on(&self, cube: &str) -> impl Iterator<Item = &Veil> {
        let of = self.behind(cube).map(|cube| cube.name.as_str());
        self.veils.iter().filter(move |veil| !veil.is_for_others && Some(veil.cube.as_str()) == of)
    }

    /// A denied member doesn't exist.
    pub fn is_denied(&self, cube: &str, member: &str) -> bool {
        self.veils_on(cube).any(|veil| veil.deny.iter().any(|denied| denied == member))
    }

    /// The strictest of all.
    pub fn mask(&self, cube: &str, dimension: &str) -> Option<&Mask> {
        let masks = self.veils_on(cube).flat_map(|veil| &veil.masks);
        masks.filter(|(name, _)| name == dimension).map(|(_, mask)| mask).max_by_key(|mask| mask.strictness())
    }

    /// Whether an expression of a cube reads a column that is behind a mask or a denied dimension;
    /// `is_measured`: as part of a measure, which a mask may allow.
    pub fn is_covered(&self, cube: &str, sql: &Expr, is_measured: bool) -> bool {
        let mut read = Vec::new();
        if let Some(own) = self.behind(cube) {
            self.columns(own, sql, &mut read);
        }
        self.veils.iter().filter(|veil| !veil.is_for_others).any(|veil| {
            let Some(own) = self.cube(&veil.cube) else { return false };
            let masked = veil.masks.iter().filter(|_| !(is_measured && veil.allow_aggregate)).map(|(name, _)| name);
            masked.chain(&veil.deny).filter_map(|name| own.dimension(name)).any(|dimension| {
                let mut behind = Vec::new();
                self.columns(own, &dimension.sql, &mut behind);
                behind.iter().any(|column| read.contains(column))
            })
        })
    }

    /// The columns that an expression of a cube reads in the end.
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
