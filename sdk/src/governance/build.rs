//! Builders for a hook's answer, and readers of its arguments.
//!
//! In: names, filters, masks. Out: the contract's [`Verdict`] and [`Obligations`]. Obligations only narrow a query, so
//! an omitted one has no effect.

use super::{
    Decision, Denial, DependsOn, GateFinding, Mask, MemberMask, Obligations, Principal, QueryFacts, RowFilter,
    Severity, Surface, Verdict,
};
use crate::filter::{Filter, empty_arena};
use crate::json::Json;

impl Verdict {
    /// Returns a verdict that has no effect on the query.
    pub fn abstain() -> Verdict {
        Verdict { decision: Decision::Abstain, depends: DependsOn::empty(), ttl_seconds: 0 }
    }

    /// Permits the query under these obligations.
    pub fn permit(obligations: Obligations) -> Verdict {
        Verdict { decision: Decision::Permit(obligations), ..Verdict::abstain() }
    }

    /// Denies the query. The code is for programs (`[a-z][a-z0-9_]*`), the message for the caller, the reason for the
    /// audit log.
    pub fn deny(code: &str, public_message: &str, audit_reason: &str) -> Verdict {
        let denial = Denial {
            code: code.to_owned(),
            public_message: public_message.to_owned(),
            audit_reason: audit_reason.to_owned(),
        };
        Verdict { decision: Decision::Deny(denial), ..Verdict::abstain() }
    }

    /// Declares all inputs of the verdict, and the seconds for which the host may reuse it.
    pub fn reusable(mut self, depends: DependsOn, ttl_seconds: u32) -> Verdict {
        (self.depends, self.ttl_seconds) = (depends, ttl_seconds);
        self
    }
}

impl Default for Obligations {
    /// Creates obligations that require nothing.
    fn default() -> Self {
        Obligations {
            row_filters: vec![],
            masks: vec![],
            max_rows: None,
            require_time_filter: false,
            warnings: vec![],
            audit: vec![],
        }
    }
}

impl Obligations {
    /// Restricts `cube` to rows that meet the condition. Name a cube only if the query reads it
    /// ([`QueryFacts::reads`]).
    ///
    /// ```
    /// use terrane_sdk::filter::column;
    /// use terrane_sdk::governance::{Mask, Obligations, Verdict};
    ///
    /// let own = Obligations::default()
    ///     .row_filter("orders", &column("region").in_list(["EMEA"]))
    ///     .mask("orders", "email", Mask::Nullify);
    /// assert_eq!(own.row_filters[0].predicate.columns, ["region"]);
    /// let verdict = Verdict::permit(own);
    /// ```
    #[must_use]
    pub fn row_filter(mut self, cube: &str, condition: &Filter) -> Self {
        self.row_filters.push(RowFilter { cube: cube.to_owned(), predicate: condition.to_arena() });
        self
    }

    #[must_use]
    pub fn mask(mut self, cube: &str, member: &str, mask: Mask) -> Self {
        self.masks.push(MemberMask { cube: cube.to_owned(), member: member.to_owned(), mask });
        self
    }

    /// Limits the number of rows; the lowest limit wins.
    #[must_use]
    pub fn limit_rows(mut self, rows: u64) -> Self {
        self.max_rows = Some(self.max_rows.map_or(rows, |known| known.min(rows)));
        self
    }

    /// Adds a warning for the caller.
    #[must_use]
    pub fn warning(mut self, text: &str) -> Self {
        self.warnings.push(text.to_owned());
        self
    }

    /// Adds a note for the audit log.
    #[must_use]
    pub fn note(mut self, key: &str, value: &str) -> Self {
        self.audit.push((key.to_owned(), value.to_owned()));
        self
    }
}

impl GateFinding {
    /// Creates a finding that refuses the step.
    pub fn blocking(rule: &str, severity: Severity, message: &str) -> GateFinding {
        GateFinding { rule: rule.to_owned(), severity, message: message.to_owned(), blocking: true }
    }

    /// Creates a finding that does not refuse the step.
    pub fn advice(rule: &str, severity: Severity, message: &str) -> GateFinding {
        GateFinding { blocking: false, ..GateFinding::blocking(rule, severity, message) }
    }
}

impl Principal {
    /// Returns an anonymous caller.
    pub fn anonymous() -> Principal {
        Principal {
            user_id: String::new(),
            email: None,
            tenant: String::new(),
            auth_method: "anonymous".to_owned(),
            roles: vec![],
            groups: vec![],
            scopes: vec![],
            attributes: vec![],
        }
    }

    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|known| known == role)
    }

    pub fn is_in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }

    /// Returns an attribute's value; `None` if the attribute is missing or its text is not JSON.
    pub fn attribute(&self, name: &str) -> Option<Json> {
        let (_, json) = self.attributes.iter().find(|(known, _)| known == name)?;
        Json::parse(json).ok()
    }

    /// Returns the strings of an attribute that is a string or a list of strings; empty for other attributes.
    ///
    /// ```
    /// use terrane_sdk::governance::Principal;
    ///
    /// let attributes = vec![("regions".to_owned(), r#"["EMEA", "APAC"]"#.to_owned())];
    /// let manager = Principal { attributes, ..Principal::anonymous() };
    /// assert_eq!(manager.texts("regions"), ["EMEA", "APAC"]);
    /// assert!(manager.texts("teams").is_empty());
    /// ```
    pub fn texts(&self, name: &str) -> Vec<String> {
        let attribute = self.attribute(name);
        attribute.iter().flat_map(Json::texts).map(str::to_owned).collect()
    }
}

impl QueryFacts {
    /// Returns whether the query reads rows of this cube.
    pub fn reads(&self, cube: &str) -> bool {
        self.cubes.iter().any(|known| known == cube)
    }

    /// Returns whether the query uses this member in any way.
    pub fn uses(&self, cube: &str, member: &str) -> bool {
        self.members.iter().any(|used| used.cube == cube && used.member == member)
    }

    /// Returns the facts of a query that reads these cubes and uses no member, for native tests.
    pub fn for_tests(cubes: &[&str]) -> QueryFacts {
        QueryFacts {
            surface: Surface::Rest,
            cubes: cubes.iter().map(|cube| (*cube).to_owned()).collect(),
            members: vec![],
            filters: empty_arena(),
            limit: None,
            estimated_bytes: None,
            estimated_cost: None,
            extra: vec![],
        }
    }
}
