//! The index of a project's names, with the places that define and use each name.
//!
//! In: definitions, including incomplete ones, and test files. Out: an [`Index`] of [`Occurrence`]s. If several cubes
//! of one `extends` chain declare a member, the member is one symbol, so that a rename changes all declarations. Not
//! here: whether a reference is allowed at its place.

mod sql;
mod tests_files;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use terrane_compiler::diagnostic::Span;
use terrane_compiler::project::{
    CubeDefinition, Definitions, MaskDefinition, MetricBody, MetricDefinition, PolicyDefinition,
    PreAggregationDefinition, Reference, SourceTree, SqlText, Text,
};

pub(crate) use sql::{braced, names};

/// A named definition that others can refer to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Symbol {
    Cube(Arc<str>),
    /// An alias that a join gives a cube.
    Alias(Arc<str>),
    /// A measure, dimension or segment: the most distant base cube that declares it, and its name.
    Member(Arc<str>, Arc<str>),
    Metric(Arc<str>),
    /// A SQL model.
    Model(Arc<str>),
}

/// One place at which a name occurs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Occurrence {
    pub(crate) symbol: Symbol,
    pub(crate) span: Span,
    pub(crate) is_definition: bool,
}

/// All occurrences of names in the files of a project.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) occurrences: Vec<Occurrence>,
}

impl Index {
    pub(crate) fn of(definitions: &Definitions, tree: &SourceTree) -> Index {
        let mut builder = Builder { scope: Scope::of(definitions), found: Vec::new() };
        definitions.models.iter().for_each(|model| {
            builder.define(Symbol::Model(Arc::clone(&model.name.value)), &model.name);
            builder.models(&model.refs);
        });
        definitions.every_cube().iter().for_each(|cube| builder.cube(cube));
        definitions.every_metric().iter().for_each(|metric| builder.metric(metric));
        definitions.every_policy().iter().for_each(|policy| builder.policy(policy));
        tree.files.iter().for_each(|(path, text)| tests_files::collect(path, text, &mut builder));
        Index { occurrences: builder.found }
    }

    /// Returns all occurrences of a symbol, each place once.
    pub(crate) fn places<'i>(&'i self, symbol: &'i Symbol) -> impl Iterator<Item = &'i Occurrence> {
        let mut seen = HashSet::new();
        self.occurrences.iter().filter(move |found| found.symbol == *symbol && seen.insert(&found.span))
    }
}

/// The names that can be resolved.
pub(crate) struct Scope<'d> {
    pub(crate) cubes: HashMap<&'d str, &'d CubeDefinition>,
    aliases: HashMap<&'d str, &'d str>,
    pub(crate) metrics: HashMap<&'d str, &'d MetricDefinition>,
    models: HashSet<&'d str>,
}

impl<'d> Scope<'d> {
    pub(crate) fn of(definitions: &'d Definitions) -> Scope<'d> {
        let cubes = definitions.every_cube();
        let aliases = cubes.iter().flat_map(|cube| &cube.joins).filter_map(|join| {
            let target = join.cube.as_ref().filter(|target| target.value != join.name.value)?;
            Some((&*join.name.value, &*target.value))
        });
        Scope {
            cubes: cubes.iter().map(|cube| (&*cube.name.value, cube)).collect(),
            aliases: aliases.collect(),
            metrics: definitions.every_metric().iter().map(|metric| (&*metric.name.value, metric)).collect(),
            models: definitions.models.iter().map(|model| &*model.name.value).collect(),
        }
    }

    /// Returns the cube that a name, or an alias, stands for.
    pub(crate) fn cube(&self, name: &str) -> Option<&'d CubeDefinition> {
        let name = self.aliases.get(name).copied().unwrap_or(name);
        self.cubes.get(name).copied()
    }

    /// Returns the names of cubes and aliases, sorted.
    pub(crate) fn cube_names(&self) -> Vec<&'d str> {
        let mut names: Vec<&str> = self.cubes.keys().chain(self.aliases.keys()).copied().collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub(crate) fn cube_symbol(&self, name: &str) -> Option<Symbol> {
        if self.aliases.contains_key(name) {
            return Some(Symbol::Alias(name.into()));
        }
        self.cubes.contains_key(name).then(|| Symbol::Cube(name.into()))
    }

