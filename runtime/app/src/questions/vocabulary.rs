//! The names that a question can use for members.
//!
//! In: the artifacts that the caller may see. Out: entries with names, titles and synonyms; and the members that are
//! offered to a language model. A member of an alias can be called by the name of the alias: `origin airport` is the
//! name of the airport in the alias `origin_airport`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::model::{
    AggregateFunction, Cube, Dimension, Measure, MeasureKind, Member, Presentation, Snippet, SqlPart,
};
use terrane_compiler::types::DimensionType;
use terrane_questions::{Aggregation, MemberEntry, MemberKind, Unit};

use crate::dimension_values::counts_rows;
use crate::dimension_values::lists::SearchedDimension;
use crate::dimension_values::lookup::is_searchable;
use crate::metadata;
use crate::ports::language_model::{OfferedKind, OfferedMember};
use crate::search::ArtifactText;

/// The largest number of a member's synonyms that are sent to a language model.
const MAX_SYNONYMS: usize = 5;
/// The largest number of characters of a description that are sent to a language model.
const MAX_DESCRIPTION: usize = 200;

/// Returns the entries of all members that the caller may see.
pub(super) fn entries(access: &Access<'_>, artifacts: &[Arc<ArtifactText>]) -> Vec<MemberEntry> {
    let texts: HashMap<&str, &ArtifactText> =
        artifacts.iter().map(|artifact| (&*artifact.reference.id, &**artifact)).collect();
    let synonyms = |name: &str| texts.get(name).map_or_else(Vec::new, |text| text.synonyms.clone());
    let mut entries = Vec::new();
    for cube in metadata::cubes(access) {
        let names = [Arc::clone(&cube.name), Arc::clone(&cube.title)];
        entries.push(MemberEntry {
            name: Arc::clone(&cube.name),
            kind: MemberKind::Cube,
            cube: Some(Arc::clone(&cube.name)),
            phrases: names.to_vec(),
            synonyms: synonyms(&cube.name),
            unit: None,
            count: count_of(access, cube),
            label: label_of(access, cube),
            joined: joined_of(access, cube),
            ..MemberEntry::default()
        });
        let member = |name: &Arc<str>, kind: MemberKind, presentation: &Presentation| {
            let full: Arc<str> = format!("{}.{name}", cube.name).into();
            let (phrases, synonyms) = (phrases(cube, name, presentation), synonyms(&full));
            let unit = presentation.governed.unit.as_deref().map(unit);
            let is_share = presentation.format.as_deref() == Some("percent");
            MemberEntry {
                name: full,
                kind,
                cube: Some(Arc::clone(&cube.name)),
                phrases,
                synonyms,
                unit,
                description: presentation.description.clone(),
                is_share,
                ..MemberEntry::default()
            }
        };
        let measures = metadata::measures(access, cube);
        entries.extend(measures.map(|of| MemberEntry {
            aggregation: aggregation_of(of),
            combines: combined_by(access, cube, of),
            counts: counted_things(access, cube, of),
            counted_if: condition_of(access, cube, of),
            filtered_by: filtered_by(access, cube, of),
            ratio: match &of.kind {
                MeasureKind::Number(body) => ratio_of(access, body),
                _ => None,
            },
            ..member(&of.name, MemberKind::Measure, &of.presentation)
        }));
        let dimensions = metadata::dimensions(access, cube);
        entries.extend(dimensions.map(|of| member(&of.name, kind_of(of), &of.presentation)));
        let segments = metadata::segments(access, cube);
        entries.extend(segments.map(|of| member(&of.name, MemberKind::Segment, &of.presentation)));
    }
    for metric in metadata::metrics(access) {
        let names = [Arc::clone(&metric.name), Arc::clone(&metric.presentation.title)];
        entries.push(MemberEntry {
            name: Arc::clone(&metric.name),
            kind: MemberKind::Metric,
            cube: metadata::cubes_of_metric(access, metric).first().map(|cube| Arc::clone(&cube.name)),
            phrases: names.to_vec(),
            synonyms: synonyms(&metric.name),
            unit: metric.presentation.governed.unit.as_deref().map(unit),
            is_share: metric.presentation.format.as_deref() == Some("percent"),
            ratio: ratio_of(access, &metric.body).filter(|_| metric.filters.is_empty()),
            ..MemberEntry::default()
        });
    }
    entries
}

