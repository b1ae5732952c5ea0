//! Reads the data file of a language.

use std::collections::HashMap;

use super::{Direction, Language, Meaning, NamedDay, Superlative, WordList};
use crate::draft::{Aggregation, Desired};

/// The keys of the lists whose phrases have one meaning each.
pub(super) const MEANINGS: [(&str, Meaning); 84] = [
    ("group", Meaning::Group),
    ("and", Meaning::And),
    ("top", Meaning::Top),
    ("bottom", Meaning::Bottom),
    ("best", Meaning::Best),
    ("worst", Meaning::Worst),
    ("average", Meaning::Aggregate(Aggregation::Average)),
    ("total", Meaning::Aggregate(Aggregation::Sum)),
    ("maximum", Meaning::Aggregate(Aggregation::Maximum)),
    ("minimum", Meaning::Aggregate(Aggregation::Minimum)),
    ("distinct", Meaning::Aggregate(Aggregation::CountDistinct)),
    ("ascending", Meaning::Ascending),
    ("descending", Meaning::Descending),
    ("sort", Meaning::Sort),
    ("alphabetical", Meaning::Alphabetical),
    ("rank", Meaning::Rank),
    ("rank_things", Meaning::RankThings),
    ("more", Meaning::More),
    ("at_least", Meaning::AtLeast),
    ("less", Meaning::Less),
    ("at_most", Meaning::AtMost),
    ("between", Meaning::Between),
    ("equals", Meaning::Equals),
    ("not", Meaning::Not),
    ("nor_words", Meaning::Nor),
    ("contains", Meaning::Contains),
    ("starts_with", Meaning::StartsWith),
    ("ends_with", Meaning::EndsWith),
    ("missing", Meaning::Missing),
    ("since", Meaning::Since),
    ("until", Meaning::Until),
    ("ago", Meaning::Ago),
    ("as_of", Meaning::AsOf),
    ("before", Meaning::Before),
    ("after", Meaning::After),
    ("from", Meaning::From),
    ("to", Meaning::To),
    ("last", Meaning::Last),
    ("previous", Meaning::Previous),
    ("this", Meaning::This),
    ("today", Meaning::Today),
    ("yesterday", Meaning::Yesterday),
    ("versus", Meaning::Versus),
    ("comparative", Meaning::Comparative),
    ("compare", Meaning::Compare),
    ("previous_period", Meaning::PreviousPeriod),
    ("year_over_year", Meaning::Over("year")),
    ("quarter_over_quarter", Meaning::Over("quarter")),
    ("month_over_month", Meaning::Over("month")),
    ("week_over_week", Meaning::Over("week")),
    ("day_over_day", Meaning::Over("day")),
    ("versus_last_year", Meaning::VersusLastYear),
    ("share", Meaning::Share),
    ("which", Meaning::Which),
    ("how_many", Meaning::HowMany),
    ("how_much", Meaning::HowMuch),
    ("how", Meaning::How),
    ("change", Meaning::Change),
    ("seasons", Meaning::Season),
    ("weekdays", Meaning::Weekday),
    ("calculations", Meaning::Calculation),
    ("lone_particles", Meaning::Particle),
    ("ignore", Meaning::Ignore),
    ("verbs", Meaning::Verb),
    ("percent", Meaning::Percent),
    ("half", Meaning::Half),
    ("am", Meaning::Am),
    ("pm", Meaning::Pm),
    ("o_clock", Meaning::OClock),
    ("second", Meaning::Second),
    ("minute", Meaning::Minute),
    ("hour", Meaning::Hour),
    ("day", Meaning::Day),
    ("week", Meaning::Week),
    ("month", Meaning::Month),
    ("quarter", Meaning::Quarter),
    ("year", Meaning::Year),
    ("daily", Meaning::Daily),
    ("weekly", Meaning::Weekly),
    ("monthly", Meaning::Monthly),
    ("quarterly", Meaning::Quarterly),
    ("yearly", Meaning::Yearly),
    ("hourly", Meaning::Hourly),
    ("over_time", Meaning::OverTime),
];

