INSERT INTO ReportLedger (LeaseOwner, ReportId, Generation, RecoveryEpoch, OperationId, SourceRevision, EndedAtUtc)
VALUES (:owner, :report, :generation, :epoch, :operation, :revision, :now_utc)