/// Returns the members that a language model may use for a question, at most `limit`. Members that share the most words
/// with the question come first. Of members with the same number of shared words, those of the cube whose members share
/// the most words together come first.
pub(super) fn offered(
    access: &Access<'_>,
    artifacts: &[Arc<ArtifactText>],
    question: &str,
    limit: usize,
) -> Vec<OfferedMember> {
    let words = words(question);
    let texts: HashMap<&str, &ArtifactText> =
        artifacts.iter().map(|artifact| (&*artifact.reference.id, &**artifact)).collect();
    let mut ranked: Vec<((usize, usize), OfferedMember)> = Vec::new();
    for cube in metadata::cubes(access) {
        let first = ranked.len();
        let mut add = |name: &str, kind, presentation: &Presentation| {
            let name: Arc<str> = format!("{}.{name}", cube.name).into();
            let member = offer(name, kind, presentation, &texts);
            ranked.push(((shared(&words, &member), 0), member));
        };
        metadata::measures(access, cube).for_each(|of| add(&of.name, OfferedKind::Measure, &of.presentation));
        metadata::dimensions(access, cube)
            .for_each(|of| add(&of.name, OfferedKind::Dimension(of.ty), &of.presentation));
        metadata::segments(access, cube).for_each(|of| add(&of.name, OfferedKind::Segment, &of.presentation));
        let of_cube: usize = ranked.iter().skip(first).map(|((own, _), _)| own).sum();
        ranked.iter_mut().skip(first).for_each(|((_, cube), _)| *cube = of_cube);
    }
    for metric in metadata::metrics(access) {
        let member = offer(Arc::clone(&metric.name), OfferedKind::Metric, &metric.presentation, &texts);
        let own = shared(&words, &member);
        ranked.push(((own, own), member));
    }
    ranked.sort_by(|(one, _), (other, _)| other.cmp(one));
    ranked.into_iter().take(limit).map(|(_, member)| member).collect()
}

fn offer(
    name: Arc<str>,
    kind: OfferedKind,
    presentation: &Presentation,
    texts: &HashMap<&str, &ArtifactText>,
) -> OfferedMember {
    let text = texts.get(&*name);
    let synonyms = text.map_or_else(Vec::new, |text| text.synonyms.iter().take(MAX_SYNONYMS).cloned().collect());
    let description = presentation.description.as_deref();
    OfferedMember {
        name,
        kind,
        title: Arc::clone(&presentation.title),
        description: description.map(|text| text.chars().take(MAX_DESCRIPTION).collect::<String>().into()),
        synonyms,
        unit: presentation.governed.unit.clone(),
    }
}

/// Returns the number of different words that a member's names and descriptions share with a question.
fn shared(words: &HashSet<String>, member: &OfferedMember) -> usize {
    let texts = [&member.name, &member.title].into_iter().chain(&member.synonyms).chain(&member.description);
    let own: HashSet<String> = texts.flat_map(|text| self::words(text)).collect();
    own.intersection(words).count()
}

/// Returns the words in lower case, without a final `s`.
fn words(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word.to_lowercase()).map(|word| word.strip_suffix('s').unwrap_or(&word).to_owned()).collect()
}

fn aggregation_of(measure: &Measure) -> Option<Aggregation> {
    let MeasureKind::Aggregate(aggregate) = &measure.kind else { return None };
    Some(match aggregate.function {
        AggregateFunction::Count => Aggregation::Count,
        AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox => Aggregation::CountDistinct,
        AggregateFunction::Sum => Aggregation::Sum,
        AggregateFunction::Avg => Aggregation::Average,
        AggregateFunction::Min => Aggregation::Minimum,
        AggregateFunction::Max => Aggregation::Maximum,
        _ => return None,
    })
}