/// The keys of the lists of single words.
pub(super) const LISTS: [(&str, WordList); 52] = [
    ("links", WordList::Links),
    ("unit_words", WordList::UnitWords),
    ("first_words", WordList::First),
    ("or_words", WordList::Or),
    ("possession", WordList::Possession),
    ("lack_words", WordList::Lack),
    ("things", WordList::Things),
    ("name_nouns", WordList::NameNouns),
    ("new_words", WordList::New),
    ("age_comparisons", WordList::AgeComparisons),
    ("age_names", WordList::AgeNames),
    ("participles", WordList::Participles),
    ("auxiliaries", WordList::Auxiliaries),
    ("from_verbs", WordList::FromVerbs),
    ("to_verbs", WordList::ToVerbs),
    ("comparison_openers", WordList::Openers),
    ("than_words", WordList::Than),
    ("end_words", WordList::End),
    ("after_words", WordList::After),
    ("since_words", WordList::Since),
    ("onward_words", WordList::Onward),
    ("span_words", WordList::Span),
    ("particles", WordList::Particles),
    ("phrasal_verbs", WordList::PhrasalVerbs),
    ("last_particles", WordList::LastParticles),
    ("nor_words", WordList::Nor),
    ("neither_words", WordList::Neither),
    ("plain_particles", WordList::PlainParticles),
    ("but_words", WordList::But),
    ("all_words", WordList::All),
    ("state_verbs", WordList::States),
    ("dated_verbs", WordList::DatedVerbs),
    ("presence_words", WordList::Presence),
    ("relative_words", WordList::Relatives),
    ("person_words", WordList::Persons),
    ("amount_words", WordList::Amounts),
    ("occurrence_verbs", WordList::Occurrences),
    ("asked_times", WordList::AskedTimes),
    ("example_words", WordList::Examples),
    ("each_words", WordList::Each),
    ("only_words", WordList::Only),
    ("predicates", WordList::Predicates),
    ("prepositions", WordList::Prepositions),
    ("possessives", WordList::Possessives),
    ("object_words", WordList::Objects),
    ("as_words", WordList::As),
    ("share_nouns", WordList::ShareNouns),
    ("naming_words", WordList::Naming),
    ("condition_words", WordList::Conditions),
    ("per_words", WordList::Per),
    ("lack_values", WordList::LackOfValue),
    ("lack_prefixes", WordList::LackPrefixes),
];

impl Language {
    pub(super) fn parse(name: &'static str, text: &str) -> Language {
        let mut language = Language {
            name,
            endings: Vec::new(),
            derivations: Vec::new(),
            numbers: HashMap::new(),
            decimal_sign: '.',
            thousands_sign: ',',
            has_dates_with_points: false,
            ordinals: HashMap::new(),
            lists: HashMap::new(),
            superlatives: Vec::new(),
            comparatives: HashMap::new(),
            compared_verbs: HashMap::new(),
            sum_verbs: HashMap::new(),
            unit_suffixes: HashMap::new(),
            scales: HashMap::new(),
            unit_names: HashMap::new(),
            named_days: Vec::new(),
            desired: Vec::new(),
            directions: HashMap::new(),
            same: HashMap::new(),
            phrases: HashMap::new(),
        };
        let lines = || text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "));
        // Stems depend on the endings, and roots on the derivations.
        for first in ["endings", "same", "derivations"] {
            lines().filter(|(key, _)| *key == first).for_each(|(key, list)| language.add_line(key, list));
        }
        lines().for_each(|(key, list)| language.add_line(key, list));
        for phrases in language.phrases.values_mut() {
            phrases.sort_by_key(|(stems, _)| std::cmp::Reverse(stems.len()));
        }
        language
    }

