//! The names in a dbt project, and the names that cubes, members and metrics have for them.
//!
//! In: all semantic models and metrics. Out: lookups by the names in the dbt project, and the declared names.

use std::collections::HashMap;

use terrane_authoring::names::{Taken, snake};
use terrane_compiler::diagnostic::{Diagnostic, Span};

use super::definition::{EntityKind, Metric, SemanticModel};
use crate::declared::Declared;
use crate::draft::{CubeDraft, JOINS, Reference};
use crate::finding::changed;

/// The largest number of joins in a path to another cube.
const MAX_HOPS: usize = 5;

pub(super) struct ProjectScope {
    /// The cubes, in the order of the files.
    cubes: Vec<CubeNames>,
    /// The position of each model in `cubes`.
    by_model: HashMap<String, usize>,
    metrics: HashMap<String, String>,
    /// The joins of the cubes.
    links: Vec<Link>,
    pub(super) warehouse: String,
}

/// A join of the cube `owner` to the cube `target` by an entity.
pub(super) struct Link {
    pub(super) owner: String,
    pub(super) entity: String,
    pub(super) target: String,
    /// The name of the join: the target, or an alias of it.
    pub(super) name: String,
}

#[derive(Default)]
pub(super) struct CubeNames {
    pub(super) name: String,
    /// The members of entities, by the names of the entities. `keys` lists the entities that identify a row of the
    /// cube.
    pub(super) entities: HashMap<String, String>,
    keys: Vec<String>,
    pub(super) dimensions: HashMap<String, String>,
    pub(super) measures: HashMap<String, String>,
    granularities: HashMap<String, String>,
    /// The time dimension to which `metric_time` refers.
    pub(super) time: Option<String>,
    /// The time dimensions of measures that have one of their own, by the names of the measures.
    times: HashMap<String, String>,
}

impl ProjectScope {
    pub(super) fn new(
        models: &[SemanticModel],
        metrics: &[Metric],
        warehouse: &str,
        findings: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut scope = ProjectScope {
            cubes: Vec::new(),
            by_model: HashMap::new(),
            metrics: HashMap::new(),
            links: Vec::new(),
            warehouse: warehouse.to_owned(),
        };
        let mut taken = Taken::default();
        for model in models {
            let name = renamed(&model.name, &mut taken, &model.span, findings);
            scope.by_model.entry(model.name.clone()).or_insert(scope.cubes.len());
            scope.cubes.push(CubeNames::new(name, model, findings));
        }
        let mut taken = Taken::default();
        for metric in metrics.iter() {
            if !scope.metrics.contains_key(&metric.name) {
                let name = renamed(&metric.name, &mut taken, &metric.span, findings);
                scope.metrics.insert(metric.name.clone(), name);
            }
        }
        scope
    }

    pub(super) fn cube(&self, model: &str) -> Option<&CubeNames> {
        self.by_model.get(model).and_then(|at| self.cubes.get(*at))
    }

    /// Returns the name that a metric has in the project.
    pub(super) fn metric(&self, original: &str) -> Option<&str> {
        self.metrics.get(original).map(String::as_str)
    }

    /// Returns the cube and the name of a measure. The names of measures are unique in a dbt project.
    pub(super) fn measure(&self, original: &str) -> Option<(&CubeNames, &str)> {
        self.cubes.iter().find_map(|cube| Some((cube, cube.measures.get(original)?.as_str())))
    }

    /// Returns a dimension. If `entity` is given, it must identify the rows of the dimension's cube; the cube `own` is
    /// tried first.
    pub(super) fn dimension(&self, own: &CubeNames, entity: Option<&str>, name: &str) -> Option<Place> {
        let of = |cube: &CubeNames| {
            let is_key = entity.is_none_or(|entity| cube.has_key(entity));
            let member = cube.dimensions.get(name).filter(|_| is_key)?;
            Some(Place {
                reference: Reference { cube: cube.name.clone(), member: Some(member.clone()) },
                granularity: cube.granularities.get(name).cloned(),
                path: cube.name.clone(),
            })
        };
        // Without an entity, the dimension must be in the cube `own`.
        of(own).or_else(|| entity.and_then(|_| self.cubes.iter().find_map(of)))
    }

    pub(super) fn set_links(&mut self, links: Vec<Link>) {
        self.links = links;
    }

    pub(super) fn cube_names(&self) -> impl Iterator<Item = &str> {
        self.cubes.iter().map(|cube| cube.name.as_str())
    }

    /// Returns the name by which the cube `own` reaches another cube over entities, from the nearest to the farthest.
    /// Returns `None` if the joins of the project lead to the cube by other entities, or may do so.
    pub(super) fn path(&self, own: &CubeNames, entities: &[&str], target: &str) -> Option<String> {
        if own.name == target {
            return Some(target.to_owned());
        }
        let direct = || self.links.iter().filter(|link| link.owner == own.name && link.target == target);
        if direct().next().is_some() {
            // The project uses the shortest path, which is a join of the cube itself.
            return match entities {
                [entity] => direct().find(|link| link.entity == *entity).map(|link| link.name.clone()),
                _ => None,
            };
        }
        let mut routes = Vec::new();
        self.add_routes(&own.name, target, &mut Vec::new(), &mut routes);
        match routes.as_slice() {
            // A later check reports that no join leads to the cube.
            [] => Some(target.to_owned()),
            [route] if route.iter().map(|link| link.entity.as_str()).eq(entities.iter().copied()) => {
                route.last().map(|link| link.name.clone())
            }
            _ => None,
        }
    }

