UPDATE ReportPublication
SET ForcedGeneration = Generation,
    ForcedBy = :by,
    ForcedAtUtc = :now_utc,
    Generation = Generation + 1,
    LeaseOwner = NULL,
    LeaseUntilUtc = NULL,
    LeaseBootId = NULL,
    LeaseUntilNanos = NULL
WHERE ReportId = :report
  AND Generation = :generation - 1
