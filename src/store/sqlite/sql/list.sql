SELECT ReportId, Generation, LeaseOwner, LeaseBootId, LeaseUntilNanos, LeaseHolder, LeaseAcquiredAtUtc, TakeoverDelayMillis,
       RecoveryEpoch, PublishedGeneration, PublishedAtUtc, SourceRevision, SourceRevisionFloor, PrunedUpTo,
       ForcedGeneration, ForcedBy, ForcedAtUtc
FROM ReportPublication
WHERE ReportId > :after
  AND (NOT :leased_only OR (LeaseBootId = :boot AND LeaseUntilNanos + TakeoverDelayMillis * 1000000 > :now))
ORDER BY ReportId
LIMIT :limit