    /// Adds the sequences of joins that lead from one cube to another. Stops after the second one.
    fn add_routes<'s>(&'s self, from: &str, target: &str, route: &mut Vec<&'s Link>, routes: &mut Vec<Vec<&'s Link>>) {
        for link in self.links.iter().filter(|link| link.owner == from) {
            let is_repeated = route.iter().any(|known| known.owner == link.target || known.target == link.target);
            if routes.len() > 1 || is_repeated || route.len() == MAX_HOPS {
                continue;
            }
            route.push(link);
            match link.target == target {
                true => routes.push(route.clone()),
                false => self.add_routes(&link.target, target, route, routes),
            }
            route.pop();
        }
    }

    /// Returns the dimension of an entity. Without `links`, looks in the cube `own`, and then in the cubes whose
    /// primary key is the entity. Otherwise, looks in the cubes whose primary key is the last of the `links`.
    pub(super) fn entity(&self, own: &CubeNames, links: &[&str], name: &str) -> Option<Reference> {
        let of = |cube: &CubeNames| {
            let member = cube.entities.get(name)?;
            Some(Reference { cube: cube.name.clone(), member: Some(member.clone()) })
        };
        let key = links.last().copied().unwrap_or(name);
        let keyed = || self.cubes.iter().filter(|cube| cube.has_key(key)).find_map(of);
        if links.is_empty() { of(own).or_else(keyed) } else { keyed() }
    }

    /// Returns all declared names, and the joins of the drafts.
    pub(super) fn declared(&self, models: &[SemanticModel], metrics: &[String], drafts: &[CubeDraft]) -> Declared {
        let mut declared = Declared::default();
        for model in models {
            let Some(cube) = self.cube(&model.name) else { continue };
            declared.add_cube(&cube.name);
            model.declared.iter().for_each(|name| declared.add_member(&cube.name, &snake(name)));
        }
        for draft in drafts {
            draft.lists.iter().flatten().for_each(|member| declared.add_member(&draft.name, &member.name));
            let joins = draft.lists[JOINS].iter().map(|join| (draft.name.clone(), join.name.clone()));
            declared.joins.extend(joins);
        }
        for metric in metrics {
            declared.add_metric(self.metric(metric).unwrap_or(&snake(metric)));
        }
        declared
    }
}

/// A dimension that a filter names.
pub(super) struct Place {
    pub(super) reference: Reference,
    pub(super) granularity: Option<String>,
    /// The name by which the cube of the filter reaches the cube of the dimension.
    pub(super) path: String,
}

impl CubeNames {
    /// Returns true if the entity identifies the rows of the cube.
    pub(super) fn has_key(&self, entity: &str) -> bool {
        self.keys.iter().any(|key| key == entity)
    }

    /// Returns the time dimension to which `metric_time` refers for a measure.
    pub(super) fn time_of(&self, measure: &str) -> Option<&str> {
        self.times.get(measure).or(self.time.as_ref()).map(String::as_str)
    }

    fn new(name: String, model: &SemanticModel, findings: &mut Vec<Diagnostic>) -> Self {
        let mut cube = CubeNames { name, ..CubeNames::default() };
        let mut taken = Taken::default();
        for dimension in &model.dimensions {
            let name = renamed(&dimension.name, &mut taken, &dimension.span, findings);
            cube.granularities.extend(dimension.granularity.clone().map(|grain| (dimension.name.clone(), grain)));
            cube.dimensions.insert(dimension.name.clone(), name);
        }
        for entity in &model.entities {
            if matches!(entity.kind, EntityKind::Primary | EntityKind::Unique) {
                cube.keys.push(entity.name.clone());
            }
            let name = match model.dimensions.iter().any(|dimension| dimension.name == entity.name) {
                true => taken.take(&format!("{}_key", snake(&entity.name))),
                false => renamed(&entity.name, &mut taken, &entity.span, findings),
            };
            cube.entities.insert(entity.name.clone(), name);
        }
        cube.keys.extend(model.primary_entity.clone());
        for measure in &model.measures {
            let name = renamed(&measure.name, &mut taken, &measure.span, findings);
            cube.times.extend(measure.agg_time_dimension.clone().map(|time| (measure.name.clone(), time)));
            cube.measures.insert(measure.name.clone(), name);
        }
        let only = || {
            let mut times = model.dimensions.iter().filter(|dimension| dimension.is_time);
            times.next().filter(|_| times.next().is_none()).map(|dimension| dimension.name.clone())
        };
        cube.time = model.agg_time_dimension.as_ref().map(|(name, _)| name.clone()).or_else(only);
        cube
    }
}

/// Returns the name that an item has in the project, and reports it if it differs from the original name.
fn renamed(original: &str, taken: &mut Taken, span: &Span, findings: &mut Vec<Diagnostic>) -> String {
    let name = taken.take(&snake(original));
    if original != name {
        let what = format!("`{original}` is named `{name}` in the project: names are unique and in snake_case");
        findings.push(changed(span.clone(), what, "Use the new name in queries."));
    }
    name
}
