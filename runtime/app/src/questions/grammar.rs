//! The grammar with the members that a caller may see.
//!
//! In: a question and its caller. Out: its interpretation. The vocabulary of a caller depends on the served project,
//! the language, and the artifacts that the caller may see. The vocabularies of the most recent callers are cached,
//! because it takes half a second to build one with 30,000 members. In a project with many members, the work is done on
//! a thread of its own. Not here: the lookup of values.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use jiff::civil::Date;
use terrane_compiler::Access;
use terrane_questions::{Interpretation, KnownValues, Language, QuestionError, Vocabulary, read};

use super::vocabulary;
use crate::blocking::over_rows;
use crate::catalog::Snapshot;
use crate::domain::RequestContext;
use crate::search::ArtifactText;

/// The number of vocabularies that are stored.
const MAX_STORED: usize = 4;

/// The vocabularies of the last questions, the newest last.
#[derive(Default)]
pub(super) struct Grammars(Mutex<Vec<Stored>>);

/// A vocabulary, and everything that it depends on.
struct Stored {
    snapshot: Weak<Snapshot>,
    language: &'static Language,
    artifacts: Vec<Arc<ArtifactText>>,
    vocabulary: Arc<Vocabulary>,
}

/// The words of a question, and the members that they can mean.
pub(super) struct Grammar {
    text: Arc<str>,
    vocabulary: Arc<Vocabulary>,
    language: &'static Language,
    members: u64,
}

impl Grammars {
    /// Returns the grammar for a question and its caller. `artifacts` are those that the caller may see.
    pub(super) async fn of(
        &self,
        question: &str,
        language: &'static Language,
        snapshot: Arc<Snapshot>,
        request: &RequestContext,
        artifacts: &[Arc<ArtifactText>],
    ) -> Grammar {
        let stored = self
            .stored()
            .iter()
            .find(|stored| stored.is_of(&snapshot, language, artifacts))
            .map(|stored| Arc::clone(&stored.vocabulary));
        let vocabulary = match stored {
            Some(vocabulary) => vocabulary,
            None => {
                let (caller, artifacts) = (request.caller.clone(), artifacts.to_vec());
                let stored = over_rows(artifacts.len() as u64, move || {
                    let entries = vocabulary::entries(&Access::of(&snapshot.model, &caller), &artifacts);
                    let vocabulary = Arc::new(Vocabulary::new(entries, language));
                    Stored { snapshot: Arc::downgrade(&snapshot), language, artifacts, vocabulary }
                });
                self.store(stored.await)
            }
        };
        Grammar { text: question.into(), vocabulary, language, members: artifacts.len() as u64 }
    }

    fn store(&self, new: Stored) -> Arc<Vocabulary> {
        let vocabulary = Arc::clone(&new.vocabulary);
        let mut stored = self.stored();
        stored.retain(|known| known.snapshot.strong_count() > 0);
        if stored.len() >= MAX_STORED {
            stored.remove(0);
        }
        stored.push(new);
        vocabulary
    }

    fn stored(&self) -> std::sync::MutexGuard<'_, Vec<Stored>> {
        // A panic leaves the list consistent, so a poisoned lock can be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    fn is_of(&self, snapshot: &Arc<Snapshot>, language: &Language, artifacts: &[Arc<ArtifactText>]) -> bool {
        std::ptr::eq(self.snapshot.as_ptr(), Arc::as_ptr(snapshot))
            && std::ptr::eq(self.language, language)
            && self.artifacts.len() == artifacts.len()
            && self.artifacts.iter().zip(artifacts).all(|(known, other)| Arc::ptr_eq(known, other))
    }
}

impl Grammar {
    /// Interprets the question.
    ///
    /// # Errors
    /// The question is empty or too long.
    pub(super) async fn read(&self, values: &Arc<KnownValues>, today: Date) -> Result<Interpretation, QuestionError> {
        let (text, vocabulary, values) = (Arc::clone(&self.text), Arc::clone(&self.vocabulary), Arc::clone(values));
        let language = self.language;
        over_rows(self.members, move || read(&text, &vocabulary, &values, language, today)).await
    }
}
