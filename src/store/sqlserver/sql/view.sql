-- A report's row without its payload, with times as microseconds since 1970: exact, and the same in every driver.
CREATE VIEW $(schema).LeaseholdRow
AS
SELECT ReportId,
       Generation,
       LeaseOwner,
       DATEDIFF_BIG(microsecond, '1970-01-01', LeaseUntilUtc)      AS LeaseUntilMicros,
       LeaseHolder,
       DATEDIFF_BIG(microsecond, '1970-01-01', LeaseAcquiredAtUtc) AS LeaseAcquiredAtMicros,
       TakeoverDelayMillis,
       RecoveryEpoch,
       PublishedGeneration,
       DATEDIFF_BIG(microsecond, '1970-01-01', PublishedAtUtc)     AS PublishedAtMicros,
       SourceRevision,
       SourceRevisionFloor,
       PrunedUpTo,
       ForcedGeneration,
       ForcedBy,
       DATEDIFF_BIG(microsecond, '1970-01-01', ForcedAtUtc)        AS ForcedAtMicros
FROM $(schema).ReportPublication
GO
