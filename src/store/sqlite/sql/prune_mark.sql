-- First every row remembers up to where its evidence goes, then the evidence goes.
UPDATE ReportPublication
SET PrunedUpTo = max(PrunedUpTo, pruned.UpTo)
FROM (SELECT l.ReportId AS Report, max(l.Generation) AS UpTo
      FROM ReportLedger AS l
               JOIN ReportPublication AS r ON r.ReportId = l.ReportId
      WHERE l.EndedAtUtc <= :cutoff
        AND l.Generation < r.Generation
      GROUP BY l.ReportId) AS pruned
WHERE ReportId = pruned.Report
