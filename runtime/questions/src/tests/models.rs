//! Models of projects as lines, and drafts as lines, for tables of questions.

use super::*;

/// A project: its members and values, and the date of its newest data.
pub(super) struct Model<'m> {
    /// A line for each member: the kind, the name, names and titles, synonyms, and other properties.
    pub(super) members: &'m str,
    /// The values of dimensions with their numbers of rows.
    pub(super) values: &'m [(&'m str, &'m str, u64)],
    pub(super) newest: Date,
}

impl Model<'_> {
    /// Returns a description of each question that is not read as the expected draft, or that is unclear without
    /// choices.
    pub(super) fn mistakes(&self, questions: &[(&str, &str)]) -> Vec<String> {
        self.mistakes_in("en", questions)
    }

    /// Returns the mistakes for questions in a language.
    pub(super) fn mistakes_in(&self, code: &str, questions: &[(&str, &str)]) -> Vec<String> {
        let language = Language::named(code).unwrap();
        let vocabulary = Vocabulary::new(self.members.lines().map(member).collect(), language);
        let mut mistakes = Vec::new();
        for (question, expected) in questions {
            let first = read(question, &vocabulary, &KnownValues::default(), language, self.newest).unwrap();
            let values = KnownValues { values: self.look_up(&first), searched: Vec::new() };
            let interpretation = read(question, &vocabulary, &values, language, self.newest).unwrap();
            let found = line(&interpretation);
            let has_choices = interpretation.clarifications.iter().all(|one| !one.choices.is_empty());
            if found != *expected || !has_choices {
                let reasons = interpretation.clarifications;
                mistakes.push(format!("{question}\n  expected {expected}\n  found    {found}  {reasons:?}"));
            }
        }
        mistakes
    }

    /// Looks up the words of a question as the application does.
    fn look_up(&self, reading: &Interpretation) -> Vec<KnownValue> {
        let of = |keeps: &dyn Fn(&str) -> bool| {
            let found = self.values.iter().filter(|(_, value, _)| keeps(value));
            let known = found.map(|(member, value, rows)| KnownValue {
                member: (*member).into(),
                value: (*value).into(),
                rows: Some(*rows),
            });
            known.collect::<Vec<KnownValue>>()
        };
        let contains = |value: &str, spelling: &str| value.to_lowercase().contains(&spelling.to_lowercase());
        let mut known = Vec::new();
        for lookup in &reading.lookups {
            let mut found = of(&|value| lookup.spellings.iter().any(|spelling| contains(value, spelling)));
            if found.is_empty() {
                found = of(&|value| lookup.parts.iter().any(|part| contains(value, part)));
            }
            if found.is_empty() {
                found = of(&|value| lookup.is_misspelled(value));
            }
            known.extend(found);
            known.extend(of(&|value| lookup.whole.iter().any(|whole| whole == value)));
        }
        known
    }
}

