//! Analyzes the SELECT list: expressions with their names, and stars.
//!
//! In: one item of the list, and the frame. Out: slots. A star over known columns is replaced by these columns. A star
//! over other relations stays a star, without the columns that it excludes, replaces or renames.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, RenameSelectItem, SelectItem, SelectItemQualifiedWildcardKind,
    WildcardAdditionalOptions,
};

use super::arena::Reason;
use super::relation::{Column, ColumnOrigins, Name, Rest, Slot};
use super::scope::{Analysis, AnalysisResult, Clause, idents};

impl Analysis<'_, '_> {
    /// Returns the columns of one item, and true if the item has an alias.
    pub(super) fn item(&mut self, item: &SelectItem) -> AnalysisResult<(Vec<Slot>, bool)> {
        Ok(match item {
            SelectItem::UnnamedExpr(expr) => {
                if let Some(slots) = self.columns_expression(expr)? {
                    return Ok((slots, false));
                }
                let origins = self.expr(expr, Clause::Select)?;
                (vec![Slot::Column(Column { name: self.made_up_name(expr), origins })], false)
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let origins = self.expr(expr, Clause::Select)?;
                (vec![Slot::column(self.output_name(alias), origins)], true)
            }
            SelectItem::ExprWithAliases { expr, aliases } => {
                let origins = self.expr(expr, Clause::Select)?;
                (aliases.iter().map(|alias| Slot::column(self.output_name(alias), origins.clone())).collect(), true)
            }
            SelectItem::Wildcard(options) => {
                let slots = self.frames.last().map(|frame| frame.slots.clone()).unwrap_or_default();
                (self.starred(slots, options)?, false)
            }
            SelectItem::QualifiedWildcard(of, options) => {
                let slots = self.qualified(of)?;
                (self.starred(slots, options)?, false)
            }
        })
    }

    fn qualified(&mut self, of: &SelectItemQualifiedWildcardKind) -> AnalysisResult<Vec<Slot>> {
        match of {
            SelectItemQualifiedWildcardKind::ObjectName(name) => {
                let path = idents(name);
                let keys: Vec<Arc<str>> = path.iter().map(|ident| self.key(ident)).collect();
                if let Some((mut named, used)) = self.named(&keys)
                    && used == keys.len()
                {
                    if let (Some(only), true) = (named.pop(), named.is_empty()) {
                        return Ok(only.slots);
                    }
                    let reason = Reason::Ambiguous(Arc::clone(&keys[0]));
                    let origins = self.unresolved(reason, path.first().copied());
                    return Ok(vec![Slot::star(Rest::Derived(origins))]);
                }
                // The path leads to a struct, and the star selects its fields.
                let path: Vec<Ident> = path.into_iter().cloned().collect();
                let origins = self.compound(&path, Clause::Select)?;
                Ok(vec![Slot::star(Rest::Derived(origins))])
            }
            SelectItemQualifiedWildcardKind::Expr(expr) => {
                let origins = self.expr(expr, Clause::Select)?;
                Ok(vec![Slot::star(Rest::Derived(origins))])
            }
        }
    }