/// Returns the dimension of a cube whose values a measure combines: it has the same expression, or the measure refers
/// to it.
fn combined_by(access: &Access<'_>, cube: &Cube, measure: &Measure) -> Option<Arc<str>> {
    let MeasureKind::Aggregate(aggregate) = &measure.kind else { return None };
    let argument = aggregate.argument.as_ref()?;
    let model = access.model();
    let is_combined = |dimension: &&Dimension| {
        let refers = |part: &SqlPart| match part {
            SqlPart::Dimension(id) => id.cube == cube.id && model.dimension(*id).name == dimension.name,
            _ => false,
        };
        dimension.sql.parts == argument.parts || (argument.parts.len() == 1 && argument.parts.iter().all(refers))
    };
    let found = metadata::dimensions(access, cube).find(is_combined)?;
    Some(format!("{}.{}", cube.name, found.name).into())
}

/// Returns the cube whose rows a measure counts by the key with which its cube joins the other one. For an alias, it is
/// the cube behind the alias.
fn counted_things(access: &Access<'_>, cube: &Cube, measure: &Measure) -> Option<Arc<str>> {
    let MeasureKind::Aggregate(aggregate) = &measure.kind else { return None };
    let is_distinct =
        matches!(aggregate.function, AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox);
    let model = access.model();
    let key = match &aggregate.argument.as_ref().filter(|_| is_distinct && aggregate.filters.is_empty())?.parts[..] {
        [SqlPart::Dimension(id)] if id.cube == cube.id => &model.dimension(*id).sql.parts[..],
        parts => parts,
    };
    let is_own = |part: &&SqlPart| matches!(part, SqlPart::Column { cube: of, .. } if *of == cube.id);
    let mut joins = cube.joins.iter().filter(|join| {
        let mut own = join.on.parts.iter().filter(is_own);
        matches!((own.next(), own.next()), (Some(only), None) if *key == [only.clone()])
    });
    let (only, None) = (joins.next()?, joins.next()) else { return None };
    let target = model.cube(only.target);
    let target = target.alias_of.map_or(target, |of| model.cube(of));
    metadata::cube(access, &target.name).map(|cube| Arc::clone(&cube.name))
}

/// Returns the numerator and the denominator of an expression that divides one measure by another.
fn ratio_of(access: &Access<'_>, body: &Snippet) -> Option<(Arc<str>, Arc<str>)> {
    let [SqlPart::Divide(numerator, denominator)] = &body.parts[..] else { return None };
    let name = |part: &Snippet| match part.parts[..] {
        [SqlPart::Measure(id)] => {
            let cube = access.model().cube(id.cube);
            Some(format!("{}.{}", cube.name, access.model().measure(id).name).into())
        }
        _ => None,
    };
    Some((name(numerator)?, name(denominator)?))
}

/// Returns the boolean dimension of a cube that is the only condition of a measure, as in `filters: [{sql: "{paid}"}]`.
fn condition_of(access: &Access<'_>, cube: &Cube, measure: &Measure) -> Option<Arc<str>> {
    let MeasureKind::Aggregate(aggregate) = &measure.kind else { return None };
    let [filter] = &aggregate.filters[..] else { return None };
    let [SqlPart::Dimension(id)] = &filter.parts[..] else { return None };
    let name = (id.cube == cube.id).then(|| Arc::clone(&access.model().dimension(*id).name))?;
    let is_shown = |of: &Dimension| of.name == name && of.ty == DimensionType::Boolean;
    metadata::dimensions(access, cube).any(is_shown).then(|| format!("{}.{name}", cube.name).into())
}

/// Returns the dimensions of a cube that the conditions of a measure are on: a condition refers to the dimension, or
/// has its column.
fn filtered_by(access: &Access<'_>, cube: &Cube, measure: &Measure) -> Vec<Arc<str>> {
    let MeasureKind::Aggregate(aggregate) = &measure.kind else { return Vec::new() };
    let parts = || aggregate.filters.iter().flat_map(|filter| &filter.parts);
    let model = access.model();
    let is_meant = |dimension: &&Dimension| {
        let refers = |part: &SqlPart| match part {
            SqlPart::Dimension(id) => id.cube == cube.id && model.dimension(*id).name == dimension.name,
            SqlPart::Column { .. } => dimension.sql.parts[..] == [part.clone()],
            _ => false,
        };
        parts().any(refers)
    };
    let found = metadata::dimensions(access, cube).filter(is_meant);
    found.map(|dimension| format!("{}.{}", cube.name, dimension.name).into()).collect()
}

