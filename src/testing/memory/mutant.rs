//! Ways in which a store can be wrong, to prove that the conformance suite notices.

use std::sync::Arc;

/// Makes the enum, its list and its sentences.
macro_rules! mutants {
    ($($name:ident: $sentence:literal,)+) => {
        /// A mistake that a store can make: what a mutated memory store does instead of what the contract says.
        #[doc(hidden)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Mutant {
            $(#[doc = $sentence] $name,)+
        }

        impl Mutant {
            /// Every mutant.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// What it does, in words.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self {
                    $(Self::$name => $sentence,)+
                }
            }
        }
    };
}

mutants! {
    PublishWithoutGeneration: "publish without the generation clause",
    PublishWithoutOwner: "publish without the owner clause",
    PublishWithoutEpoch: "publish without the epoch clause",
    PublishWithoutExpiry: "publish without the expiry clause",
    PublishWithoutPublishedGeneration: "publish without `PublishedGeneration <`",
    PublishWithoutRevision: "publish without the revision clause",
    PublishWithoutLedger: "publish without the ledger",
    PublishReadsClockBeforeLock: "publish reads the clock before the lock",
    PublishReadsLedgerBeforeLock: "publish reads the ledger before the lock",
    RenewWithoutGeneration: "renew without the generation clause",
    RenewWithoutOwner: "renew without the owner clause",
    RenewWithoutEpoch: "renew without the epoch clause",
    RenewWithoutExpiry: "renew without the expiry clause",
    RenewReadsClockBeforeLock: "renew reads the clock before the lock",
    RenewalShortens: "a renewal shortens",
    ReleaseWithoutGeneration: "release without the generation clause",
    ReleaseWithoutOwner: "release without the owner clause",
    ReleaseWithoutEpoch: "release without the epoch clause",
    ReleaseIgnoresFence: "release ignores the fence",
    ReleaseResetsGeneration: "release resets the generation",
    ReleaseWithoutLedger: "release writes nothing to the ledger",
    ReleaseReadsClockBeforeLock: "release reads the clock before the lock",
    CloseReadsLedgerBeforeLock: "close reads the ledger before the lock",
    CloseOnlyReads: "close only reads",
    CloseWithoutEpoch: "close without the epoch",
    CloseForgetsLease: "close forgets to end the lease",
    ClosePrunedWritesClosed: "close of a pruned generation writes closed",
    AcquireIgnoresLedger: "acquire ignores the ledger",
    AcquireWithoutIncrement: "acquire without increment",
    AcquireReadsClockBeforeLock: "acquire reads the clock before the lock",
    RepeatedAcquireRenews: "a repeated acquire gives a new TTL",
    AcquireUsesTakersDelay: "the takeover delay is the taker's instead of the holder's",
    LeaseKeptAfterPublish: "the lease is kept after publish",
    ExpiryNotRecordedByAcquire: "acquire saw the expiry and did not record it",
    ExpiryNotRecordedByRenew: "renew saw the expiry and did not record it",
    ExpiryNotRecordedByPublish: "publish saw the expiry and did not record it",
    ExpiryNotRecordedByClose: "close saw the expiry and did not record it",
    ExpiryNotRecordedByRelease: "release saw the expiry and did not record it",
    ExpiryNotRecordedByOperators: "an operator's call saw the expiry and did not record it",
    RecordingForgetsTakeoverDelay: "recording the expiry also forgets the takeover delay",
    PrunedAnsweredAsRefused: "a pruned publication is answered as refused",
    PruneTakesCurrentGeneration: "prune deletes what belongs to the row's current generation",
    PruneIgnoresAge: "prune ignores the age",
    PruneForgetsHowFar: "prune does not remember up to where",
    AdvanceKeepsOwner: "advance with the same owner",
    AdvanceOntoClosedOwner: "advance onto a closed owner",
    AdvanceKeepsGeneration: "advance with the same generation",
    ResentAdvanceRenews: "a re-sent advance gives a new TTL",
    ResetWithoutRaising: "reset of the source revision without raising the generation",
    ForceWithoutRaising: "force release without raising the generation",
    ForceKeepsTakeoverDelay: "force release keeps the takeover delay",
    EpochKeepsLeases: "an epoch advance keeps the leases",
    ProvisionInFirstEpoch: "provision uses the first epoch",
    RemainingRoundedUp: "what remains is rounded up",
    AcquireIgnoresBudget: "acquire waits for the lock beyond its budget",
    RenewAppliedAfterBudget: "a renewal that answered unavailable is applied later",
    AcquireBusyBeforeFresh: "acquire answers busy before it answers fresh",
    AcquireFreshIgnoresFloor: "acquire answers fresh below the floor",
    AcquireClearsPayload: "acquire clears the payload",
    BusyWithoutDelay: "busy leaves the takeover delay out of what remains",
    PublishMissingBeforeLedger: "publish looks for the row before it looks into the ledger",
    PublishSupersededBeforeForced: "publish answers superseded before it answers forced",
    PublishAcceptsMissingRevision: "publish accepts a missing revision while one is required",
    StaleSourceEndsLease: "a stale source ends the lease",
    EpochBeforePruned: "another epoch is answered before pruned",
    CloseMissingBeforeLedger: "close looks for the row before it looks into the ledger",
    ReleaseKeepsExpiry: "a released lease keeps its expiry",
    RenewManyUndoneByOneRefusal: "one refused renewal undoes the batch",
    RenewManyAnswersReversed: "the answers of a batch come in another order",
    RequirementLowersFloor: "a requirement lowers the floor",
    ResetKeepsVisibleRevision: "a reset keeps the visible revision",
    ForceNotRecorded: "a force release is not recorded",
    ForceClosesOwner: "a force release writes the owner's closing to the ledger",
    EpochAcceptsCurrent: "an epoch advance accepts the current value",
    ProvisionResets: "provisioning again resets the row",
    TransactionCommitsWhenRefused: "the user's statements are committed although the publication was refused",
    TransactionCommitsAgain: "the user's statements are committed again with a publication accepted before",
    ReadIgnoresVersion: "a read sends what the caller already has",
}

/// The mutants of one store; none, but for the suite's own test.
#[derive(Debug, Clone, Default)]
pub(super) struct Mutants(Arc<[Mutant]>);

impl Mutants {
    pub(super) fn new(mutants: &[Mutant]) -> Self {
        Self(mutants.into())
    }

    pub(super) fn has(&self, mutant: Mutant) -> bool {
        self.0.contains(&mutant)
    }
}
