INSERT INTO ReportPublication (ReportId, RecoveryEpoch)
SELECT :report, RecoveryEpoch FROM LeaseholdStore WHERE true
ON CONFLICT (ReportId) DO NOTHING
