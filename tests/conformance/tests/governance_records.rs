//! Tests export and import of governed records over real state databases: random records, repeated imports, and files
//! with problems.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::date;
use tempfile::TempDir;
use terrane_app::governance::{
    ImportError, ImportMode, ImportSummary, RecordProblem, RecordSet, export_records, import_records,
};
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog as _};
use terrane_app::ports::governance_records::{
    ArtifactMetadata, ArtifactRef, ArtifactType, Certification, CertificationStatus, Definition,
    GovernanceRecords as _, HistoryFilter, LinkTarget, Owner, OwnerRole, OwnerType, Ownership, Relationship, Step,
    Term, TermLink, TermStatus,
};
use terrane_store::StateStore;
use terrane_wire::governance::records::{records_from_yaml, records_to_yaml};

async fn database() -> (StateStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = StateStore::open("sqlite://state.db", folder.path()).await.unwrap();
    (store, folder)
}

fn entry(event: &'static str, resource: String) -> AuditEntry {
    let actor = "operator".into();
    AuditEntry { event: event.into(), actor, resource: resource.into(), count: 1, ..AuditEntry::default() }
}

async fn import(store: &StateStore, set: &RecordSet) -> Result<ImportSummary, ImportError> {
    import_records(store, set, ImportMode::Apply, entry).await
}

/// Pseudo-random numbers (splitmix64) from a seed, so that failures can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % below as u64).unwrap()
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.next(of.len())]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.next(2) == 0).then(|| make(self))
    }

    /// Generates a random line of characters and words that YAML could misread.
    fn line(&mut self) -> Arc<str> {
        const HARD: [&str; 24] = [
            "true",
            "null",
            "~",
            "1.10",
            "0x1f",
            "2026-12-31",
            "- x",
            "a: b",
            "# no comment",
            "'quoted'",
            "\"double\"",
            "{a}",
            "[b]",
            "&anchor",
            "*alias",
            "!tag",
            "%",
            "@",
            "`",
            "Größe 東京 🚲",
            "back\\slash",
            "no",
            "|",
            "yes: >",
        ];
        let hard = self.one(&HARD);
        let number = self.next(1_000);
        let text = match self.next(3) {
            0 => hard.to_owned(),
            1 => format!("{hard} {number}"),
            _ => format!("word {number} {hard}"),
        };
        text.into()
    }

    fn paragraph(&mut self) -> Arc<str> {
        let lines: Vec<String> =
            (0..=self.next(4)).map(|_| format!("{}{}", self.one(&["", "  ", "\t"]), self.line())).collect();
        lines.join(self.one(&["\n", "\n\n", "\r\n"])).trim().into()
    }

    fn unique_lines(&mut self) -> Vec<Arc<str>> {
        (0..self.next(3)).map(|at| format!("{at} {}", self.line()).into()).collect()
    }

    fn at(&mut self) -> Timestamp {
        Timestamp::from_microsecond(1_700_000_000_000_000 + self.next(1_000_000_000_000) as i64).unwrap()
    }

    fn step(&mut self) -> Step {
        Step { by: self.one(&["ada", "", "operator:uid=0"]).into(), at: self.at(), notes: self.maybe(Self::paragraph) }
    }

    fn artifact(&mut self, number: usize) -> ArtifactRef {
        ArtifactRef::new(self.one(&ArtifactType::ALL), format!("cube_{number}.member"))
    }

    fn term(&mut self, number: usize) -> Term {
        let links = (0..self.next(4)).map(|at| {
            // Links only to terms with lower numbers, so that no cycle arises.
            let target = match number.checked_sub(1 + at) {
                Some(other) if self.next(2) == 0 => LinkTarget::Term(format!("t{other}").into()),
                _ => LinkTarget::Artifact(self.artifact(at)),
            };
            let relationship = self.one(&Relationship::ALL);
            TermLink { target, relationship, linked_by: "ada".into(), linked_at: self.at() }
        });
        let mut links: Vec<TermLink> = links.collect();
        links.dedup_by(|one, other| one.target == other.target);
        Term {
            id: format!("t{number}").into(),
            name: format!("{} {number}", self.line()).into(),
            definition: self.paragraph(),
            synonyms: self.unique_lines(),
            category: self.maybe(Self::line),
            subcategory: self.maybe(Self::line),
            examples: (0..self.next(3)).map(|_| self.paragraph()).collect(),
            related_terms: if number > 0 { vec![format!("t{}", self.next(number)).into()] } else { Vec::new() },
            formula: self.maybe(Self::paragraph),
            formula_by: None,
            owner: self.maybe(Self::line),
            status: self.one(&TermStatus::ALL),
            links,
            created_by: self.one(&["ada", ""]).into(),
            created_at: self.at(),
            updated_at: self.at(),
            version: 0,
        }
    }

    fn ownership(&mut self, number: usize) -> Ownership {
        let owners = (0..self.next(3)).map(|at| Owner {
            owner_type: self.one(&OwnerType::ALL),
            owner_id: format!("{} {at}", self.line()).into(),
            role: self.one(&OwnerRole::ALL),
            assigned_by: self.line(),
            assigned_at: self.at(),
        });
        Ownership { owners: owners.collect(), artifact: self.artifact(number), version: 0, updated_at: self.at() }
    }

    fn certification(&mut self, number: usize) -> Certification {
        let definition = |of: &mut Self| Definition { text: of.paragraph(), fingerprint: "0f".repeat(32).into() };
        Certification {
            artifact: self.artifact(number),
            status: self.one(&CertificationStatus::ALL),
            version: 0,
            submitted: Some(self.step()),
            certified: Some(self.step()),
            valid_until: self.maybe(|_| date(2026, 12, 31)),
            definition: self.maybe(definition),
            definition_changed_at: self.maybe(Self::at),
            rejected: self.maybe(Self::step),
            deprecated: Some(self.step()),
            replacement: self.maybe(Self::line),
            sunset_date: self.maybe(|_| date(2027, 2, 28)),
            archived: Some(self.step()),
            updated_at: self.at(),
        }
    }

    fn metadata(&mut self, number: usize) -> ArtifactMetadata {
        ArtifactMetadata {
            artifact: self.artifact(number),
            description: self.maybe(Self::paragraph),
            tags: self.maybe(Self::unique_lines),
            documentation_url: self.maybe(|_| "https://wiki.example/a?b=c#d".into()),
            refresh_frequency: self.maybe(Self::line),
            data_classification: self.maybe(Self::line),
            pii_flag: self.maybe(|of| of.next(2) == 0),
            version: 0,
            updated_by: self.line(),
            updated_at: self.at(),
        }
    }

    fn records(&mut self) -> RecordSet {
        let [terms, ownership, certifications, metadata] = [(); 4].map(|()| self.next(6));
        RecordSet {
            terms: (0..terms).map(|number| Arc::new(self.term(number))).collect(),
            ownership: (0..ownership).map(|number| Arc::new(self.ownership(number))).collect(),
            certifications: (0..certifications).map(|number| Arc::new(self.certification(number))).collect(),
            metadata: (0..metadata).map(|number| Arc::new(self.metadata(number))).collect(),
        }
    }
}

