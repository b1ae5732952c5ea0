//! Reads the words of the language: groups, order, comparison, times without a number.

use std::sync::Arc;

use super::{Comparison, DraftRange, Item, ItemKind, NeededMeasure, Over, Ranking, Reader};
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;
use crate::times;

impl Reader<'_> {
    pub(super) fn word(&mut self, at: usize, text: &str, meaning: Meaning) -> usize {
        match meaning {
            Meaning::Ignore if self.is_predicate_word(at) => {
                let message = format!("`{text}` describes rows, but no member is known for it");
                self.unclear(text, message, Vec::new());
                return 1;
            }
            Meaning::From | Meaning::To if self.is_from_nothing(at) => {
                let message = format!("`{text}` has no value after it");
                self.unclear(text, message, Vec::new());
                return 1;
            }
            Meaning::And | Meaning::Ignore | Meaning::From | Meaning::To => return 1,
            // `bookings through the app`
            Meaning::Until
                if self.language.has(WordList::Prepositions, &text.to_lowercase()) && self.precedes_value(at) =>
            {
                return 1;
            }
            Meaning::Verb => return self.verb(at, text),
            Meaning::Best | Meaning::Worst => return self.rated(meaning == Meaning::Best, text),
            Meaning::Aggregate(aggregation) => {
                self.state.aggregate = Some((aggregation, text.to_owned()));
                return 1;
            }
            Meaning::PartOfDay(first, last) => return self.part_of_day(text, first, last),
            // The member after `are` may be a boolean dimension: `flights that were cancelled`.
            Meaning::Equals if self.excludes_groups(text) => {
                let message = format!("`{text}` excludes groups with other rows; a condition selects rows");
                self.unclear(text, message, Vec::new());
                return 1;
            }
            Meaning::Equals => self.state.is_predicate = true,
            Meaning::Which if self.is_relative(at, text) => return 1,
            Meaning::Which => self.state.is_which = true,
            Meaning::HowMany => {
                self.state.is_which = false;
                self.state.counts = Some(text.to_owned());
            }
            Meaning::HowMuch | Meaning::How => {
                self.state.is_which = false;
                let accepts_count = meaning == Meaning::How;
                self.state.needs_measure = Some(NeededMeasure { text: text.to_owned(), accepts_count });
            }
            Meaning::Quality(index) => {
                self.name_rows_of_quality(at);
                self.state.quality =
                    Some(Ranking { index, text: text.to_owned(), candidates: None, is_first: false, is_asked: true });
            }
            Meaning::Change => self.state.change = Some(text.to_owned()),
            Meaning::Season | Meaning::Weekday => return self.vague_time(at, text, meaning),
            Meaning::Calculation => {
                let message = format!("a question cannot calculate `{text}`; a measure of the project can");
                self.unclear(text, message, Vec::new());
                return 1;
            }
            Meaning::Group => return self.group_word(at, text),
            Meaning::Not => {
                self.state.is_negated = true;
                self.state.negation = text.to_owned();
                return 1 + self.repeated_group(at + 1);
            }
            Meaning::Nor => return self.nor(at, text),
            Meaning::Top | Meaning::Bottom => return self.rank(at, text, meaning == Meaning::Top),
            Meaning::Sort => self.state.sorts = true,
            Meaning::Alphabetical => self.state.alphabetical = Some(text.to_owned()),
            // The groups follow, and then `by` with the measure.
            Meaning::RankThings => {
                self.state.rank = Some(true);
                self.state.rank_text = text.to_owned();
                self.state.is_which_group = true;
                self.state.ranks_things = true;
            }
            Meaning::Rank => {
                self.state.sorts = true;
                self.state.rank = Some(true);
            }
            Meaning::Ascending | Meaning::Descending => {
                let is_descending = meaning == Meaning::Descending;
                if let Some(order) = &mut self.draft.order {
                    order.is_descending = is_descending;
                } else {
                    self.state.rank = Some(is_descending);
                }
            }
            Meaning::Versus => self.state.compares = true,
            Meaning::AsOf => {
                let words = [Meaning::Since, Meaning::Until].into_iter().filter_map(|of| self.language.word_for(of));
                let choices = words.map(Arc::from).collect();
                self.unclear(text, format!("`{text}` may be the start or the end of a range"), choices);
                return 1;
            }
            Meaning::Compare => self.state.compares_times = true,
            Meaning::Comparative if self.is_before_time(at) => self.state.compares = true,
            Meaning::Comparative => {
                let message = format!("`{text}` compares periods only, as in `{text} in June`");
                self.unclear(text, message, Vec::new());
                return 1;
            }
            Meaning::Over(unit) => {
                self.state.over = Some(Over { unit, piece: self.pieces.len() });
                self.draft.compare = Some(Comparison::Shift(format!("1 {unit}").into()));
                return self.piece(text, format!("compared with a {unit} before"), 1.0);
            }
            Meaning::VersusLastYear => {
                self.state.compares_last_year = true;
                self.draft.compare = Some(Comparison::Shift("1 year".into()));
                return self.piece(text, "compared with a year before".to_owned(), 1.0);
            }
            Meaning::PreviousPeriod => {
                self.state.compares = false;
                self.draft.compare = Some(Comparison::Shift("".into()));
                return self.piece(text, "compared with the period before".to_owned(), 1.0);
            }
            Meaning::Share => return self.share(at, text),
            Meaning::More | Meaning::AtLeast | Meaning::Less | Meaning::AtMost | Meaning::Between => {
                return self.comparison_without_member(at, text, meaning);
            }
            _ if let Some(length) = self.most_of_unit(at, text) => return length,
            // A unit of time can be the group: `top 5 days`, `which month` and `months with over 100 orders`.
            _ if self.state.sorts && self.sorted_group(text).is_some() => return self.sort_by_group(text),
            _ => match times::unit(meaning) {
                Some(step)
                    if self.state.is_which || self.state.groups || self.ranks_groups() || self.unit_is_group(at) =>
                {
                    self.state.is_which_group |= !self.state.groups;
                    self.note_ranking_behind(at);
                    self.note_ranked(at);
                    self.state.is_which = false;
                    return self.step(text, step);
                }
                // `busiest day of the year`
                Some("year" | "month" | "quarter")
                    if self.state.single.is_some() && self.draft.granularity.is_some() =>
                {
                    return self.piece(text, "ignored".to_owned(), 1.0);
                }
                Some("year") if let Some(length) = self.newest_year(at, text) => return length,
                _ if self.is_hour_group(meaning) => return self.hour_group(at),
                _ if self.is_unit_of_answer(at) => return self.unit_of_answer(text),
                _ => {
                    self.unclear(text, format!("`{text}` has no meaning here"), Vec::new());
                    return 1;
                }
            },
        }
        1
    }

    /// Returns whether a value follows a place. Words such as `the` may be between them.
    fn precedes_value(&self, at: usize) -> bool {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let next = self.items[at + 1..].iter().find(|item| !is_filler(item)).map(|item| &item.kind);
        matches!(next, Some(ItemKind::Value(_) | ItemKind::Quoted))
    }

    /// Returns whether a word such as `who` follows the name that it is about, as in `customers who ordered`.
    fn is_relative(&self, at: usize, text: &str) -> bool {
        let before = at.checked_sub(1).map(|before| &self.items[before].kind);
        // `customers over 50 who are members`
        let follows_name =
            matches!(before, Some(ItemKind::Member(_) | ItemKind::Value(_) | ItemKind::Number(..) | ItemKind::Time(_)));
        follows_name && self.language.has(WordList::Relatives, &text.to_lowercase())
    }

    /// Returns whether a word for an origin or a destination follows `is`, and a number follows it, as in
    /// `products are out of stock`.
    fn is_from_nothing(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| &self.items[before].kind);
        let follows_is = matches!(before, Some(ItemKind::Word(Meaning::Equals | Meaning::Not)));
        let next = self.items.get(at + 1).map(|item| &item.kind);
        let Some(ItemKind::Member(candidates)) = next.filter(|_| follows_is) else { return false };
        use MemberKind::{Measure, Metric, Number};
        candidates.members.iter().all(|index| matches!(self.vocabulary.entry(*index).kind, Measure | Metric | Number))
    }

    /// Returns whether a word such as `only` is about the rows of a group, as in `which airlines fly only from JFK`.
    fn excludes_groups(&self, text: &str) -> bool {
        let is_only = self.language.has(WordList::Only, &text.to_lowercase());
        is_only && self.state.is_which_group && !self.draft.groups.is_empty() && self.state.rank.is_none()
    }

    /// Returns whether a word that adds nothing elsewhere describes rows, as in `classes that were full`: it follows
    /// `is`, and no name follows it. A preposition is such a word only at the end, as in `machines that are on`.
    fn is_predicate_word(&self, at: usize) -> bool {
        let lower = self.items[at].text.to_lowercase();
        let before = at.checked_sub(1).map(|before| &self.items[before].kind);
        let follows_is = matches!(before, Some(ItemKind::Word(Meaning::Equals | Meaning::Not)));
        let is_end = match self.items.get(at + 1).map(|item| &item.kind) {
            None => true,
            Some(ItemKind::Word(_) | ItemKind::Step(..) | ItemKind::Time(_)) => {
                self.language.has(WordList::Predicates, &lower)
            }
            Some(_) => false,
        };
        let is_listed =
            self.language.has(WordList::Predicates, &lower) || self.language.has(WordList::Prepositions, &lower);
        follows_is && is_end && is_listed
    }

    /// Reads a time without fixed bounds, such as `summer`, by a question back. Returns the number of items read.
    fn vague_time(&mut self, at: usize, text: &str, meaning: Meaning) -> usize {
        // `summer, June to August` gives the months itself, but `summer of 2013` does not.
        let is_comma = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::And));
        let next = self.items[at + 1..].iter().find(|item| !is_comma(item));
        // `did revenue fall in June` has a verb.
        let starts_plainly = |item: &Item| {
            let first = self.language.stem(&item.text.split(' ').next().unwrap_or_default().to_lowercase());
            !matches!(self.language.phrase(&[&first]), Some((_, Meaning::Ignore)))
        };
        let is_months = |item: &Item| {
            matches!(&item.kind, ItemKind::Time(time) if is_part_of_year(&time.range)) && starts_plainly(item)
        };
        if meaning == Meaning::Season && next.is_some_and(is_months) {
            return self.piece(text, "the time after it".to_owned(), 0.9);
        }
        if meaning == Meaning::Weekday
            && let Some(length) = self.weekday_group(text)
        {
            return length;
        }
        let message = match meaning {
            Meaning::Weekday if self.state.is_which || self.state.groups => {
                format!("`{text}` is a day of the week, but no dimension of the project has it")
            }
            Meaning::Season => format!("the months of `{text}` are not fixed; write them, as in `from June to August`"),
            _ => format!("`{text}` is not a range of time; a question cannot select weekdays"),
        };
        let choices = self.choices_of(MemberKind::Time);
        self.unclear(text, message, choices);
        1
    }

    /// Reads a step of time. An hour is the hour of the day, if the main cube has this dimension. Returns the number of
    /// items read.
    pub(super) fn step_or_hour(&mut self, at: usize, text: &str, step: &'static str) -> usize {
        let is_of_day = step == "hour" && self.is_hour_of_day(at);
        if step != "hour" || (self.hour_dimensions().is_empty() && !is_of_day) {
            return self.step(text, step);
        }
        self.hour_group(at)
    }

    /// Returns whether a unit of time is the group of the comparison or ranking that follows, as in `months with more
    /// than 100 orders`.
    fn unit_is_group(&self, at: usize) -> bool {
        use Meaning::{AtLeast, AtMost, Best, Bottom, Less, More, Top, Worst};
        let is_open = self.draft.values.is_empty() && self.draft.groups.is_empty() && self.draft.granularity.is_none();
        let is_filler = |item: &&Item| {
            matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Verb | Meaning::Equals) | ItemKind::Member(_))
        };
        let rest = &self.items[at + 1..];
        let next = rest.iter().take_while(is_filler).count();
        let is_ranked = matches!(
            rest.get(next).map(|item| &item.kind),
            Some(ItemKind::Superlative(..) | ItemKind::Word(Top | Bottom | Best | Worst))
        );
        let is_compared =
            matches!(rest.get(next).map(|item| &item.kind), Some(ItemKind::Word(More | Less | AtLeast | AtMost)))
                && matches!(rest.get(next + 1).map(|item| &item.kind), Some(ItemKind::Number(..)));
        is_open && (is_ranked || is_compared)
    }

    pub(super) fn step(&mut self, text: &str, step: &'static str) -> usize {
        // A second granularity is unclear, as in `by day of the week`.
        if let Some(other) = self.draft.granularity.filter(|other| *other != step) {
            let message = format!("a question has one step of time, but `{text}` follows `{other}`");
            self.unclear(text, message, vec![other.into(), step.into()]);
            return 1;
        }
        self.draft.granularity = Some(step);
        self.piece(text, format!("grouped by {step}"), 1.0)
    }
}

/// Returns whether a range has its own first and last month, and is not a year.
fn is_part_of_year(range: &DraftRange) -> bool {
    match range {
        DraftRange::Words(words) => words.len() > YEAR_CHARS && words.starts_with(|c: char| c.is_ascii_digit()),
        DraftRange::Between(start, end) => start.is_some() && end.is_some(),
    }
}

/// The number of digits of a year.
const YEAR_CHARS: usize = 4;
