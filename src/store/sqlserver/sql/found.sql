-- What is there: the row, and what the ledger has under this owner, this operation and this next owner. One row, always.
-- Whoever holds the row's lock calls it in a statement that starts after the lock was had, for the same reason as the clock.
CREATE PROCEDURE $(schema).LeaseholdFound
    @ReportId uniqueidentifier,
    @Now datetime2(6),
    @Owner uniqueidentifier = NULL,
    @OperationId uniqueidentifier = NULL
AS
BEGIN
    SET NOCOUNT ON;

    SELECT DATEDIFF_BIG(microsecond, '1970-01-01', @Now)        AS NowMicros,
           r.ReportId                                           AS ReportId,
           r.Generation                                         AS Generation,
           r.LeaseOwner                                         AS LeaseOwner,
           r.LeaseUntilMicros                                   AS LeaseUntilMicros,
           r.LeaseHolder                                        AS LeaseHolder,
           r.LeaseAcquiredAtMicros                              AS LeaseAcquiredAtMicros,
           r.TakeoverDelayMillis                                AS TakeoverDelayMillis,
           r.RecoveryEpoch                                      AS RecoveryEpoch,
           r.PublishedGeneration                                AS PublishedGeneration,
           r.PublishedAtMicros                                  AS PublishedAtMicros,
           r.SourceRevision                                     AS SourceRevision,
           r.SourceRevisionFloor                                AS SourceRevisionFloor,
           r.PrunedUpTo                                         AS PrunedUpTo,
           r.ForcedGeneration                                   AS ForcedGeneration,
           r.ForcedBy                                           AS ForcedBy,
           r.ForcedAtMicros                                     AS ForcedAtMicros,
           e.ReportId                                           AS EndedReportId,
           e.LeaseOwner                                         AS EndedOwner,
           e.Generation                                         AS EndedGeneration,
           e.RecoveryEpoch                                      AS EndedEpoch,
           e.OperationId                                        AS EndedOperationId,
           e.SourceRevision                                     AS EndedRevision,
           DATEDIFF_BIG(microsecond, '1970-01-01', e.EndedAtUtc) AS EndedAtMicros,
           o.ReportId                                           AS UsedReportId,
           o.LeaseOwner                                         AS UsedOwner,
           o.Generation                                         AS UsedGeneration,
           o.RecoveryEpoch                                      AS UsedEpoch,
           o.OperationId                                        AS UsedOperationId,
           o.SourceRevision                                     AS UsedRevision,
           DATEDIFF_BIG(microsecond, '1970-01-01', o.EndedAtUtc) AS UsedAtMicros
    FROM (SELECT 1 AS One) AS always
             LEFT JOIN $(schema).LeaseholdRow AS r ON r.ReportId = @ReportId
             LEFT JOIN $(schema).ReportLedger AS e ON e.LeaseOwner = @Owner
             LEFT JOIN $(schema).ReportLedger AS o ON o.OperationId = @OperationId;
END
GO
