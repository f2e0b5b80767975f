SELECT ReportId, Generation, LeaseOwner, LeaseBootId, LeaseUntilNanos, LeaseHolder, LeaseAcquiredAtUtc, TakeoverDelayMillis,
       RecoveryEpoch, PublishedGeneration, PublishedAtUtc, SourceRevision, SourceRevisionFloor, PrunedUpTo,
       ForcedGeneration, ForcedBy, ForcedAtUtc
FROM ReportPublication
WHERE ReportId = :report
