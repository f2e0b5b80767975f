UPDATE ReportPublication
SET SourceRevisionFloor = :revision,
    SourceRevision = NULL,
    Generation = Generation + 1,
    LeaseOwner = NULL,
    LeaseUntilUtc = NULL,
    LeaseBootId = NULL,
    LeaseUntilNanos = NULL
WHERE ReportId = :report
  AND Generation = :generation - 1
