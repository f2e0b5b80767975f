INSERT INTO ReportPayload (ReportId, Payload)
VALUES (:report, :payload)
ON CONFLICT (ReportId) DO UPDATE SET Payload = excluded.Payload
