//! Publish, with and without an advance.

use std::time::Duration;

use tokio_postgres::types::Type;

use super::PostgresStore;
use super::call::Statement;
use super::connections::Lane;
use super::leases::millis;
use super::rows::Answer;
use crate::answer::{NextLease, PublishAnswer, Published, Receipt};
use crate::error::StoreError;
use crate::fence::{Fence, Owner, SourceRevision};
use crate::store::decide::{self, Publish, next_generation, whole_millis};
use crate::store::{AdvanceRequest, Budget, Payload, PublishRequest};

impl Statement {
    /// The values of a publication after its fence: operation, payload, revision.
    pub(super) fn with_publication(self, request: &PublishRequest) -> Self {
        self.with_fence(&request.fence)
            .with(*request.operation.as_uuid(), Type::UUID)
            .with(Text(request.payload.clone()), Type::TEXT)
            .with(request.revision.map(SourceRevision::get), Type::INT8)
    }
}

/// A payload as a value of a statement, without a copy of it.
#[derive(Debug)]
struct Text(Payload);

impl tokio_postgres::types::ToSql for Text {
    fn to_sql(
        &self,
        type_: &Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.0.as_str().to_sql(type_, out)
    }

    fn accepts(type_: &Type) -> bool {
        <&str as tokio_postgres::types::ToSql>::accepts(type_)
    }

    tokio_postgres::types::to_sql_checked!();
}

impl PostgresStore {
    pub(super) async fn do_publish(
        &self,
        request: PublishRequest,
        advance: Option<(Owner, Duration)>,
        budget: Budget,
    ) -> Result<PublishAnswer, StoreError> {
        let statement = Statement::writing(self.function("publish($1, $2, $3, $4, $5, $6, $7, $8, $9)"))
            .with_publication(&request)
            .with(advance.map(|(next_owner, _)| *next_owner.as_uuid()), Type::UUID)
            .with(advance.map(|(_, ttl)| millis(ttl)), Type::INT8);
        self.call(Lane::Ordinary, statement, budget, move |rows| {
            let found = Answer::one(&rows, Some(request.fence.owner), Some(request.operation))?;
            match decision(&found, &request, advance.map(|(next_owner, _)| next_owner)) {
                Publish::Answer(answer) => found.agrees(false, answer),
                Publish::Accept => found.agrees(true, PublishAnswer::Published(accepted(&found, &request, advance))),
            }
        })
        .await
    }

    pub(super) async fn do_advance(
        &self,
        request: AdvanceRequest,
        budget: Budget,
    ) -> Result<PublishAnswer, StoreError> {
        self.do_publish(request.publish, Some((request.next_owner, request.ttl)), budget).await
    }
}

/// What the library finds in what the function found.
pub(super) fn decision(found: &Answer, request: &PublishRequest, next_owner: Option<Owner>) -> Publish {
    decide::publish(found.row.as_ref(), found.ended.as_ref(), found.used.as_ref(), request, next_owner)
}

/// What was written.
pub(super) fn accepted(found: &Answer, request: &PublishRequest, advance: Option<(Owner, Duration)>) -> Published {
    let fence = &request.fence;
    let receipt = Receipt {
        report: fence.report,
        operation: request.operation,
        generation: fence.generation,
        epoch: fence.epoch,
        revision: request.revision,
        published_at: found.now,
    };
    let next = advance.and_then(|(owner, ttl)| {
        let generation = next_generation(fence.generation, found.next_ended)?;
        Some(NextLease { fence: Fence { owner, generation, ..*fence }, remaining: whole_millis(ttl) })
    });
    Published { receipt, next }
}
