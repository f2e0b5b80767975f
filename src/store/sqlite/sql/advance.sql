-- After the publication, in the same transaction: the lease goes on under the next owner, with the same holder and delay.
UPDATE ReportPublication
SET Generation = Generation + 1,
    LeaseOwner = :owner,
    LeaseUntilUtc = :until_utc,
    LeaseBootId = :boot,
    LeaseUntilNanos = :until,
    LeaseAcquiredAtUtc = :now_utc
WHERE ReportId = :report
  AND Generation = :generation - 1
  AND LeaseUntilNanos IS NULL