    /// Returns the cube and all cubes that it extends, directly or indirectly, from itself to the most distant one.
    pub(crate) fn line(&self, cube: &'d CubeDefinition) -> Vec<&'d CubeDefinition> {
        cube.line(|name| self.cubes.get(name).copied())
    }

    /// Returns the symbol of a member. `cube` is the name or an alias of a cube.
    pub(crate) fn member(&self, cube: &str, name: &str) -> Option<Symbol> {
        let line = self.line(self.cube(cube)?);
        let owner = line.into_iter().rev().find(|cube| declares(cube, name))?;
        Some(Symbol::Member(Arc::clone(&owner.name.value), name.into()))
    }

    pub(crate) fn metric(&self, name: &str) -> Option<Symbol> {
        self.metrics.contains_key(name).then(|| Symbol::Metric(name.into()))
    }
}

/// Returns whether a cube itself declares a measure, dimension or segment.
pub(crate) fn declares(cube: &CubeDefinition, name: &str) -> bool {
    cube.measures.iter().any(|measure| &*measure.name.value == name)
        || cube.dimensions.iter().any(|dimension| &*dimension.name.value == name)
        || cube.segments.iter().any(|segment| &*segment.name.value == name)
}

/// Collects occurrences.
pub(crate) struct Builder<'d> {
    pub(crate) scope: Scope<'d>,
    found: Vec<Occurrence>,
}