    /// Adds a line of the data file. Unknown keys are ignored; a test compares the keys with the meanings.
    fn add_line(&mut self, key: &str, list: &str) {
        let parts: Vec<&str> = list.split('|').map(str::trim).collect();
        match key {
            "endings" => self.add_endings(&parts),
            "same" => self.add_synonyms(&parts),
            "derivations" => {
                self.derivations = parts.iter().map(|part| (*part).to_owned()).collect();
                self.derivations.sort_by_key(|ending| std::cmp::Reverse(ending.len()));
            }
            "numbers" => {
                let named = (0_u32..).zip(parts);
                self.numbers.extend(named.map(|(number, word)| (word.to_owned(), f64::from(number))));
            }
            "decimal_sign" => self.decimal_sign = list.chars().next().unwrap_or('.'),
            "thousands_sign" => self.thousands_sign = list.chars().next().unwrap_or(','),
            "dates" => self.has_dates_with_points = list == "day.month.year",
            "ordinals" => {
                let words =
                    (1_u8..).zip(parts).flat_map(|(number, words)| words.split(' ').map(move |of| (of, number)));
                self.ordinals.extend(words.map(|(word, number)| (word.to_owned(), number)));
            }
            "from_names" => self.add_directions(&parts, Direction::From),
            "to_names" => self.add_directions(&parts, Direction::To),
            "desired_high" => self.add_desired(&parts, Desired::High),
            "desired_low" => self.add_desired(&parts, Desired::Low),
            "superlatives_high" => parts.iter().for_each(|part| self.add_superlative(part, true, Meaning::Superlative)),
            "superlatives_low" => parts.iter().for_each(|part| self.add_superlative(part, false, Meaning::Superlative)),
            "how_qualities" => parts.iter().for_each(|part| self.add_superlative(part, true, Meaning::Quality)),
            "comparatives" => parts.iter().for_each(|part| self.add_comparative(part)),
            "compared_verbs" => parts.iter().for_each(|part| {
                let (verbs, qualities) = self.qualities_of(part);
                self.compared_verbs.extend(verbs.into_iter().map(|verb| (verb, qualities.clone())));
            }),
            "sum_verbs" => parts.iter().for_each(|part| {
                let (verbs, names) = self.qualities_of(part);
                self.sum_verbs.extend(verbs.into_iter().map(|verb| (verb, names.clone())));
            }),
            "unit_suffixes" => {
                for (words, unit) in parts.iter().filter_map(|part| part.split_once('>')) {
                    let stem = self.stem(unit);
                    self.unit_suffixes.extend(words.split(' ').map(|word| (word.to_owned(), stem.clone())));
                }
            }
            "scales" => {
                let pairs = parts.iter().filter_map(|part| part.split_once('>'));
                let parsed = pairs.filter_map(|(words, factor)| Some((words, factor.parse::<f64>().ok()?)));
                for (words, factor) in parsed {
                    self.scales.extend(words.split(' ').map(|word| (word.to_owned(), factor)));
                }
            }
            "unit_names" => parts.iter().for_each(|part| self.add_unit_name(part)),
            "verbs" => list.split_whitespace().for_each(|verb| self.add(verb, Meaning::Verb)),
            "named_days" => parts.iter().for_each(|part| self.add_named_day(part)),
            "parts_of_day" => parts.iter().for_each(|part| self.add_part_of_day(part)),
            "months" => {
                for (number, names) in (1_u8..).zip(parts) {
                    names.split(' ').for_each(|month| self.add(month, Meaning::MonthName(number)));
                }
            }
            _ => {
                if let Some((_, list)) = LISTS.into_iter().find(|(known, _)| *known == key) {
                    self.lists.insert(list, parts.iter().map(|part| (*part).to_owned()).collect());
                }
                let found = MEANINGS.into_iter().find(|(known, _)| *known == key);
                if let Some((_, meaning)) = found {
                    parts.iter().for_each(|phrase| self.add(phrase, meaning));
                }
            }
        }
    }

    fn add_endings(&mut self, parts: &[&str]) {
        let pairs = parts.iter().map(|ending| ending.split_once('>').unwrap_or((ending, "")));
        self.endings = pairs.map(|(ending, replacement)| (ending.to_owned(), replacement.to_owned())).collect();
        self.endings.sort_by_key(|(ending, _)| std::cmp::Reverse(ending.len()));
    }

    fn add_synonyms(&mut self, parts: &[&str]) {
        for (word, same) in parts.iter().filter_map(|pair| pair.split_once('>')) {
            let (word, same) = (self.without_ending(word), self.without_ending(same));
            self.same.insert(word, same);
        }
    }

