UPDATE ReportPublication
SET Generation = Generation + 1,
    LeaseOwner = :owner,
    LeaseUntilUtc = :until_utc,
    LeaseBootId = :boot,
    LeaseUntilNanos = :until,
    LeaseHolder = :holder,
    LeaseAcquiredAtUtc = :now_utc,
    TakeoverDelayMillis = :takeover_delay
WHERE ReportId = :report
  AND Generation = :generation - 1
  AND (LeaseUntilNanos IS NULL
       OR LeaseBootId <> :boot
       OR LeaseUntilNanos + TakeoverDelayMillis * 1000000 <= :now)