#[tokio::test]
async fn random_records_survive_export_and_import() {
    for seed in 0..40 {
        let records = Random(seed).records();
        let (first, _folder) = database().await;
        let imported = import(&first, &records).await.unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
        assert_eq!(imported, ImportSummary { created: records.len(), ..ImportSummary::default() }, "seed {seed}");
        let exported = export_records(&first).await.unwrap();
        assert_eq!(exported.len(), records.len(), "seed {seed}");
        let text = records_to_yaml(&exported).unwrap();
        let read = records_from_yaml(&text).unwrap_or_else(|problems| panic!("seed {seed}: {problems:?}\n{text}"));
        assert_eq!(read, exported, "seed {seed}\n{text}");

        let (second, _folder) = database().await;
        import(&second, &read).await.unwrap();
        let again = export_records(&second).await.unwrap();
        assert_eq!(again, exported, "seed {seed}");
        assert_eq!(records_to_yaml(&again).unwrap(), text, "seed {seed}");

        // A second import of the same file changes nothing.
        let before = second.history(&HistoryFilter { limit: 1_000, ..HistoryFilter::default() }).await.unwrap();
        let repeated = import(&second, &read).await.unwrap();
        assert_eq!(repeated, ImportSummary { unchanged: read.len(), ..ImportSummary::default() }, "seed {seed}");
        let after = second.history(&HistoryFilter { limit: 1_000, ..HistoryFilter::default() }).await.unwrap();
        assert_eq!(before, after, "seed {seed}");
        let filter =
            AuditFilter { event: Some("governance_record_imported".into()), limit: 1_000, ..AuditFilter::default() };
        assert_eq!(second.records(&filter).await.unwrap().len(), read.len(), "seed {seed}: one audit record each");
    }
}

