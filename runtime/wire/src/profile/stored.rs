//! Profiles over HTTP: bodies of requests, stored texts, and quality scores.
//!
//! In: bodies and parameters; profiles of the use case. Out: requests, or a [`FieldError`]; the text of a profile,
//! which is stored and sent unchanged.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use terrane_app::profiling::ProfileTexts;
use terrane_app::profiling::{self, ColumnSummary, ProfileConfig, ProfileSummary, RequestedProfile};
use terrane_compiler::query::DateRange;

use super::{ColumnProfile, CubeProfile, Insight, Sampling};
use crate::body;
use crate::fields::{FieldError, Fields, Path};
use crate::profile_config::{self, ProfileConfigBody};
use crate::schema;

pub(crate) const REQUEST: &[&str] = &["config", "filters"];
pub(crate) const FILTERS: &[&str] = &["date_range"];
pub(crate) const DATE_RANGE: &[&str] = &["start", "end"];
const JOB: &[&str] = &["cube", "dimension", "request"];
const PARAMETERS: &[&str] = &["include_histograms", "include_insights"];
const OBJECT: &str = "a JSON object";
const RANGE: &str = "words like \"last 7 days\" or an object like {\"start\": …, \"end\": …}";
const DATE: &str = "a date or timestamp, like \"2024-01-31\",";

/// A profile to make.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProfileRequest {
    pub config: Option<ProfileConfigBody>,
    pub filters: Option<ProfileFilters>,
}

/// The rows of a profile.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProfileFilters {
    pub date_range: Option<ProfileDates>,
}

/// A range of time, both ends inclusive.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProfileRange {
    pub start: Option<String>,
    pub end: Option<String>,
}

/// A range of the cube's primary time dimension.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub enum ProfileDates {
    /// Words like `last 7 days`.
    Words(String),
    Ends(ProfileRange),
}

/// The profile of a cube, with its differences from the previous profile.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StoredCubeProfile<'a> {
    #[serde(flatten)]
    profile: CubeProfile<'a>,
    /// The range of time as it was requested; empty for all rows.
    date_range: &'a str,
    /// Null for the first profile of the range.
    changes: Option<ProfileChanges<'a>>,
}

/// The differences from the previous profile of the same range.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProfileChanges<'a> {
    /// The time of the previous profile.
    #[schemars(schema_with = "schema::timestamp")]
    pub since: String,
    pub row_count: CountChange,
    /// The columns that differ.
    pub columns: Vec<ProfileColumnChange<'a>>,
}

/// The differences of a column; null where it did not change.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProfileColumnChange<'a> {
    pub name: Cow<'a, str>,
    /// `added`, `removed` or `changed`.
    pub kind: Cow<'static, str>,
    pub r#type: Option<TypeChange<'a>>,
    pub null_count: Option<CountChange>,
    pub distinct_count: Option<CountChange>,
    /// Frequent values that were not frequent before, as text.
    pub new_values: Vec<Cow<'a, str>>,
}

/// A number before and now; null if it was not counted.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CountChange {
    pub before: Option<u64>,
    pub now: Option<u64>,
}

/// A type before and now.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TypeChange<'a> {
    pub before: Cow<'a, str>,
    pub now: Cow<'a, str>,
}

/// The profile of a dimension.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DimensionProfile<'a> {
    cube_name: &'a str,
    row_count: u64,
    #[schemars(schema_with = "schema::timestamp")]
    profiled_at: String,
    sample_size: u64,
    sampling: Option<Sampling<'a>>,
    profile: ColumnProfile<'a>,
    overall_quality_score: Option<f64>,
    quality_scores: BTreeMap<&'static str, f64>,
    insights: Vec<Insight<'a>>,
    warnings: &'a [String],
}

/// The quality score of the newest profile of a cube.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct QualityScore {
    pub cube_name: String,
    #[schemars(schema_with = "schema::timestamp")]
    pub profiled_at: String,
    /// The range of time as it was requested; empty for all rows.
    pub date_range: String,
    /// The weighted sum of the scores, 0–1; null if nothing was scored.
    pub overall_quality_score: Option<f64>,
    /// The score of each quality dimension.
    pub quality_scores: BTreeMap<String, f64>,
    /// The share of the weights that was scored, 0–1.
    pub scored_weight: f64,
}

