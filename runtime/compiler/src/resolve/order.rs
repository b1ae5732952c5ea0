//! Completes the order of a query: the caller's keys or the default, then the remaining groups.

use super::Resolver;
use super::names::NamedMember;
use crate::query::resolved::{Group, GroupBy, OrderKey, OrderTarget, SelectedValue};
use crate::query::{MemberRef, OrderBy, QueryError};

impl Resolver<'_> {
    /// Returns the sort keys: those of the caller, or else the default, followed by all other groups.
    pub(super) fn order(&self, groups: &[Group], values: &[SelectedValue]) -> Result<Vec<OrderKey>, QueryError> {
        let mut keys: Vec<OrderKey> = Vec::with_capacity(self.query.order.len() + groups.len());
        for OrderBy { member, descending } in &self.query.order {
            let target = self.order_target(member, groups, values)?;
            if !keys.iter().any(|key| key.target == target) {
                keys.push(OrderKey { target, descending: *descending, is_explicit: true });
            }
        }
        // Rows without groups are ordered by their key, which `plan` adds.
        if self.query.ungrouped {
            return Ok(keys);
        }
        if keys.is_empty() {
            if let Some(time) = groups.iter().position(|group| self.is_time(group)) {
                keys.push(OrderKey { target: OrderTarget::Group(time), descending: false, is_explicit: false });
            } else if !values.is_empty() {
                keys.push(OrderKey { target: OrderTarget::Selected(0), descending: true, is_explicit: false });
            }
        }
        for index in 0..groups.len() {
            let target = OrderTarget::Group(index);
            if !keys.iter().any(|key| key.target == target) {
                keys.push(OrderKey { target, descending: false, is_explicit: false });
            }
        }
        Ok(keys)
    }

    fn group_target(&self, name: &MemberRef, by: GroupBy, groups: &[Group]) -> Result<OrderTarget, QueryError> {
        let same = |g: &Group| g.by == by && (name.granularity.is_none() || g.granularity == name.granularity);
        let found = groups.iter().position(same).map(OrderTarget::Group);
        found.ok_or_else(|| QueryError::OrderNotSelected { field: name.text.clone() })
    }

    fn order_target(
        &self,
        name: &MemberRef,
        groups: &[Group],
        values: &[SelectedValue],
    ) -> Result<OrderTarget, QueryError> {
        if let Some(index) = groups.iter().position(|g| g.key == name.text) {
            return Ok(OrderTarget::Group(index));
        }
        if let Some(index) = values.iter().position(|v| v.key == name.text) {
            return Ok(OrderTarget::Selected(index));
        }
        match self.names.operand(name)? {
            NamedMember::Value(value) => Ok(match values.iter().position(|v| v.value == value) {
                Some(index) => OrderTarget::Selected(index),
                None => OrderTarget::Value(value),
            }),
            NamedMember::Dimension(id) => self.group_target(name, GroupBy::Dimension(id), groups),
            NamedMember::MetricTime => self.group_target(name, GroupBy::MetricTime, groups),
            NamedMember::Segment(_) => Err(QueryError::OrderNotSelected { field: name.text.clone() }),
        }
    }
}