fn term(id: &str, name: &str) -> Term {
    Term { id: id.into(), name: name.into(), status: TermStatus::Approved, links: Vec::new(), ..Random(1).term(0) }
}

fn terms(terms: Vec<Term>) -> RecordSet {
    RecordSet { terms: terms.into_iter().map(Arc::new).collect(), ..RecordSet::default() }
}

#[tokio::test]
async fn terms_can_exchange_their_names() {
    let (store, _folder) = database().await;
    let named = |one: &str, other: &str| {
        let category = None;
        terms(vec![Term { category: category.clone(), ..term("a", one) }, Term { category, ..term("b", other) }])
    };
    import(&store, &named("x", "y")).await.unwrap();
    let exchanged = import(&store, &named("y", "x")).await.unwrap();
    assert_eq!(exchanged, ImportSummary { changed: 2, ..ImportSummary::default() });
    let taken = import(&store, &terms(vec![Term { category: None, ..term("c", "X") }])).await;
    let Err(ImportError::Invalid(problems)) = taken else { panic!("{taken:?}") };
    assert_eq!(problems[0].problem, RecordProblem::NameTaken { id: "b".into() });
}

#[tokio::test]
async fn invalid_records_change_nothing_and_all_are_reported() {
    let (store, _folder) = database().await;
    let link = |target: &str| TermLink {
        target: LinkTarget::Term(target.into()),
        relationship: Relationship::Defines,
        linked_by: "ada".into(),
        linked_at: Timestamp::UNIX_EPOCH,
    };
    let mut set = terms(vec![
        Term { links: vec![link("b")], ..term("a", "one") },
        Term { links: vec![link("a"), link("none")], ..term("b", "two") },
        Term { definition: "x".repeat(20_000).into(), related_terms: vec!["none".into()], ..term("c", "three") },
        term("c", ""),
    ]);
    let certified =
        Certification { certified: None, status: CertificationStatus::Certified, ..Random(2).certification(0) };
    set.certifications.push(Arc::new(certified));
    set.metadata.push(Arc::new(Random(3).metadata(0)));
    for mode in [ImportMode::Check, ImportMode::Apply] {
        let Err(ImportError::Invalid(problems)) = import_records(&store, &set, mode, entry).await else { panic!() };
        let places: Vec<String> =
            problems.iter().map(|problem| format!("{}.{}", problem.index, problem.field)).collect();
        for place in [
            "0.links[0]",
            "1.links[0]",
            "1.links[1]",
            "2.definition",
            "2.related_terms[0]",
            "3.name",
            "3.",
            "0.certified",
        ] {
            assert!(places.iter().any(|found| found == place), "{place} in {places:?}");
        }
    }
    assert!(export_records(&store).await.unwrap().is_empty());
    let checked = import_records(&store, &terms(vec![term("a", "one")]), ImportMode::Check, entry).await.unwrap();
    assert_eq!(checked.created, 1);
    assert!(export_records(&store).await.unwrap().is_empty(), "a check writes nothing");
}

#[test]
fn files_are_refused_with_every_place() {
    let places = |text: &str| -> Vec<String> {
        records_from_yaml(text).unwrap_err().into_iter().map(|problem| problem.place).collect()
    };
    let text = "\
version: 1
terms:
  - {id: a, name: 3, definition: d, status: good, created_by: ada, created_at: soon, updated_at: 2026-01-01T00:00:00Z, color: red}
ownership:
  - {artifact_type: segment, artifact_id: a, owners: [{owner_type: user}], updated_at: 2026-01-01T00:00:00Z}
certifications: {}
";
    let found = places(text);
    for place in
        ["terms[0].color", "terms[0].name", "terms[0].status", "terms[0].created_at", "ownership[0].artifact_type"]
    {
        assert!(found.iter().any(|known| known == place), "{place} in {found:?}");
    }
    assert!(found.contains(&"ownership[0].owners[0]".to_owned()) && found.contains(&"certifications".to_owned()));
    assert_eq!(places("version: 2\nterms: []\n"), ["version"]);
    assert_eq!(places("terms: []\n"), [""]);
    assert_eq!(places("a: [\n"), [""]);
    assert_eq!(places("version: 1\nversion: 1\n"), [""], "a repeated key");
    assert!(records_from_yaml("version: 1\n").unwrap().is_empty());
}