/// The parts of a stored profile to send.
#[derive(Debug, Clone, Copy)]
pub struct ProfileParts {
    pub histograms: bool,
    pub insights: bool,
}

/// Reads the body of a request. An empty body means a request without fields.
///
/// # Errors
/// Names the field that is unknown or invalid.
pub fn profile_request_from_wire(body: &[u8]) -> Result<(ProfileConfig, Option<DateRange>), FieldError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok((profile_config::with_default_sample(None, ProfileConfig::default()), None));
    }
    let value = body::parse(body)?;
    let fields = Fields::new(&value, &Path::ROOT, OBJECT, REQUEST)?;
    let json = fields.get("config");
    let config = json.map(|config| profile_config::read(config, &Path::ROOT.field("config"))).transpose()?;
    let config = profile_config::with_default_sample(json, config.unwrap_or_default());
    let range = match fields.get("filters") {
        None => None,
        Some(filters) => {
            let path = Path::ROOT.field("filters");
            let fields = Fields::new(filters, &path, OBJECT, FILTERS)?;
            fields.get("date_range").map(|range| date_range(range, &path.field("date_range"))).transpose()?
        }
    };
    Ok((config, range))
}

/// Returns the text of a job for a profile: the cube, the dimension and the body of the request.
///
/// # Errors
/// Returns the same errors as [`profile_request_from_wire`].
pub fn profile_job_text(cube: &str, dimension: Option<&str>, body: &[u8]) -> Result<String, FieldError> {
    profile_request_from_wire(body)?;
    let is_empty = body.iter().all(u8::is_ascii_whitespace);
    let request = if is_empty { Json::Null } else { body::parse(body)? };
    Ok(serde_json::json!({"cube": cube, "dimension": dimension, "request": request}).to_string())
}

/// Reads the text of a job for a profile.
///
/// # Errors
/// The text is not one of this version.
pub fn profile_of_job(text: &str) -> Result<RequestedProfile, FieldError> {
    let value = body::parse(text.as_bytes())?;
    let fields = Fields::new(&value, &Path::ROOT, OBJECT, JOB)?;
    let name = |field| Ok::<_, FieldError>(fields.string(field, "a name")?.map(Arc::from));
    let request = fields.get("request").map(Json::to_string).unwrap_or_default();
    let (config, range) = profile_request_from_wire(request.as_bytes())?;
    let cube = name("cube")?.ok_or_else(|| Path::ROOT.missing("cube"))?;
    Ok(RequestedProfile { cube, dimension: name("dimension")?, range, config })
}

fn date_range(value: &Json, path: &Path<'_>) -> Result<DateRange, FieldError> {
    if let Json::String(words) = value {
        return Ok(DateRange::Words(words.as_str().into()));
    }
    let fields = Fields::new(value, path, RANGE, DATE_RANGE)?;
    let (start, end) = (fields.string("start", DATE)?, fields.string("end", DATE)?);
    if start.is_none() && end.is_none() {
        return Err(path.missing("start"));
    }
    Ok(DateRange::Between(start.map(Into::into), end.map(Into::into)))
}

/// Reads `include_histograms` and `include_insights`, which are true by default.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn profile_parts_from_parameters(query: &str) -> Result<ProfileParts, FieldError> {
    let mut parts = ProfileParts { histograms: true, insights: true };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let flag = || match &*value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Path::ROOT.field(&name).invalid_value(&value, "`true` or `false`")),
        };
        match &*name {
            "include_histograms" => parts.histograms = flag()?,
            "include_insights" => parts.insights = flag()?,
            // The caller's credential, which every route accepts.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, PARAMETERS)),
        }
    }
    Ok(parts)
}

impl ProfileParts {
    /// Returns a stored profile with these parts; the lists of other parts are empty. Returns `None` if the text is
    /// damaged.
    pub fn of(self, text: &str) -> Option<Json> {
        let mut profile: Json = serde_json::from_str(text).ok()?;
        if !self.insights {
            *profile.get_mut("insights")? = Json::Array(Vec::new());
        }
        if !self.histograms {
            for list in ["dimension_profiles", "measure_profiles"] {
                for column in profile.get_mut(list)?.as_array_mut()? {
                    *column.get_mut("histogram")? = Json::Array(Vec::new());
                }
            }
        }
        Some(profile)
    }
}

