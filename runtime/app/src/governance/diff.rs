//! Computes the lines in which two strings differ.

/// The largest product of line counts for which the shortest difference is computed.
const MAX_CELLS: usize = 1_000_000;

/// One line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub mark: DiffMark,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffMark {
    Removed,
    Added,
}

impl DiffMark {
    pub fn as_str(self) -> &'static str {
        match self {
            DiffMark::Removed => "removed",
            DiffMark::Added => "added",
        }
    }
}

/// Returns the removed and added lines in their order. Lines that both strings contain are left out.
pub(super) fn diff(before: &str, after: &str) -> Vec<DiffLine> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let (before, after) = (&before[start..], &after[start..]);
    let end = before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let (before, after) = (&before[..before.len() - end], &after[..after.len() - end]);
    let (rows, columns) = (before.len() + 1, after.len() + 1);
    let removed = |text: &&str| DiffLine { mark: DiffMark::Removed, text: (*text).to_owned() };
    let added = |text: &&str| DiffLine { mark: DiffMark::Added, text: (*text).to_owned() };
    if rows.saturating_mul(columns) > MAX_CELLS {
        return before.iter().map(removed).chain(after.iter().map(added)).collect();
    }
    // For each pair of positions, the length of the longest common subsequence of the lines that follow.
    let mut common = vec![0_u32; rows * columns];
    for row in (0..before.len()).rev() {
        for column in (0..after.len()).rev() {
            common[row * columns + column] = if before[row] == after[column] {
                common[(row + 1) * columns + column + 1] + 1
            } else {
                common[(row + 1) * columns + column].max(common[row * columns + column + 1])
            };
        }
    }
    let (mut row, mut column, mut lines) = (0, 0, Vec::new());
    while row < before.len() || column < after.len() {
        let is_same = row < before.len() && column < after.len() && before[row] == after[column];
        if is_same {
            (row, column) = (row + 1, column + 1);
        } else if column == after.len()
            || (row < before.len() && common[(row + 1) * columns + column] >= common[row * columns + column + 1])
        {
            lines.push(removed(&before[row]));
            row += 1;
        } else {
            lines.push(added(&after[column]));
            column += 1;
        }
    }
    lines
}
