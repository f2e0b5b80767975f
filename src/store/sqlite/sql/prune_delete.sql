DELETE
FROM ReportLedger
WHERE EndedAtUtc <= :cutoff
  AND Generation < (SELECT r.Generation FROM ReportPublication AS r WHERE r.ReportId = ReportLedger.ReportId)