/// Returns the dimension that names the rows of a cube: `name`, the dimension with the cube's title, or the only key.
fn label_of(access: &Access<'_>, cube: &Cube) -> Option<Arc<str>> {
    let find = |is_label: &dyn Fn(&Dimension) -> bool| metadata::dimensions(access, cube).find(|of| is_label(of));
    let singular = cube.title.strip_suffix('s').unwrap_or(&cube.title);
    let found = find(&|of| &*of.name == "name")
        .or_else(|| find(&|of| of.presentation.title.eq_ignore_ascii_case(singular)))
        .or_else(|| find(&|of| of.primary_key && cube.primary_key.len() == 1))?;
    Some(format!("{}.{}", cube.name, found.name).into())
}

/// Returns the cubes, with the cube itself, whose dimensions can group the measures of a cube.
fn joined_of(access: &Access<'_>, cube: &Cube) -> Vec<Arc<str>> {
    let paths = access.model().join_paths(cube.id);
    let reached = metadata::cubes(access).filter(|other| paths.reaches(other.id));
    reached.map(|other| Arc::clone(&other.name)).collect()
}

/// Returns the dimensions whose values may be looked up: first those of the cube, then those of the cubes that it
/// joins.
pub(super) fn searchable(access: &Access<'_>, cube: Option<&str>) -> Vec<SearchedDimension> {
    let model = access.model();
    let main = cube.and_then(|name| metadata::cube(access, name));
    let is_near = |of: &Cube| main.is_none_or(|main| main.id == of.id || model.join_paths(main.id).reaches(of.id));
    let mut cubes: Vec<&Cube> = metadata::cubes(access).filter(|cube| is_near(cube)).collect();
    cubes.sort_by_key(|cube| main.is_none_or(|main| main.id != cube.id));
    let mut found = Vec::new();
    for cube in cubes {
        let dimensions = metadata::dimensions(access, cube);
        let marked = dimensions.filter(|of| is_searchable(of));
        found.extend(marked.filter_map(|dimension| {
            let member: Arc<str> = format!("{}.{}", cube.name, dimension.name).into();
            let Some(Member::Dimension(id)) = cube.member(&dimension.name) else { return None };
            Some(SearchedDimension { id, member })
        }));
    }
    found
}

fn phrases(cube: &Cube, name: &Arc<str>, presentation: &Presentation) -> Vec<Arc<str>> {
    let title = &presentation.title;
    if cube.alias_of.is_none() {
        // A question may put the name of the cube before the member: `weather conditions` are the conditions of
        // `weather`.
        let of_cube = [format!("{} {name}", cube.name).into(), format!("{} {title}", cube.name).into()];
        return [Arc::clone(name), Arc::clone(title)].into_iter().chain(of_cube).collect();
    }
    let mut phrases: Vec<Arc<str>> =
        vec![format!("{} {name}", cube.name).into(), format!("{} {title}", cube.name).into()];
    // A question uses the name of an alias for the member `name` of the cube behind the alias.
    if &**name == "name" {
        phrases.push(Arc::clone(&cube.name));
    }
    phrases
}

fn kind_of(dimension: &Dimension) -> MemberKind {
    match dimension.ty {
        DimensionType::Number => MemberKind::Number,
        DimensionType::Time => MemberKind::Time,
        DimensionType::Boolean => MemberKind::Boolean,
        DimensionType::String | DimensionType::Geo => MemberKind::Text,
    }
}

/// Returns the name of the measure that counts the rows of a cube.
pub(super) fn count_of(access: &Access<'_>, cube: &Cube) -> Option<Arc<str>> {
    let count = metadata::measures(access, cube).find(|measure| counts_rows(measure));
    count.map(|measure| format!("{}.{}", cube.name, measure.name).into())
}

fn unit(name: &str) -> Unit {
    match name {
        "second" | "seconds" | "s" => Unit::Seconds,
        "minute" | "minutes" | "min" => Unit::Minutes,
        "hour" | "hours" | "h" => Unit::Hours,
        "day" | "days" | "d" => Unit::Days,
        _ => Unit::Named(name.into()),
    }
}

#[cfg(test)]
mod tests;
