//! A page of a list, given by the number of items before it.

/// The position and the size of a page of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    /// The number of items before the page.
    pub offset: usize,
    /// The largest number of items; `None` for all items.
    pub limit: Option<usize>,
}

impl Page {
    /// Returns the items of the page.
    pub(super) fn of<I: Iterator>(self, items: I) -> impl Iterator<Item = I::Item> {
        items.skip(self.offset).take(self.limit.unwrap_or(usize::MAX))
    }
}
