-- Whoever sees a lease expired ends it, so that a clock that steps back cannot revive it. The expiry stays: the takeover
-- delay counts from it.
UPDATE ReportPublication
SET LeaseOwner = NULL
WHERE ReportId = :report
  AND LeaseOwner IS NOT NULL
  AND (LeaseBootId <> :boot OR LeaseUntilNanos <= :now)
