//! Takes answers apart, and says what came instead.

use std::fmt::Debug;

use crate::answer::{
    AcquireAnswer, Acquired, Busy, CloseAnswer, Ending, Forgotten, NextLease, PublishAnswer, Published, ReadAnswer,
    Receipt, Refusal, RenewAnswer,
};
use crate::error::{StoreError, StoreErrorKind};

#[track_caller]
pub(super) fn acquired(answer: AcquireAnswer) -> Acquired {
    match answer {
        AcquireAnswer::Acquired(acquired) => acquired,
        other => panic!("expected the lease to be acquired, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn busy(answer: AcquireAnswer) -> Busy {
    match answer {
        AcquireAnswer::Busy(busy) => busy,
        other => panic!("expected the report to be busy, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn published(answer: PublishAnswer) -> Published {
    match answer {
        PublishAnswer::Published(published) => published,
        other => panic!("expected the publication to be accepted, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn already_published(answer: PublishAnswer) -> Published {
    match answer {
        PublishAnswer::AlreadyPublished(published) => published,
        other => panic!("expected the publication to be known as accepted before, got {other:?}"),
    }
}

/// The lease that goes on after an advance.
#[track_caller]
pub(super) fn next(published: Published) -> NextLease {
    published.next.expect("a lease that goes on")
}

/// How long the renewed lease lasts.
#[track_caller]
pub(super) fn renewed(answer: RenewAnswer) -> std::time::Duration {
    match answer {
        RenewAnswer::Renewed { remaining } => remaining,
        other => panic!("expected the lease to be renewed, got {other:?}"),
    }
}

pub(super) fn refused(refusal: Refusal) -> PublishAnswer {
    PublishAnswer::Refused(refusal)
}

pub(super) fn not_renewed(refusal: Refusal) -> RenewAnswer {
    RenewAnswer::Refused(refusal)
}

/// The publication's outcome is no longer known.
pub(super) fn forgotten(why: Forgotten) -> PublishAnswer {
    PublishAnswer::NoLongerKnown(why)
}

/// The answer of a close that ended the acquisition, or found it closed.
pub(super) const CLOSED: CloseAnswer = CloseAnswer::Ended(Ending::Closed);

/// The answer of a close that found this publication.
pub(super) fn ended_by(receipt: Receipt) -> CloseAnswer {
    CloseAnswer::Ended(Ending::Published(receipt))
}

/// The payload that readers see.
#[track_caller]
pub(super) fn found(answer: ReadAnswer) -> String {
    match answer {
        ReadAnswer::Found { payload, .. } => payload,
        other => panic!("expected a payload, got {other:?}"),
    }
}

/// The call failed with an error of this kind.
#[track_caller]
pub(super) fn fails<T: Debug>(result: Result<T, StoreError>, kind: StoreErrorKind) {
    match result {
        Err(error) if error.kind() == kind => {}
        other => panic!("expected an error of kind {kind:?}, got {other:?}"),
    }
}
