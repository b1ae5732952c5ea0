//! Transfers the SQL of a policy to another cube over the same table.
//!
//! In: a snippet that was read in the scope of the policy's cube, and another cube with the rows of the same table.
//! Out: the same condition over the other cube's rows. Names in it refer to columns of the table and members of the
//! policy's cube, never to members of the other cube. Otherwise the author of the other cube could change the policy.

use super::{Compared, CubeId, Dimension, DimensionId, Member, Model, Snippet, SqlPart, UserPart};

/// The deepest nesting of members that is expanded.
const MAX_DEPTH: usize = 60;

/// Returns the snippet over rows of `to`, or `None` if it cannot be computed for them. With `has_joins`, references
/// to further cubes may follow the joins of `to`.
pub(super) fn transfer(model: &Model, snippet: &Snippet, from: CubeId, to: CubeId, has_joins: bool) -> Option<Snippet> {
    Transfer { model, from, to, has_joins }.snippet(snippet, 0)
}

/// Returns whether each member in a snippet is the column of the same name.
pub(super) fn is_plain(model: &Model, snippet: &Snippet) -> bool {
    let mut is_plain = true;
    snippet.for_each(&mut |part| {
        is_plain &= match part {
            SqlPart::Dimension(id) => {
                let dimension = model.dimension(*id);
                let is_its_column = |part: &SqlPart| match part {
                    SqlPart::Column { cube, name } => {
                        *cube == id.cube && name.text.eq_ignore_ascii_case(&dimension.name)
                    }
                    _ => false,
                };
                matches!(dimension.sql.parts.as_slice(), [part] if is_its_column(part))
            }
            SqlPart::User(UserPart { compared: Some(compared), .. }) => self::is_plain(model, &compared.sql),
            _ => true,
        };
    });
    is_plain
}

struct Transfer<'m> {
    model: &'m Model,
    from: CubeId,
    to: CubeId,
    has_joins: bool,
}

impl Transfer<'_> {
    fn snippet(&self, snippet: &Snippet, depth: usize) -> Option<Snippet> {
        if depth > MAX_DEPTH {
            return None;
        }
        let Snippet { parts: _, is_atomic, is_infallible, has_query } = *snippet;
        let mut result =
            Snippet { parts: Vec::with_capacity(snippet.parts.len()), is_atomic, is_infallible, has_query };
        for part in &snippet.parts {
            self.part(part, &mut result, depth)?;
        }
        Some(result)
    }

    fn part(&self, part: &SqlPart, result: &mut Snippet, depth: usize) -> Option<()> {
        let part = match part {
            SqlPart::Text(text) => SqlPart::Text(text.clone()),
            SqlPart::Column { cube, name } => SqlPart::Column { cube: self.cube(*cube)?, name: name.clone() },
            SqlPart::Dimension(id) if id.cube == self.from => return self.dimension(*id, result, depth),
            SqlPart::Dimension(id) => {
                self.cube(id.cube)?;
                SqlPart::Dimension(*id)
            }
            SqlPart::User(user) => {
                let compared = match user.compared.as_deref() {
                    Some(Compared { sql, ty }) => {
                        Some(Box::new(Compared { sql: self.snippet(sql, depth + 1)?, ty: *ty }))
                    }
                    None => None,
                };
                SqlPart::User(UserPart { compared, ..user.clone() })
            }
            SqlPart::Divide(left, right) => {
                let (left, right) = (self.snippet(left, depth + 1)?, self.snippet(right, depth + 1)?);
                SqlPart::Divide(Box::new(left), Box::new(right))
            }
            SqlPart::Measure(_) | SqlPart::Metric(_) | SqlPart::Aggregate(_) => return None,
        };
        result.parts.push(part);
        Some(())
    }

    /// Adds the dimension of the other cube with the same name and definition. If the other cube has none, adds the
    /// dimension's own SQL.
    fn dimension(&self, id: DimensionId, result: &mut Snippet, depth: usize) -> Option<()> {
        let dimension = self.model.dimension(id);
        let sql = self.snippet(&dimension.sql, depth + 1)?;
        let is_same = |other: &Dimension| other.sql == sql && other.ty == dimension.ty && other.time == dimension.time;
        if let Some(Member::Dimension(other)) = self.model.cube(self.to).member(&dimension.name)
            && is_same(self.model.dimension(other))
        {
            result.parts.push(SqlPart::Dimension(other));
            return Some(());
        }
        result.is_infallible &= sql.is_infallible;
        result.has_query |= sql.has_query;
        if sql.is_atomic {
            result.parts.extend(sql.parts);
        } else {
            result.parts.push(SqlPart::Text("(".into()));
            result.parts.extend(sql.parts);
            result.parts.push(SqlPart::Text(")".into()));
        }
        Some(())
    }

    fn cube(&self, cube: CubeId) -> Option<CubeId> {
        if cube == self.from {
            return Some(self.to);
        }
        (self.has_joins && self.model.join_paths(self.to).is_to_one(cube)).then_some(cube)
    }
}