    fn add_directions(&mut self, parts: &[&str], direction: Direction) {
        let stems: Vec<String> = parts.iter().map(|word| self.stem(word)).collect();
        self.directions.extend(stems.into_iter().map(|stem| (stem, direction)));
    }

    fn add_desired(&mut self, parts: &[&str], desired: Desired) {
        let roots_of = |phrase: &&str| phrase.split(' ').map(|word| self.root(&self.stem(word))).collect();
        let phrases: Vec<Vec<String>> = parts.iter().map(roots_of).collect();
        self.desired.extend(phrases.into_iter().map(|roots| (roots, desired)));
    }

    /// Adds a line part such as `fastest>speed velocity -time` or `how fast>speed velocity`. `+time` and `-time` are
    /// for measures in units of time, which the adjective orders in the same or in the opposite direction.
    fn add_superlative(&mut self, part: &str, is_descending: bool, meaning: fn(u16) -> Meaning) {
        let (phrases, qualities) = part.split_once('>').unwrap_or((part, ""));
        let is_sign = |word: &&str| matches!(*word, "+time" | "-time");
        let sign = qualities.split_whitespace().find(is_sign);
        let is_descending_in_time = sign.map(|sign| is_descending == (sign == "+time"));
        let words = qualities.split_whitespace().filter(|word| !is_sign(word));
        let qualities = words.map(|word| self.stem(word)).collect();
        let Ok(index) = u16::try_from(self.superlatives.len()) else { return };
        self.superlatives.push(Superlative { qualities, is_descending, is_descending_in_time });
        phrases.split('/').for_each(|phrase| self.add(phrase, meaning(index)));
    }

    /// Adds a line part such as `older>age`.
    fn add_comparative(&mut self, part: &str) {
        let (words, qualities) = self.qualities_of(part);
        self.comparatives.extend(words.into_iter().map(|word| (word, qualities.clone())));
    }

    /// Splits a line part such as `older/younger>age` into its words and the stems of their qualities.
    fn qualities_of(&self, part: &str) -> (Vec<String>, Vec<String>) {
        let (words, qualities) = part.split_once('>').unwrap_or((part, ""));
        let qualities = qualities.split_whitespace().map(|word| self.stem(word)).collect();
        (words.split('/').map(str::to_owned).collect(), qualities)
    }

    /// Adds a line part such as `degrees>°F °C`.
    fn add_unit_name(&mut self, part: &str) {
        if let Some((word, units)) = part.split_once('>') {
            self.unit_names.insert(self.stem(word), units.split_whitespace().map(str::to_owned).collect());
        }
    }

    /// Adds a day such as `christmas day=12-25`, or `labor day=09-1-1` for the first Monday of September.
    fn add_named_day(&mut self, part: &str) {
        let Some((name, date)) = part.split_once('=') else { return };
        let numbers: Vec<i8> = date.split('/').filter_map(|number| number.parse().ok()).collect();
        let day = match numbers[..] {
            [month, day] => NamedDay::Fixed(month, day),
            [month, nth, weekday] => NamedDay::Weekday(month, nth, weekday),
            _ => return,
        };
        let Ok(index) = u16::try_from(self.named_days.len()) else { return };
        self.named_days.push(day);
        self.add(name, Meaning::NamedDay(index));
    }

    /// Adds a part of the day such as `morning=5-11`.
    fn add_part_of_day(&mut self, part: &str) {
        if let Some((name, hours)) = part.split_once('=')
            && let Some((first, last)) = hours.split_once('-')
            && let (Ok(first), Ok(last)) = (first.parse(), last.parse())
        {
            name.split('/').for_each(|name| self.add(name, Meaning::PartOfDay(first, last)));
        }
    }

    fn add(&mut self, phrase: &str, meaning: Meaning) {
        let stems: Vec<String> = phrase.split_whitespace().map(|word| self.stem(word)).collect();
        if let Some(first) = stems.first().cloned() {
            self.phrases.entry(first).or_default().push((stems, meaning));
        }
    }
}
