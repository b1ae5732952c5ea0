//! Analyzes queries: CTEs, set operations, and SELECT.
//!
//! In: a query's tree. Out: its columns with their origins, and the columns that its rows depend on. A chain of set
//! operations is nested on the left side of the tree, so it is followed in a loop instead of by recursion.

use std::sync::Arc;

use sqlparser::ast::{
    ConnectByKind, Cte, Distinct, Expr, GroupByExpr, Ident, LimitClause, NamedWindowExpr, OrderBy, OrderByKind, Query,
    Select, SelectItem, SetExpr, SetOperator, SetQuantifier, TableAlias, Values,
};

use super::arena::Reason;
use super::from::as_relation;
use super::relation::{Column, ColumnOrigins, Name, Relation, Slot, Use};
use super::scope::{Analysis, AnalysisResult, Clause, Exhausted, Frame, MAX_SLOTS, NamedQuery};

impl Analysis<'_, '_> {
    /// Returns a query's columns. Adds the columns that its rows depend on to the uses of the enclosing relation.
    pub(crate) fn query(&mut self, query: &Query) -> AnalysisResult<Vec<Slot>> {
        self.spend(1)?;
        let before = self.ctes.len();
        let slots = self.query_within(query);
        self.ctes.truncate(before);
        slots
    }

