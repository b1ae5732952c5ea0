//! Joins names of one member that overlap in a question.

use crate::members::MemberMatch;

use super::place::Place;

impl Place<'_> {
    /// Returns a longer match if another name of the same members begins inside the first one and ends after it. In
    /// `total claimed amount`, the names `total claimed` and `claimed amount` are one.
    pub(super) fn overlapping(&self, length: usize, found: MemberMatch) -> (usize, MemberMatch) {
        let stems = self.stems();
        let longer = |start: usize| {
            let other = self.context.vocabulary.exact(&stems[start..])?;
            let is_same = |index: &usize| other.members.contains(index);
            let reaches = start + other.length > length && found.members.iter().any(is_same);
            reaches.then(|| (start + other.length, other))
        };
        let Some((length, other)) = (1..length).find_map(longer) else { return (length, found) };
        let keep = |members: Vec<usize>| members.into_iter().filter(|index| other.members.contains(index)).collect();
        let MemberMatch { members, by_synonym, by_name, is_exact, .. } = found;
        let (members, by_synonym, by_name) = (keep(members), keep(by_synonym), keep(by_name));
        (length, MemberMatch { length, members, by_synonym, by_name, is_exact })
    }
}