/// Parses the line of a member.
pub(super) fn member(line: &str) -> MemberEntry {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let (kind, name) = parts[0].split_once(' ').unwrap();
    let list = |at: usize| -> Vec<Arc<str>> {
        let part = parts.get(at).copied().unwrap_or_default();
        part.split(';').map(str::trim).filter(|one| !one.is_empty()).map(Arc::from).collect()
    };
    let name = name.trim();
    let kind = match kind {
        "cube" => MemberKind::Cube,
        "measure" => MemberKind::Measure,
        "metric" => MemberKind::Metric,
        "text" => MemberKind::Text,
        "number" => MemberKind::Number,
        "boolean" => MemberKind::Boolean,
        "segment" => MemberKind::Segment,
        _ => MemberKind::Time,
    };
    let mut entry = MemberEntry {
        kind,
        cube: name.split('.').next().map(Arc::from),
        phrases: list(1),
        synonyms: list(2),
        ..entry(name, kind, "", &[])
    };
    for property in parts.get(3).copied().unwrap_or_default().split_whitespace() {
        match property.split_once('=').unwrap_or((property, "")) {
            ("count", count) => entry.count = Some(count.into()),
            ("label", label) => entry.label = Some(label.into()),
            ("joined", joined) => entry.joined = joined.split(',').map(Arc::from).collect(),
            ("counts", cube) => entry.counts = Some(cube.into()),
            ("combines", dimension) => entry.combines = Some(dimension.into()),
            ("cube", cube) => entry.cube = Some(cube.into()),
            ("filtered", dimension) => entry.filtered_by = vec![dimension.into()],
            ("if", switch) => entry.counted_if = Some(switch.into()),
            ("described", words) => entry.description = Some(words.replace('_', " ").into()),
            ("ratio", measures) => {
                let (one, other) = measures.split_once('/').unwrap();
                entry.ratio = Some((one.into(), other.into()));
            }
            ("unit", "minutes") => entry.unit = Some(Unit::Minutes),
            ("unit", "hours") => entry.unit = Some(Unit::Hours),
            ("unit", "days") => entry.unit = Some(Unit::Days),
            ("unit", unit) => entry.unit = Some(Unit::Named(unit.into())),
            ("aggregation", "count") => entry.aggregation = Some(Aggregation::Count),
            ("aggregation", "sum") => entry.aggregation = Some(Aggregation::Sum),
            ("aggregation", "maximum") => entry.aggregation = Some(Aggregation::Maximum),
            ("aggregation", "minimum") => entry.aggregation = Some(Aggregation::Minimum),
            ("aggregation", "distinct") => entry.aggregation = Some(Aggregation::CountDistinct),
            ("aggregation", _) => entry.aggregation = Some(Aggregation::Average),
            _ => entry.is_share = true,
        }
    }
    entry
}

/// Returns the draft in one line.
pub(super) fn line(reading: &Interpretation) -> String {
    if let Some(first) = reading.clarifications.first() {
        return format!("? {}", first.text);
    }
    let draft = &reading.draft;
    let mut line = draft.values.join(" + ");
    let groups = draft.groups.iter().map(|group| group.member.to_string());
    let groups: Vec<String> = groups.chain(draft.granularity.map(str::to_owned)).collect();
    if !groups.is_empty() {
        line += &format!(" by {}", groups.join(" "));
    }
    let condition = |filter: &DraftFilter| {
        let value = |value: &DraftValue| match value {
            DraftValue::Text(text) => text.to_string(),
            DraftValue::Number(number) => number.to_string(),
            DraftValue::Boolean(value) => value.to_string(),
        };
        let values: Vec<String> = filter.values.iter().map(value).collect();
        format!("{} {} {}", filter.member, filter.operator, values.join(","))
    };
    for filter in &draft.filters {
        line += &format!(" where {}", condition(filter));
    }
    for conditions in &draft.alternatives {
        let shown: Vec<String> = conditions.iter().map(condition).collect();
        line += &format!(" where {}", shown.join(" or "));
    }
    for segment in &draft.segments {
        line += &format!(" where {}", segment.split_once('.').unwrap().1);
    }
    let range = |range: &DraftRange| match range {
        DraftRange::Words(words) => words.to_string(),
        DraftRange::Between(start, end) => {
            format!("{}..{}", start.as_deref().unwrap_or(""), end.as_deref().unwrap_or(""))
        }
    };
    if let Some(found) = &draft.range {
        line += &format!(" in {}", range(found));
    }
    if let Some((first, last)) = &draft.excluded {
        line += &format!(" without {first}..{last}");
    }
    if let Some(time) = &draft.time {
        line += &format!(" of {time}");
    }
    match &draft.compare {
        Some(Comparison::Range(found)) => line += &format!(" vs {}", range(found)),
        Some(Comparison::Shift(interval)) => line += &format!(" vs -{interval}"),
        None => {}
    }
    if let Some(order) = &draft.order {
        line += &format!(" order {} {}", order.member, if order.is_descending { "desc" } else { "asc" });
    }
    if let Some(limit) = draft.limit {
        line += &format!(" limit {limit}");
    }
    if draft.totals {
        line += " totals";
    }
    line
}
