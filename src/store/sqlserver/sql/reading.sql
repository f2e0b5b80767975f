-- Reads take no lock of their own. Where the database has READ_COMMITTED_SNAPSHOT on they wait for nobody either.

-- The visible payload with its version, in one statement and so of one moment; the payload only if it is newer than what the
-- caller knows.
CREATE PROCEDURE $(schema).LeaseholdRead
    @ReportId uniqueidentifier,
    @KnownEpoch bigint = NULL,
    @KnownGeneration bigint = NULL
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT RecoveryEpoch                                          AS RecoveryEpoch,
           PublishedGeneration                                    AS PublishedGeneration,
           DATEDIFF_BIG(microsecond, '1970-01-01', PublishedAtUtc) AS PublishedAtMicros,
           SourceRevision                                         AS SourceRevision,
           -- The CAST is for Babelfish, where a CASE of nvarchar is varchar.
           CAST(CASE
               WHEN @KnownEpoch IS NULL
                   OR RecoveryEpoch > @KnownEpoch
                   OR (RecoveryEpoch = @KnownEpoch AND PublishedGeneration > @KnownGeneration) THEN Payload
               END AS nvarchar(max))                               AS Payload
    FROM $(schema).ReportPublication
    WHERE ReportId = @ReportId;
END
GO

-- The row without its payload.
CREATE PROCEDURE $(schema).LeaseholdInspect
    @ReportId uniqueidentifier
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(6) = SYSUTCDATETIME();
    EXEC $(schema).LeaseholdFound @ReportId = @ReportId, @Now = @Now;
END
GO

-- LeaseholdInspect for many, a page at a time, in the engine's own order of identifiers.
CREATE PROCEDURE $(schema).LeaseholdList
    @Limit int,
    @LeasedOnly bit,
    @After uniqueidentifier = NULL
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(6) = SYSUTCDATETIME();
    DECLARE @NowMicros bigint = DATEDIFF_BIG(microsecond, '1970-01-01', @Now);
    SELECT TOP (@Limit)
           @NowMicros              AS NowMicros,
           r.ReportId              AS ReportId,
           r.Generation            AS Generation,
           r.LeaseOwner            AS LeaseOwner,
           r.LeaseUntilMicros      AS LeaseUntilMicros,
           r.LeaseHolder           AS LeaseHolder,
           r.LeaseAcquiredAtMicros AS LeaseAcquiredAtMicros,
           r.TakeoverDelayMillis   AS TakeoverDelayMillis,
           r.RecoveryEpoch         AS RecoveryEpoch,
           r.PublishedGeneration   AS PublishedGeneration,
           r.PublishedAtMicros     AS PublishedAtMicros,
           r.SourceRevision        AS SourceRevision,
           r.SourceRevisionFloor   AS SourceRevisionFloor,
           r.PrunedUpTo            AS PrunedUpTo,
           r.ForcedGeneration      AS ForcedGeneration,
           r.ForcedBy              AS ForcedBy,
           r.ForcedAtMicros        AS ForcedAtMicros
    FROM $(schema).LeaseholdRow AS r
    WHERE (@After IS NULL OR r.ReportId > @After)
      AND (@LeasedOnly = 0 OR r.LeaseUntilMicros + CAST(r.TakeoverDelayMillis AS bigint) * 1000 > @NowMicros)
    ORDER BY r.ReportId;
END
GO

-- What a connection asks first: whether these procedures are the ones that it knows.
CREATE PROCEDURE $(schema).LeaseholdVersion
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT s.SchemaVersion                                           AS SchemaVersion,
           s.RecoveryEpoch                                           AS RecoveryEpoch,
           DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) AS NowMicros,
           CAST(@@VERSION AS nvarchar(400))                          AS Engine,
           CASE
               WHEN d.is_read_committed_snapshot_on = 1 THEN N'READ COMMITTED with row versions'
               ELSE N'READ COMMITTED with locks: readers wait for writers, unless READ_COMMITTED_SNAPSHOT is set on'
               END                                                   AS Isolation
    FROM $(schema).LeaseholdStore AS s
             LEFT JOIN sys.databases AS d ON d.database_id = DB_ID()
    WHERE s.Id = 1;
END
GO