    /// Returns the columns of a star after its `EXCLUDE`, `REPLACE`, `RENAME` and `ILIKE`.
    fn starred(&mut self, slots: Vec<Slot>, options: &WildcardAdditionalOptions) -> AnalysisResult<Vec<Slot>> {
        self.spend_slots(&slots)?;
        let mut excluded: BTreeSet<Arc<str>> = BTreeSet::new();
        match &options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => excluded.extend(idents(name).last().map(|ident| self.key(ident))),
            Some(ExcludeSelectItem::Multiple(names)) => {
                excluded.extend(names.iter().filter_map(|name| idents(name).last().map(|ident| self.key(ident))));
            }
            None => {}
        }
        if let Some(except) = &options.opt_except {
            excluded.insert(self.key(&except.first_element));
            excluded.extend(except.additional_elements.iter().map(|ident| self.key(ident)));
        }
        let mut replaced: BTreeMap<Arc<str>, (Name, ColumnOrigins)> = BTreeMap::new();
        for element in options.opt_replace.iter().flat_map(|replace| &replace.items) {
            let origins = self.expr(&element.expr, Clause::Select)?;
            let name = self.output_name(&element.column_name);
            replaced.insert(Arc::clone(&name.key), (name, origins));
        }
        let mut renamed: BTreeMap<Arc<str>, (Name, Ident)> = BTreeMap::new();
        let pairs = match &options.opt_rename {
            Some(RenameSelectItem::Single(pair)) => std::slice::from_ref(pair),
            Some(RenameSelectItem::Multiple(pairs)) => pairs,
            None => &[],
        };
        for pair in pairs {
            renamed.insert(self.key(&pair.ident), (self.output_name(&pair.alias), pair.ident.clone()));
        }
        if options.opt_ilike.is_some() && slots.iter().any(Slot::is_open) {
            let origins = self.unresolved(Reason::NotFollowed("ILIKE over unknown columns"), None);
            return Ok(vec![Slot::star(Rest::Derived(origins))]);
        }
        let pattern = options.opt_ilike.as_ref().map(|ilike| ilike.pattern.to_lowercase());
        let all = slots.clone();
        let mut left = Vec::with_capacity(slots.len());
        let mut stars = Vec::new();
        for slot in slots {
            match slot {
                Slot::Star(mut star) => {
                    star.without.extend(excluded.iter().cloned());
                    star.without.extend(replaced.keys().cloned());
                    star.without.extend(renamed.keys().cloned());
                    stars.push(left.len());
                    left.push(Slot::Star(star));
                }
                Slot::Column(mut column) => {
                    let key = column.key().cloned().unwrap_or_default();
                    self.spend(key.len() * pattern.as_ref().map_or(0, String::len))?;
                    let is_left = pattern.as_ref().is_none_or(|pattern| is_like(&key.to_lowercase(), pattern));
                    if excluded.contains(&key) || !is_left {
                        continue;
                    }
                    if let Some((_, origins)) = replaced.remove(&key) {
                        column.origins = origins;
                    }
                    if let Some((name, _)) = renamed.remove(&key) {
                        column.name = Some(name);
                    }
                    left.push(Slot::Column(column));
                }
            }
        }
        // A replaced or renamed column that is not known must be one of the star's unknown columns.
        if !stars.is_empty() {
            for (_, (name, origins)) in replaced {
                left.push(Slot::column(name, origins));
            }
            for (_, (name, ident)) in renamed {
                let origins = self.member_of(&all, &ident)?;
                left.push(Slot::column(name, origins));
            }
        }
        Ok(left)
    }

    /// Returns the slot of DuckDB's `COLUMNS('…')`, which selects columns by a pattern, or `None` for other
    /// expressions.
    fn columns_expression(&mut self, expr: &Expr) -> AnalysisResult<Option<Vec<Slot>>> {
        let Expr::Function(function) = expr else { return Ok(None) };
        let is_it = idents(&function.name).last().is_some_and(|ident| ident.value.eq_ignore_ascii_case("columns"));
        if !is_it || self.warehouse != "duckdb" {
            return Ok(None);
        }
        let origins = self.unresolved(Reason::NotFollowed("COLUMNS(…)"), idents(&function.name).last().copied());
        Ok(Some(vec![Slot::star(Rest::Derived(origins))]))
    }

    /// Returns the name that the engine gives to a column without an alias. Returns `None` if the expression does not
    /// determine the name.
    fn made_up_name(&self, expr: &Expr) -> Option<Name> {
        let is_postgres = matches!(self.warehouse, "postgres" | "redshift");
        let mut at = expr;
        loop {
            match at {
                Expr::Identifier(ident) => return Some(self.output_name(ident)),
                Expr::CompoundIdentifier(idents) => return idents.last().map(|ident| self.output_name(ident)),
                Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last() {
                    Some(sqlparser::ast::AccessExpr::Dot(Expr::Identifier(ident))) => {
                        return Some(self.output_name(ident));
                    }
                    _ => return None,
                },
                Expr::Nested(inner) => at = inner,
                Expr::Cast { expr, .. } if is_postgres => at = expr,
                Expr::Function(function) if is_postgres => {
                    return idents(&function.name).last().map(|ident| self.output_name(ident));
                }
                _ => return None,
            }
        }
    }
}

/// Returns whether a string matches a pattern of LIKE with `%` and `_`.
fn is_like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    let mut matches = vec![false; text.len() + 1];
    matches[0] = true;
    for wanted in pattern {
        let before = matches.clone();
        for at in 0..=text.len() {
            matches[at] = match wanted {
                '%' => before[at] || (at > 0 && matches[at - 1]),
                '_' => at > 0 && before[at - 1],
                other => at > 0 && before[at - 1] && text[at - 1] == other,
            };
        }
    }
    matches[text.len()]
}