impl QualityScore {
    /// Returns the score of a stored profile, or `None` if its text is damaged.
    pub fn of(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl ProfileChanges<'static> {
    /// Returns the differences in a stored profile, which the first profile of a range does not have. Returns `None` if
    /// the text is damaged.
    pub fn of(text: &str) -> Option<Option<Self>> {
        #[derive(Deserialize)]
        struct Stored {
            changes: Option<ProfileChanges<'static>>,
        }
        serde_json::from_str::<Stored>(text).ok().map(|stored| stored.changes)
    }
}

impl<'a> DimensionProfile<'a> {
    /// Returns the profile of the first dimension; `None` if the cube profile has no dimensions.
    pub fn of(profile: &'a profiling::CubeProfile) -> Option<Self> {
        let whole = CubeProfile::from(profile);
        Some(DimensionProfile {
            cube_name: whole.cube_name,
            row_count: whole.row_count,
            profiled_at: whole.profiled_at,
            sample_size: whole.sample_size,
            sampling: whole.sampling,
            profile: whole.dimension_profiles.into_iter().next()?,
            overall_quality_score: whole.overall_quality_score,
            quality_scores: whole.quality_scores,
            insights: whole.insights,
            warnings: whole.warnings,
        })
    }
}

impl<'a> From<&'a profiling::ProfileChanges> for ProfileChanges<'a> {
    fn from(changes: &'a profiling::ProfileChanges) -> Self {
        let (before, now) = changes.row_count;
        ProfileChanges {
            since: changes.since.to_string(),
            row_count: CountChange { before: Some(before), now: Some(now) },
            columns: changes.columns.iter().map(ProfileColumnChange::from).collect(),
        }
    }
}

impl<'a> From<&'a profiling::ColumnChange> for ProfileColumnChange<'a> {
    fn from(change: &'a profiling::ColumnChange) -> Self {
        let count = |pair: Option<profiling::Pair<Option<u64>>>| pair.map(|(before, now)| CountChange { before, now });
        ProfileColumnChange {
            name: Cow::Borrowed(&change.name),
            kind: Cow::Borrowed(change.kind.as_str()),
            r#type: change
                .ty
                .as_ref()
                .map(|(before, now)| TypeChange { before: Cow::Borrowed(before), now: Cow::Borrowed(now) }),
            null_count: count(change.null_count),
            distinct_count: count(change.distinct_count),
            new_values: change.new_values.iter().map(|value| Cow::Borrowed(&**value)).collect(),
        }
    }
}

/// Writes profiles as the texts that are stored, and reads summaries from them.
#[derive(Debug, Clone, Copy)]
pub struct StoredProfileTexts;

impl ProfileTexts for StoredProfileTexts {
    fn write(
        &self,
        profile: &profiling::CubeProfile,
        range: &str,
        changes: Option<&profiling::ProfileChanges>,
    ) -> String {
        let changes = changes.map(ProfileChanges::from);
        let stored = StoredCubeProfile { profile: CubeProfile::from(profile), date_range: range, changes };
        // Plain structures with string keys always have a JSON form.
        serde_json::to_string(&stored).unwrap_or_default()
    }

    fn dimension(&self, profile: &profiling::CubeProfile) -> Option<String> {
        serde_json::to_string(&DimensionProfile::of(profile)?).ok()
    }

    fn summary(&self, text: &str) -> Option<ProfileSummary> {
        let profile: Json = serde_json::from_str(text).ok()?;
        let lists = ["dimension_profiles", "measure_profiles"].into_iter().filter_map(|list| profile[list].as_array());
        Some(ProfileSummary {
            profiled_at: profile["profiled_at"].as_str()?.parse().ok()?,
            row_count: profile["row_count"].as_u64()?,
            sample: Some(&profile["sampling"])
                .filter(|json| !json.is_null())
                .map(Json::to_string)
                .unwrap_or_default()
                .into(),
            columns: lists.flatten().map(summary_of).collect::<Option<Vec<_>>>()?,
        })
    }
}

fn summary_of(column: &Json) -> Option<ColumnSummary> {
    let values = column["top_values"].as_array()?.iter().map(|top| match &top["value"] {
        Json::String(text) => Arc::from(text.as_str()),
        other => Arc::from(other.to_string()),
    });
    Some(ColumnSummary {
        name: column["name"].as_str()?.into(),
        ty: column["type"].as_str()?.into(),
        null_count: column["null_count"].as_u64(),
        distinct_count: column["distinct_count"].as_u64(),
        values: values.collect(),
    })
}
