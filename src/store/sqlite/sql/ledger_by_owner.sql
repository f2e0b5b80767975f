SELECT LeaseOwner, ReportId, Generation, RecoveryEpoch, OperationId, SourceRevision, EndedAtUtc
FROM ReportLedger
WHERE LeaseOwner = :owner
