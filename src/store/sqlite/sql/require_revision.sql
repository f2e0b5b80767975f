UPDATE ReportPublication
SET SourceRevisionFloor = max(coalesce(SourceRevisionFloor, :revision), :revision)
WHERE ReportId = :report
