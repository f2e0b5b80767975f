-- The later of the old and the new expiry, and nothing else.
UPDATE ReportPublication
SET LeaseUntilUtc = CASE WHEN LeaseUntilNanos < :until THEN :until_utc ELSE LeaseUntilUtc END,
    LeaseUntilNanos = max(LeaseUntilNanos, :until)
WHERE ReportId = :report
  AND Generation = :generation
  AND LeaseOwner = :owner
  AND RecoveryEpoch = :epoch
  AND LeaseBootId = :boot
  AND LeaseUntilNanos > :now