impl Builder<'_> {
    pub(crate) fn add(&mut self, symbol: Option<Symbol>, span: Span) {
        self.found.extend(symbol.map(|symbol| Occurrence { symbol, span, is_definition: false }));
    }

    fn define(&mut self, symbol: Symbol, name: &Text) {
        self.found.push(Occurrence { symbol, span: inner(name), is_definition: true });
    }

    fn models(&mut self, refs: &[Reference]) {
        for reference in refs.iter().filter(|reference| self.scope.models.contains(&*reference.name)) {
            self.found.push(Occurrence {
                symbol: Symbol::Model(Arc::clone(&reference.name)),
                span: reference.span.clone(),
                is_definition: false,
            });
        }
    }

    fn cube(&mut self, cube: &CubeDefinition) {
        let name = &*cube.name.value;
        self.define(Symbol::Cube(Arc::clone(&cube.name.value)), &cube.name);
        cube.extends.iter().for_each(|extends| self.cube_name(extends));
        cube.relation.iter().for_each(|relation| self.models(&relation.refs));
        for join in &cube.joins {
            match join.cube.as_ref().filter(|target| target.value != join.name.value) {
                Some(target) => {
                    self.define(Symbol::Alias(Arc::clone(&join.name.value)), &join.name);
                    self.cube_name(target);
                }
                None => self.cube_name(&join.name),
            }
            self.sql(name, &join.sql);
        }
        let members = cube.measures.iter().map(|measure| &measure.name);
        let members = members.chain(cube.dimensions.iter().map(|dimension| &dimension.name));
        for member in members.chain(cube.segments.iter().map(|segment| &segment.name)) {
            let symbol = self.scope.member(name, &member.value);
            let own = || Symbol::Member(Arc::clone(&cube.name.value), Arc::clone(&member.value));
            self.define(symbol.unwrap_or_else(own), member);
        }
        for measure in &cube.measures {
            measure.sql.iter().chain(&measure.filters).for_each(|sql| self.sql(name, sql));
            measure.drill_members.iter().for_each(|member| self.member_name(Some(name), member));
        }
        cube.dimensions.iter().for_each(|dimension| self.sql(name, &dimension.sql));
        cube.segments.iter().for_each(|segment| self.sql(name, &segment.sql));
        cube.pre_aggregations.iter().for_each(|stored| self.pre_aggregation(name, stored));
    }

    fn pre_aggregation(&mut self, cube: &str, stored: &PreAggregationDefinition) {
        let members = stored.measures.iter().chain(&stored.dimensions).chain(&stored.segments);
        for member in members.chain(&stored.time_dimension).chain(&stored.indexes) {
            self.member_name(Some(cube), member);
        }
        stored.filters.iter().chain(&stored.arrival).for_each(|sql| self.sql(cube, sql));
    }

    fn metric(&mut self, metric: &MetricDefinition) {
        self.define(Symbol::Metric(Arc::clone(&metric.name.value)), &metric.name);
        match &metric.body {
            MetricBody::Expression(sql) => self.expression(sql),
            MetricBody::Ratio { numerator, denominator } => {
                self.expression(numerator);
                self.expression(denominator);
            }
        }
        metric.filters.iter().for_each(|filter| self.member_name(None, &filter.member));
    }

    fn policy(&mut self, policy: &PolicyDefinition) {
        let cubes: Vec<Arc<str>> = match &policy.cubes {
            Some(names) => names.iter().map(|name| Arc::clone(&name.value)).collect(),
            None => self.scope.cubes.keys().map(|name| Arc::from(*name)).collect(),
        };
        policy.cubes.iter().flatten().for_each(|name| self.cube_name(name));
        for cube in &cubes {
            policy.row_filter.iter().for_each(|sql| self.sql(cube, sql));
            for (member, mask) in &policy.masks {
                self.member_name(Some(cube), member);
                if let MaskDefinition::Sql(sql) = mask {
                    self.sql(cube, sql);
                }
            }
            policy.deny.iter().for_each(|member| self.member_name(Some(cube), member));
        }
    }

    fn cube_name(&mut self, name: &Text) {
        self.add(self.scope.cube_symbol(&name.value), inner(name));
    }

    /// Adds the names in `cube.member`, `cube.member.granularity` or `member`. A name without a cube is a member of
    /// `cube`.
    pub(crate) fn member_name(&mut self, cube: Option<&str>, text: &Text) {
        let sql = SqlText::plain(text);
        let mut parts = text.value.split('.');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        let at = |offset: usize, name: &str| sql.locate(offset, name.chars().count());
        match (second, cube) {
            (Some(name), _) => {
                self.add(self.scope.cube_symbol(first), at(0, first));
                self.add(self.scope.member(first, name), at(first.len() + 1, name));
            }
            (None, Some(cube)) => self.add(self.scope.member(cube, first), at(0, first)),
            (None, None) => {}
        }
    }

    /// Adds the names in the braces of a cube's SQL.
    fn sql(&mut self, cube: &str, sql: &SqlText) {
        let source = sql.template.as_ref().unwrap_or(&sql.text);
        for name in braced(source) {
            let span = |offset: usize, name: &str| sql.locate_template(offset, name.chars().count());
            match *name.parts {
                [(of, at), (member, member_at)] => {
                    let of_cube = if of == "CUBE" { cube } else { of };
                    self.add(self.scope.cube_symbol(of), span(at, of));
                    self.add(self.scope.member(of_cube, member), span(member_at, member));
                }
                [(name, at)] => {
                    let symbol = self.scope.member(cube, name).or_else(|| self.scope.cube_symbol(name));
                    self.add(symbol, span(at, name));
                }
                _ => {}
            }
        }
    }

    /// Adds the names of a metric's expression.
    fn expression(&mut self, sql: &SqlText) {
        let source = sql.template.as_ref().unwrap_or(&sql.text);
        for (name, at) in names(source) {
            let span = |offset: usize, name: &str| sql.locate_template(offset, name.chars().count());
            match name.split_once('.') {
                Some((cube, member)) => {
                    self.add(self.scope.cube_symbol(cube), span(at, cube));
                    self.add(self.scope.member(cube, member), span(at + cube.len() + 1, member));
                }
                None => self.add(self.scope.metric(name), span(at, name)),
            }
        }
    }
}

/// Returns the place of a name, without the quotes around it.
fn inner(name: &Text) -> Span {
    SqlText::plain(name).locate(0, name.value.chars().count())
}
