-- LeaseholdRenew for many fences at once: one transaction, one commit, one clock, an answer each. A row that somebody else has
-- locked is skipped (READPAST), not waited for.
CREATE PROCEDURE $(schema).LeaseholdRenewMany
    @Fences nvarchar(max),
    @TtlMillis int,
    @WaitMillis int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET IMPLICIT_TRANSACTIONS OFF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @@TRANCOUNT > 0 THROW 51800, N'a transaction is open on this connection', 1;
    -- An engine that does not know READPAST waits for the lock instead.
    IF @WaitMillis < 20 SET LOCK_TIMEOUT 5;
    ELSE IF @WaitMillis < 100 SET LOCK_TIMEOUT 20;
    ELSE IF @WaitMillis < 500 SET LOCK_TIMEOUT 100;
    ELSE IF @WaitMillis < 2000 SET LOCK_TIMEOUT 500;
    ELSE SET LOCK_TIMEOUT 2000;
    DECLARE @Now datetime2(6);
    DECLARE @Fence TABLE
    (
        Ordinal int NOT NULL PRIMARY KEY,
        ReportId uniqueidentifier NOT NULL,
        LeaseOwner uniqueidentifier NOT NULL,
        Generation bigint NOT NULL,
        RecoveryEpoch bigint NOT NULL
    );
    DECLARE @Locked TABLE (ReportId uniqueidentifier NOT NULL PRIMARY KEY);

    INSERT INTO @Fence (Ordinal, ReportId, LeaseOwner, Generation, RecoveryEpoch)
    SELECT o, r, w, g, e
    FROM OPENJSON(@Fences) WITH (o int, r uniqueidentifier, w uniqueidentifier, g bigint, e bigint);

    BEGIN TRANSACTION;
    UPDATE $(schema).ReportPublication WITH (READPAST, ROWLOCK)
    SET Generation = $(schema).ReportPublication.Generation
    OUTPUT inserted.ReportId INTO @Locked (ReportId)
    FROM @Fence AS f
    WHERE $(schema).ReportPublication.ReportId = f.ReportId;

    SET @Now = SYSUTCDATETIME();

    UPDATE $(schema).ReportPublication WITH (READPAST, ROWLOCK)
    SET LeaseOwner = NULL
    FROM @Locked AS l
    WHERE $(schema).ReportPublication.ReportId = l.ReportId
      AND $(schema).ReportPublication.LeaseOwner IS NOT NULL
      AND $(schema).ReportPublication.LeaseUntilUtc <= @Now;

    SELECT f.Ordinal                                             AS Ordinal,
           CASE WHEN l.ReportId IS NULL AND EXISTS
               (SELECT 1 FROM $(schema).ReportPublication AS p WITH (NOLOCK) WHERE p.ReportId = f.ReportId)
               THEN 1 ELSE 0 END                                 AS Skipped,
           DATEDIFF_BIG(microsecond, '1970-01-01', @Now)         AS NowMicros,
           r.ReportId                                            AS ReportId,
           r.Generation                                          AS Generation,
           r.LeaseOwner                                          AS LeaseOwner,
           r.LeaseUntilMicros                                    AS LeaseUntilMicros,
           r.LeaseHolder                                         AS LeaseHolder,
           r.LeaseAcquiredAtMicros                               AS LeaseAcquiredAtMicros,
           r.TakeoverDelayMillis                                 AS TakeoverDelayMillis,
           r.RecoveryEpoch                                       AS RecoveryEpoch,
           r.PublishedGeneration                                 AS PublishedGeneration,
           r.PublishedAtMicros                                   AS PublishedAtMicros,
           r.SourceRevision                                      AS SourceRevision,
           r.SourceRevisionFloor                                 AS SourceRevisionFloor,
           r.PrunedUpTo                                          AS PrunedUpTo,
           r.ForcedGeneration                                    AS ForcedGeneration,
           r.ForcedBy                                            AS ForcedBy,
           r.ForcedAtMicros                                      AS ForcedAtMicros,
           e.ReportId                                            AS EndedReportId,
           e.LeaseOwner                                          AS EndedOwner,
           e.Generation                                          AS EndedGeneration,
           e.RecoveryEpoch                                       AS EndedEpoch,
           e.OperationId                                         AS EndedOperationId,
           e.SourceRevision                                      AS EndedRevision,
           DATEDIFF_BIG(microsecond, '1970-01-01', e.EndedAtUtc) AS EndedAtMicros
    FROM @Fence AS f
             LEFT JOIN @Locked AS l ON l.ReportId = f.ReportId
             LEFT JOIN $(schema).LeaseholdRow AS r ON r.ReportId = l.ReportId
             LEFT JOIN $(schema).ReportLedger AS e ON e.LeaseOwner = f.LeaseOwner
    ORDER BY f.Ordinal;

    -- Of the locked rows only: another one may have come free since the clock was read.
    DECLARE @Renewed TABLE (ReportId uniqueidentifier NOT NULL PRIMARY KEY);
    UPDATE $(schema).ReportPublication WITH (READPAST, ROWLOCK)
    SET LeaseUntilUtc = CASE
                            WHEN $(schema).ReportPublication.LeaseUntilUtc > DATEADD(millisecond, @TtlMillis, @Now)
                                THEN $(schema).ReportPublication.LeaseUntilUtc
                            ELSE DATEADD(millisecond, @TtlMillis, @Now)
        END
    OUTPUT inserted.ReportId INTO @Renewed (ReportId)
    FROM @Fence AS f, @Locked AS l
    WHERE $(schema).ReportPublication.ReportId = f.ReportId
      AND l.ReportId = f.ReportId
      AND $(schema).ReportPublication.Generation = f.Generation
      AND $(schema).ReportPublication.LeaseOwner = f.LeaseOwner
      AND $(schema).ReportPublication.RecoveryEpoch = f.RecoveryEpoch
      AND $(schema).ReportPublication.LeaseUntilUtc > @Now;

    COMMIT TRANSACTION;
    SELECT COUNT(*) AS Applied FROM @Renewed;
END
GO
