//! What is serialisable with the feature `serde`: the same after a wire, and checked when it comes from one.
#![cfg(feature = "serde")]

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use leasehold::answer::{
    AcquireAnswer, Acquired, BatchRenewal, Busy, CloseAnswer, Ending, Forgotten, NextLease, PublishAnswer, Published,
    ReadAnswer, Receipt, Refusal, RenewAnswer, Version, Visible,
};
use leasehold::store::{AcquireRequest, AdvanceRequest, CloseRequest, ListRequest, Payload, PublishRequest};
use leasehold::{Epoch, Fence, Generation, Holder, OperationId, Owner, ReportId, SourceRevision};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn after_a_wire<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("serialisable");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Requests are not comparable, but their `Debug` says all but the payload.
fn looks_the_same<T: Serialize + DeserializeOwned + Debug>(value: &T) {
    assert_eq!(format!("{:?}", after_a_wire(value)), format!("{value:?}"));
}

fn fence() -> Fence {
    let (report, owner) = (ReportId::from_name("report"), Owner::random());
    Fence { report, owner, generation: Generation::new(i64::MAX), epoch: Epoch::new(-1) }
}

fn holder() -> Holder {
    Holder::new("host/1/reports").expect("a good label")
}

fn receipt() -> Receipt {
    let Fence { report, generation, epoch, .. } = fence();
    let revision = Some(SourceRevision::new(i64::MIN));
    let published_at = SystemTime::UNIX_EPOCH + Duration::new(1_750_000_000, 123_456_789);
    Receipt { report, operation: OperationId::random(), generation, epoch, revision, published_at }
}

#[test]
fn requests_are_the_same_after_a_wire() {
    let Fence { report, owner, generation, epoch } = fence();
    looks_the_same(&AcquireRequest {
        report,
        owner,
        ttl: Duration::from_nanos(30_000_000_001),
        holder: holder(),
        min_epoch: epoch,
        takeover_delay: Duration::ZERO,
        wanted: None,
    });
    let payload = Payload::new("a \"report\"\n", 100).expect("a good payload");
    let publish =
        PublishRequest { fence: fence(), operation: OperationId::random(), payload: payload.clone(), revision: None };
    assert_eq!(after_a_wire(&publish).payload, payload);
    looks_the_same(&AdvanceRequest { publish, next_owner: owner, ttl: Duration::MAX });
    looks_the_same(&CloseRequest { report, owner, learned: Some((generation, epoch)) });
    looks_the_same(&ListRequest { after: Some(report), limit: 7, leased_only: true });
}

#[test]
fn answers_are_the_same_after_a_wire() {
    let receipt = receipt();
    let Receipt { epoch, generation, revision, published_at, operation, .. } = receipt;
    let visible = Visible { version: Version { epoch, generation }, revision, published_at };
    let remaining = Duration::from_millis(29_999);
    let acquired = Acquired { fence: fence(), remaining, visible: Some(visible) };
    let busy = Busy { holder: holder(), since: published_at, remaining };
    for answer in [
        AcquireAnswer::Missing,
        AcquireAnswer::Ended(Ending::Published(receipt)),
        AcquireAnswer::AlreadyFresh(visible),
        AcquireAnswer::Busy(busy),
        AcquireAnswer::Acquired(acquired),
    ] {
        assert_eq!(after_a_wire(&answer), answer);
    }
    let next = Some(NextLease { fence: fence(), remaining });
    for answer in [
        PublishAnswer::Published(Published { receipt, next }),
        PublishAnswer::Refused(Refusal::GenerationPublished { operation }),
        PublishAnswer::NoLongerKnown(Forgotten::Pruned { up_to: generation }),
    ] {
        assert_eq!(after_a_wire(&answer), answer);
    }
    let batch = vec![BatchRenewal::Skipped, BatchRenewal::Answered(RenewAnswer::Renewed { remaining })];
    assert_eq!(after_a_wire(&batch), batch);
    let close = CloseAnswer::NoLongerKnown(Forgotten::HistoryReplaced { epoch });
    assert_eq!(after_a_wire(&close), close);
    let read = ReadAnswer::Found { visible, payload: "\u{1}\u{2028}é".to_owned() };
    assert_eq!(after_a_wire(&read), read);
}

#[test]
fn a_holder_label_is_checked_when_it_is_deserialised() {
    assert_eq!(serde_json::to_string(&holder()).unwrap(), r#""host/1/reports""#);
    assert_eq!(after_a_wire(&holder()), holder());
    let long = serde_json::to_string(&"x".repeat(Holder::MAX_CHARS + 1)).unwrap();
    for bad in [r#""""#, r#""a\nb""#, r#""a\u0000b""#, "7", "null", &long] {
        assert!(serde_json::from_str::<Holder>(bad).is_err(), "{bad} should be refused");
    }
}

#[test]
fn a_payload_is_its_text_and_is_checked_when_it_is_deserialised() {
    let payload = Payload::new("a \"report\"\n", 100).unwrap();
    assert_eq!(serde_json::to_string(&payload).unwrap(), r#""a \"report\"\n""#);
    let refused = serde_json::from_str::<Payload>(r#""secret\u0000""#).unwrap_err().to_string();
    assert!(refused.contains("U+0000") && !refused.contains("secret"), "{refused}");
}
