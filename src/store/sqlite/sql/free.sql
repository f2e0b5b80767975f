UPDATE ReportPublication
SET LeaseOwner = NULL,
    LeaseUntilUtc = NULL,
    LeaseBootId = NULL,
    LeaseUntilNanos = NULL
WHERE ReportId = :report
  AND LeaseOwner = :owner
