//! Force release, source revisions, the recovery epoch and pruning.

use std::time::Duration;

use tokio_postgres::Row as Columns;
use tokio_postgres::types::Type;

use super::PostgresStore;
use super::call::Statement;
use super::connections::Lane;
use super::failure;
use super::leases::millis;
use super::rows::{Answer, get};
use crate::answer::{EpochAnswer, ForceAnswer, RevisionAnswer};
use crate::error::StoreError;
use crate::fence::{Epoch, Holder, ReportId, SourceRevision};
use crate::store::Budget;
use crate::store::decide::exhausted;

impl PostgresStore {
    pub(super) async fn do_force_release(
        &self,
        report: ReportId,
        by: Holder,
        budget: Budget,
    ) -> Result<ForceAnswer, StoreError> {
        let statement = Statement::writing(self.function("force_release($1, $2)"))
            .with(*report.as_uuid(), Type::UUID)
            .with(by.as_str().to_owned(), Type::TEXT);
        self.call(Lane::Ordinary, statement, budget, move |rows| {
            let found = Answer::one(&rows, None, None)?;
            let Some(row) = &found.row else { return found.agrees(false, ForceAnswer::Missing) };
            let Some(generation) = row.generation.next() else {
                return found.agrees(false, ()).and(Err(exhausted(report)));
            };
            let was = row.is_held().then(|| row.busy()).flatten();
            found.agrees(true, ForceAnswer::Forced { generation, was })
        })
        .await
    }

    pub(super) async fn do_require_revision(
        &self,
        report: ReportId,
        revision: SourceRevision,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        let statement = Statement::writing(self.function("require_source_revision($1, $2)"))
            .with(*report.as_uuid(), Type::UUID)
            .with(revision.get(), Type::INT8);
        self.call(Lane::Ordinary, statement, budget, move |rows| {
            let found = Answer::one(&rows, None, None)?;
            let Some(row) = &found.row else { return found.agrees(false, RevisionAnswer::Missing) };
            found.agrees(true, RevisionAnswer::Floor(row.floor.max(Some(revision))))
        })
        .await
    }

    pub(super) async fn do_reset_revision(
        &self,
        report: ReportId,
        revision: Option<SourceRevision>,
        budget: Budget,
    ) -> Result<RevisionAnswer, StoreError> {
        let statement = Statement::writing(self.function("reset_source_revision($1, $2)"))
            .with(*report.as_uuid(), Type::UUID)
            .with(revision.map(SourceRevision::get), Type::INT8);
        self.call(Lane::Ordinary, statement, budget, move |rows| {
            let found = Answer::one(&rows, None, None)?;
            let Some(row) = &found.row else { return found.agrees(false, RevisionAnswer::Missing) };
            if row.generation.next().is_none() {
                return found.agrees(false, ()).and(Err(exhausted(report)));
            }
            found.agrees(true, RevisionAnswer::Floor(revision))
        })
        .await
    }

    pub(super) async fn do_advance_epoch(&self, to: Epoch, budget: Budget) -> Result<EpochAnswer, StoreError> {
        let statement = Statement::writing(self.function("advance_recovery_epoch($1)")).with(to.get(), Type::INT8);
        self.call(Lane::Ordinary, statement, budget, move |rows| {
            let row = the_one(&rows)?;
            let from = Epoch::new(get(row, "previous")?);
            match get::<Option<i64>>(row, "ended_leases")? {
                None if to <= from => Ok(EpochAnswer::NotAbove { current: from }),
                Some(ended) if to > from => Ok(EpochAnswer::Advanced { from, ended_leases: ended.unsigned_abs() }),
                _ => Err(failure::disagreement(true)),
            }
        })
        .await
    }

    pub(super) async fn do_prune(&self, older_than: Duration, budget: Budget) -> Result<u64, StoreError> {
        // Nothing is older; beyond some thousands of years the server's arithmetic would overflow.
        const LONGEST: Duration = Duration::from_secs(6_000 * 365 * 86_400);
        let statement =
            Statement::writing(self.function("prune_ledger($1)")).with(millis(older_than.min(LONGEST)), Type::INT8);
        self.call(Lane::Ordinary, statement, budget, |rows| Ok(get::<i64>(the_one(&rows)?, "pruned")?.unsigned_abs()))
            .await
    }
}

fn the_one(rows: &[Columns]) -> Result<&Columns, StoreError> {
    match rows {
        [row] => Ok(row),
        _ => Err(failure::disagreement(true)),
    }
}