    fn query_within(&mut self, query: &Query) -> AnalysisResult<Vec<Slot>> {
        if let Some(with) = &query.with {
            // Some engines allow recursion without the word `RECURSIVE`.
            let may_be_recursive = with.recursive || matches!(self.warehouse, "sqlite" | "snowflake");
            let around = std::mem::take(&mut self.later);
            for (at, cte) in with.cte_tables.iter().enumerate() {
                let later = with.cte_tables[at + 1..].iter().filter(|_| with.recursive);
                self.later = later.map(|cte| self.key(&cte.alias.name)).collect();
                self.cte(cte, may_be_recursive)?;
            }
            self.later = around;
        }
        let limit_by: &[Expr] = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit_by, .. }) => limit_by,
            _ => &[],
        };
        self.limits(query)?;
        let mut slots = match &*query.body {
            SetExpr::Select(select) => self.select(select, query.order_by.as_ref(), limit_by)?,
            body => {
                let slots = self.set_expr(body)?;
                self.order_of_slots(&slots, query.order_by.as_ref())?;
                slots
            }
        };
        if !query.pipe_operators.is_empty() {
            self.blur(&mut slots, Reason::NotFollowed("the pipe syntax"));
        }
        Ok(slots)
    }

    /// Adds the columns that LIMIT, OFFSET and FETCH depend on.
    fn limits(&mut self, query: &Query) -> AnalysisResult<()> {
        let mut counts: Vec<&Expr> = Vec::new();
        match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                counts.extend(limit.iter().chain(offset.iter().map(|offset| &offset.value)));
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => counts.extend([offset, limit]),
            None => {}
        }
        counts.extend(query.fetch.iter().filter_map(|fetch| fetch.quantity.as_ref()));
        counts.into_iter().try_for_each(|count| self.used(count, Use::Filter, Clause::Where))
    }

    /// Adds an unresolved origin to all columns and to the rows, because the query was analyzed only in part.
    fn blur(&mut self, slots: &mut [Slot], reason: Reason) {
        let unresolved = self.unresolved(reason, None);
        for slot in slots {
            if let Slot::Column(column) = slot {
                column.origins.extend(&unresolved);
            }
        }
        self.uses.extend(unresolved.into_iter().map(|origin| (Use::Filter, origin)));
    }

    fn cte(&mut self, cte: &Cte, may_be_recursive: bool) -> AnalysisResult<()> {
        let name = self.key(&cte.alias.name);
        let around = std::mem::take(&mut self.uses);
        let slots = if may_be_recursive && matches!(*cte.query.body, SetExpr::SetOperation { .. }) {
            self.recursive(cte, &name)?
        } else {
            let slots = as_relation(self.query(&cte.query)?, self.warehouse);
            self.renamed(slots, &cte.alias)?
        };
        let uses = std::mem::replace(&mut self.uses, around);
        self.ctes.push(NamedQuery { name, relation: Relation { slots, uses }, is_open: false });
        Ok(())
    }

    /// Analyzes a recursive query. The analysis begins with the columns of the first part, and adds the origins of the
    /// recursive part until no new origin appears.
    fn recursive(&mut self, cte: &Cte, name: &Arc<str>) -> AnalysisResult<Vec<Slot>> {
        let before = self.ctes.len();
        for inner in cte.query.with.iter().flat_map(|with| &with.cte_tables) {
            self.cte(inner, false)?;
        }
        let mut first = &*cte.query.body;
        while let SetExpr::SetOperation { left, .. } = first {
            first = left;
        }
        let first = self.operand(first)?;
        self.ctes.truncate(before);
        let mut slots = self.renamed(first, &cte.alias)?;
        let was_recursive = std::mem::take(&mut self.is_recursive);
        loop {
            self.spend_slots(&slots)?;
            let relation = Relation { slots: slots.clone(), ..Relation::default() };
            self.ctes.push(NamedQuery { name: Arc::clone(name), relation, is_open: true });
            let next = self.query(&cte.query)?;
            self.ctes.truncate(before);
            let next = self.renamed(next, &cte.alias)?;
            let count = |slots: &[Slot]| -> usize { slots.iter().map(|slot| slot.origins().len()).sum() };
            let is_done = !self.is_recursive || count(&next) <= count(&slots);
            slots = next;
            if is_done {
                break;
            }
        }
        self.is_recursive |= was_recursive;
        Ok(slots)
    }

    /// Gives the first columns the names of an alias such as `t(a, b)`.
    pub(super) fn renamed(&mut self, mut slots: Vec<Slot>, alias: &TableAlias) -> AnalysisResult<Vec<Slot>> {
        if alias.columns.is_empty() {
            return Ok(slots);
        }
        if let [Slot::Star(star)] = slots.as_slice()
            && let super::relation::Rest::Derived(origins) = &star.of
        {
            let origins = origins.clone();
            let named =
                alias.columns.iter().map(|column| Slot::column(self.output_name(&column.name), origins.clone()));
            return Ok(named.collect());
        }
        let mut is_open = false;
        for (index, column) in alias.columns.iter().enumerate() {
            is_open |= slots.get(index).is_some_and(Slot::is_open);
            let name = Some(self.output_name(&column.name));
            match slots.get_mut(index) {
                Some(Slot::Column(column)) if !is_open => column.name = name,
                _ => {
                    let reason = Reason::Positions("a list of column names");
                    let origins = self.unresolved(reason, Some(&column.name));
                    let slot = Slot::Column(Column { name, origins });
                    if index < slots.len() {
                        slots[index] = slot;
                    } else {
                        slots.push(slot);
                    }
                }
            }
        }
        Ok(slots)
    }

    fn set_expr(&mut self, body: &SetExpr) -> AnalysisResult<Vec<Slot>> {
        let mut pending = Vec::new();
        let mut at = body;
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = at {
            pending.push((*op, *set_quantifier, &**right));
            at = left;
        }
        let mut slots = self.operand(at)?;
        while let Some((op, quantifier, right)) = pending.pop() {
            let right = self.set_expr(right)?;
            slots = self.combined(slots, op, quantifier, right)?;
        }
        Ok(slots)
    }

    fn operand(&mut self, body: &SetExpr) -> AnalysisResult<Vec<Slot>> {
        match body {
            SetExpr::Select(select) => self.select(select, None, &[]),
            SetExpr::Query(query) => self.query(query),
            SetExpr::Values(values) => self.values(values),
            SetExpr::Table(table) => {
                let parts: Vec<Ident> =
                    table.schema_name.iter().chain(&table.table_name).map(|part| Ident::new(part.clone())).collect();
                self.table(&parts.iter().collect::<Vec<_>>())
            }
            SetExpr::SetOperation { .. } => self.set_expr(body),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                let origins = self.unresolved(Reason::NotFollowed("a statement that changes rows"), None);
                Ok(vec![Slot::star(super::relation::Rest::Derived(origins))])
            }
        }
    }

    fn combined(
        &mut self,
        mut left: Vec<Slot>,
        op: SetOperator,
        quantifier: SetQuantifier,
        right: Vec<Slot>,
    ) -> AnalysisResult<Vec<Slot>> {
        self.spend_slots(&left)?;
        self.spend_slots(&right)?;
        // The right side only decides which rows of the left side remain. All columns are compared.
        if matches!(op, SetOperator::Except | SetOperator::Minus | SetOperator::Intersect) {
            self.use_all(Use::Filter, &left)?;
            self.use_all(Use::Filter, &right)?;
            return Ok(left);
        }
        if !matches!(quantifier, SetQuantifier::All | SetQuantifier::AllByName) {
            self.use_all(Use::Group, &left)?;
            self.use_all(Use::Group, &right)?;
        }
        let is_by_name =
            matches!(quantifier, SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName);
        if left.iter().chain(&right).any(Slot::is_open) {
            self.blur(&mut left, Reason::Positions("a set operation"));
            return Ok(left);
        }
        if is_by_name {
            for slot in right {
                let Slot::Column(column) = slot else { continue };
                let same = left.iter_mut().find_map(|slot| match slot {
                    Slot::Column(own) if own.key().is_some() && own.key() == column.key() => Some(own),
                    _ => None,
                });
                match same {
                    Some(own) => own.origins.extend(column.origins),
                    None => left.push(Slot::Column(column)),
                }
            }
            return Ok(left);
        }
        let columns = |slots: Vec<Slot>| -> Vec<Column> {
            let columns = slots.into_iter().filter_map(|slot| match slot {
                Slot::Column(column) => Some(column),
                Slot::Star(_) => None,
            });
            columns.collect()
        };
        let (mut left, right) = (columns(left), columns(right));
        let differ = Reason::Count { left: left.len(), right: right.len() };
        let is_even = left.len() == right.len();
        for (own, other) in left.iter_mut().zip(right) {
            own.origins.extend(other.origins);
        }
        let mut slots: Vec<Slot> = left.into_iter().map(Slot::Column).collect();
        if !is_even {
            self.blur(&mut slots, differ);
        }
        Ok(slots)
    }

    fn values(&mut self, values: &Values) -> AnalysisResult<Vec<Slot>> {
        let mut columns: Vec<ColumnOrigins> = Vec::new();
        for row in &values.rows {
            for (index, value) in row.content.iter().enumerate() {
                let origins = self.expr(value, Clause::Where)?;
                if index == columns.len() {
                    columns.push(ColumnOrigins::new());
                }
                columns[index].extend(origins);
            }
        }
        let named = columns.into_iter().enumerate().map(|(index, origins)| {
            let name = match self.warehouse {
                "duckdb" => format!("col{index}"),
                "mysql" | "mariadb" => format!("column_{index}"),
                _ => format!("column{}", index + 1),
            };
            let name: Arc<str> = name.into();
            Slot::column(Name { key: Arc::clone(&name), shown: name }, origins)
        });
        Ok(named.collect())
    }

    fn order_of_slots(&mut self, slots: &[Slot], order_by: Option<&OrderBy>) -> AnalysisResult<()> {
        if order_by.is_none() {
            return Ok(());
        }
        self.frames.push(Frame { slots: slots.to_vec(), ..Frame::default() });
        let outcome = self.order(order_by, slots);
        self.frames.pop();
        outcome
    }

    fn order(&mut self, order_by: Option<&OrderBy>, slots: &[Slot]) -> AnalysisResult<()> {
        match order_by.map(|order_by| &order_by.kind) {
            None => Ok(()),
            Some(OrderByKind::All(_)) => self.use_all(Use::Order, slots),
            Some(OrderByKind::Expressions(by)) => {
                for item in by {
                    let is_name = matches!(item.expr, Expr::Identifier(_)) || self.warehouse != "postgres";
                    let clause = if is_name { Clause::Order } else { Clause::OrderWithin };
                    self.by(&item.expr, slots, Use::Order, clause)?;
                }
                Ok(())
            }
        }
    }

    /// Adds the columns of one item of `GROUP BY` or `ORDER BY`. A number refers to the column at that position.
    fn by(&mut self, expr: &Expr, slots: &[Slot], usage: Use, clause: Clause) -> AnalysisResult<()> {
        let place = match expr {
            Expr::Value(value) => match &value.value {
                sqlparser::ast::Value::Number(digits, _) => digits.parse::<usize>().ok(),
                _ => None,
            },
            _ => None,
        };
        let Some(place) = place else {
            let origins = self.expr(expr, clause)?;
            return self.add_uses(usage, &origins);
        };
        let before = slots.iter().take(place).any(Slot::is_open);
        let origins = match slots.get(place.wrapping_sub(1)) {
            Some(Slot::Column(column)) if !before => column.origins.clone(),
            _ => self.unresolved(Reason::Positions("a column's number"), None),
        };
        self.add_uses(usage, &origins)
    }

    fn select(&mut self, select: &Select, order_by: Option<&OrderBy>, limit_by: &[Expr]) -> AnalysisResult<Vec<Slot>> {
        let frame = self.from(&select.from)?;
        self.frames.push(frame);
        let outcome = self.select_within(select, order_by, limit_by);
        self.frames.pop();
        outcome
    }

    fn select_within(
        &mut self,
        select: &Select,
        order_by: Option<&OrderBy>,
        limit_by: &[Expr],
    ) -> AnalysisResult<Vec<Slot>> {
        for view in &select.lateral_views {
            let origins = self.expr(&view.lateral_view, Clause::Where)?;
            self.lateral_view(view, origins);
        }
        let slots = self.projection(select)?;
        let mut conditions: Vec<&Expr> = select.prewhere.iter().chain(&select.selection).collect();
        for clause in &select.connect_by {
            match clause {
                ConnectByKind::ConnectBy { relationships, .. } => conditions.extend(relationships),
                ConnectByKind::StartWith { condition, .. } => conditions.push(condition),
            }
        }
        for condition in conditions {
            self.used(condition, Use::Filter, Clause::Where)?;
        }
        self.group(select, &slots)?;
        for condition in select.having.iter().chain(&select.qualify) {
            self.used(condition, Use::Filter, Clause::Group)?;
        }
        for window in &select.named_window {
            if let NamedWindowExpr::WindowSpec(spec) = &window.1 {
                self.window(spec)?;
            }
        }
        let sorted = select.cluster_by.iter().chain(&select.distribute_by);
        for expr in sorted.chain(select.sort_by.iter().map(|by| &by.expr)) {
            self.used(expr, Use::Order, Clause::Order)?;
        }
        for expr in limit_by {
            self.by(expr, &slots, Use::Group, Clause::Group)?;
        }
        self.order(order_by, &slots)?;
        Ok(slots)
    }

    fn group(&mut self, select: &Select, slots: &[Slot]) -> AnalysisResult<()> {
        match &select.distinct {
            Some(Distinct::On(by)) => {
                for expr in by {
                    self.by(expr, slots, Use::Group, Clause::Group)?;
                }
            }
            // DISTINCT groups rows that are equal in all columns.
            Some(Distinct::Distinct) => self.use_all(Use::Group, slots)?,
            Some(Distinct::All) | None => {}
        }
        match &select.group_by {
            GroupByExpr::Expressions(by, _) => {
                for expr in by {
                    self.by(expr, slots, Use::Group, Clause::Group)?;
                }
            }
            GroupByExpr::All(_) => {
                for item in &select.projection {
                    match item {
                        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }
                            if !super::expression::has_aggregate(expr) =>
                        {
                            self.used(expr, Use::Group, Clause::Select)?;
                        }
                        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                            let (starred, _) = self.item(item)?;
                            self.use_all(Use::Group, &starred)?;
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the columns of the SELECT list. Later items may refer to aliases of earlier items.
    fn projection(&mut self, select: &Select) -> AnalysisResult<Vec<Slot>> {
        let mut slots = Vec::new();
        if select.flavor == sqlparser::ast::SelectFlavor::FromFirstNoSelect {
            slots = self.frames.last().map(|frame| frame.slots.clone()).unwrap_or_default();
        }
        for item in &select.projection {
            let (made, is_alias) = self.item(item)?;
            if is_alias
                && let [Slot::Column(Column { name: Some(name), origins })] = made.as_slice()
                && let Some(frame) = self.frames.last_mut()
            {
                frame.aliases.entry(Arc::clone(&name.key)).or_insert_with(|| origins.clone());
            }
            self.spend_slots(&made)?;
            slots.extend(made);
            if slots.len() > MAX_SLOTS {
                return Err(Exhausted);
            }
        }
        Ok(slots)
    }
}
