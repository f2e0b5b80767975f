//! What was told about an operation that met a fault, and whether that was the truth.

use std::collections::HashMap;

use leasehold::{ReportId, StoreError, StoreErrorKind};

use crate::scene::TestStore;
use crate::subject::{Operation, Subject, Told};
use crate::tables::Truth;

/// How an uncertain operation is made certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// The same request again.
    Again,
    Close,
}

/// What the first answer leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    Applied,
    SurelyNot,
    Unknown,
}

impl First {
    /// # Panics
    /// If it is an answer that the operation cannot have, or an error that says neither *not applied* nor *unknown*.
    pub(crate) fn of(operation: Operation, told: Result<Told, StoreError>) -> Self {
        match told {
            Ok(told) => {
                assert_eq!(told, operation.success());
                Self::Applied
            }
            Err(error) => Self::of_error(&error),
        }
    }

    pub(crate) fn of_error(error: &StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::Unavailable => Self::SurelyNot,
            StoreErrorKind::Unknown => Self::Unknown,
            other => panic!("{other:?}: {error:?}"),
        }
    }
}

/// An operation that was made certain.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    pub(crate) operation: Operation,
    pub(crate) subject: Subject,
    pub(crate) first: First,
    pub(crate) resolution: Resolution,
    /// What the resolution answered.
    pub(crate) told: Told,
}

impl Settled {
    /// Resolves it. After a first answer that came with the last byte of its connection, that connection may be met once more.
    ///
    /// # Panics
    /// If the answer contradicts the first one.
    pub(crate) async fn by(
        resolution: Resolution,
        store: &TestStore,
        operation: Operation,
        subject: Subject,
        first: First,
    ) -> Self {
        let mut met_again = false;
        let told = loop {
            let told = match resolution {
                Resolution::Again => subject.ask(store, operation).await,
                Resolution::Close => subject.close(store, operation).await,
            };
            match told {
                Ok(told) => break told,
                // The server has no room for another connection yet: surely not applied, so asked again.
                Err(error) if First::of_error(&error) == First::SurelyNot => tokio::task::yield_now().await,
                Err(error) => {
                    assert!(!met_again, "the store kept two connections that do not work: {error:?}");
                    met_again = true;
                }
            }
        };
        let settled = Self { operation, subject, first, resolution, told };
        settled.agrees(met_again);
        settled
    }

    fn agrees(&self, met_again: bool) {
        let Self { operation, first, resolution, told, .. } = self;
        let fresh = match resolution {
            Resolution::Again => operation.success(),
            Resolution::Close => Told::Closed,
        };
        let repeated = match (resolution, operation) {
            (Resolution::Close, Operation::Publish) => Told::Published { again: true },
            (Resolution::Close, _) => Told::Closed,
            (Resolution::Again, operation) => operation.repetition(),
        };
        let allowed = match first {
            First::Applied => vec![repeated],
            First::SurelyNot if !met_again => vec![fresh],
            First::SurelyNot | First::Unknown => vec![fresh, repeated],
        };
        assert!(allowed.contains(told), "first {first:?}, then {told:?}: {self:?}");
    }

    /// Whether the tables say what was told.
    pub(crate) fn is_true(&self, truth: &HashMap<ReportId, Truth>) {
        let found = &truth[&self.subject.report];
        let (owner, operation) = (*self.subject.owner.as_uuid(), *self.subject.operation.as_uuid());
        let case = format!("{self:?}: {found:?}");
        let published = matches!(self.told, Told::Published { .. });
        assert_eq!(found.payload, published.then(|| self.subject.payload()), "{case}");
        assert_eq!(found.published_generation, i64::from(published), "{case}");
        let held = matches!(self.told, Told::Held | Told::Renewed);
        assert_eq!(found.owner, held.then_some(owner), "{case}");
        let ledger = match self.told {
            Told::Held | Told::Renewed => vec![],
            Told::Published { .. } => vec![(owner, Some(operation))],
            Told::Closed | Told::Freed { .. } => vec![(owner, None)],
        };
        assert_eq!(found.ledger, ledger, "{case}");
        // An acquisition that was closed before it arrived was never made.
        let never_made = self.operation == Operation::Acquire && self.told == Told::Closed;
        assert!(found.generation == 1 || (never_made && found.generation == 0), "{case}");
        let renewed = self.told == Told::Renewed;
        assert!(!renewed || found.minutes_left.is_some_and(|minutes| minutes > 100), "{case}");
    }
}
