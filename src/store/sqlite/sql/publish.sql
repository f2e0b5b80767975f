UPDATE ReportPublication
SET PublishedGeneration = :generation,
    PublishedAtUtc = :now_utc,
    SourceRevision = :revision,
    LeaseOwner = NULL,
    LeaseUntilUtc = NULL,
    LeaseBootId = NULL,
    LeaseUntilNanos = NULL
WHERE ReportId = :report
  AND Generation = :generation
  AND LeaseOwner = :owner
  AND RecoveryEpoch = :epoch
  AND LeaseBootId = :boot
  AND LeaseUntilNanos > :now
  AND PublishedGeneration < :generation
  AND (SourceRevision IS NULL OR SourceRevision <= :revision)
  AND (SourceRevisionFloor IS NULL OR SourceRevisionFloor <= :revision)
