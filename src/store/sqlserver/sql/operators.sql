-- Operators: takes the lease away. The generation is raised, so that the old holder is fenced out and not only ended.
CREATE PROCEDURE $(schema).LeaseholdForceRelease
    @ReportId uniqueidentifier,
    @By nvarchar(256),
    @WaitMillis int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET IMPLICIT_TRANSACTIONS OFF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @@TRANCOUNT > 0 THROW 51800, N'a transaction is open on this connection', 1;
    DECLARE @Now datetime2(6);
    DECLARE @Applied int;

    BEGIN TRANSACTION;
    EXEC $(schema).LeaseholdLock @ReportId = @ReportId, @WaitMillis = @WaitMillis, @Now = @Now OUTPUT;
    EXEC $(schema).LeaseholdFound @ReportId = @ReportId, @Now = @Now;

    UPDATE $(schema).ReportPublication
    SET ForcedGeneration = Generation,
        ForcedBy = @By,
        ForcedAtUtc = @Now,
        Generation = Generation + 1,
        LeaseOwner = NULL,
        LeaseUntilUtc = NULL
    WHERE ReportId = @ReportId
      AND Generation < 9223372036854775807;
    SET @Applied = @@ROWCOUNT;

    COMMIT TRANSACTION;
    SELECT @Applied AS Applied;
END
GO

-- Operators: raises the least source revision that a publication must have. Never lowers it.
CREATE PROCEDURE $(schema).LeaseholdRequireRevision
    @ReportId uniqueidentifier,
    @Revision bigint,
    @WaitMillis int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET IMPLICIT_TRANSACTIONS OFF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @@TRANCOUNT > 0 THROW 51800, N'a transaction is open on this connection', 1;
    DECLARE @Now datetime2(6);
    DECLARE @Applied int;

    BEGIN TRANSACTION;
    EXEC $(schema).LeaseholdLock @ReportId = @ReportId, @WaitMillis = @WaitMillis, @Now = @Now OUTPUT;
    EXEC $(schema).LeaseholdFound @ReportId = @ReportId, @Now = @Now;

    UPDATE $(schema).ReportPublication
    SET SourceRevisionFloor = CASE WHEN SourceRevisionFloor > @Revision THEN SourceRevisionFloor ELSE @Revision END
    WHERE ReportId = @ReportId;
    SET @Applied = @@ROWCOUNT;

    COMMIT TRANSACTION;
    SELECT @Applied AS Applied;
END
GO

-- Operators: the only way down. Forgets the visible revision, ends the lease and raises the generation, so that a late duplicate
-- of a publication that was refused as stale stays refused.
CREATE PROCEDURE $(schema).LeaseholdResetRevision
    @ReportId uniqueidentifier,
    @WaitMillis int,
    @Revision bigint = NULL
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET IMPLICIT_TRANSACTIONS OFF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @@TRANCOUNT > 0 THROW 51800, N'a transaction is open on this connection', 1;
    DECLARE @Now datetime2(6);
    DECLARE @Applied int;

    BEGIN TRANSACTION;
    EXEC $(schema).LeaseholdLock @ReportId = @ReportId, @WaitMillis = @WaitMillis, @Now = @Now OUTPUT;
    EXEC $(schema).LeaseholdFound @ReportId = @ReportId, @Now = @Now;

    UPDATE $(schema).ReportPublication
    SET SourceRevisionFloor = @Revision,
        SourceRevision = NULL,
        Generation = Generation + 1,
        LeaseOwner = NULL,
        LeaseUntilUtc = NULL
    WHERE ReportId = @ReportId
      AND Generation < 9223372036854775807;
    SET @Applied = @@ROWCOUNT;

    COMMIT TRANSACTION;
    SELECT @Applied AS Applied;
END
GO

-- Operators, after a restore or a lossy failover: puts the store and every row into a new epoch and ends all leases. The store's
-- row is locked first, so that no row is provisioned in the old one.
CREATE PROCEDURE $(schema).LeaseholdAdvanceEpoch
    @Epoch bigint,
    @WaitMillis int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET IMPLICIT_TRANSACTIONS OFF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @@TRANCOUNT > 0 THROW 51800, N'a transaction is open on this connection', 1;
    IF @WaitMillis < 100 SET LOCK_TIMEOUT 20;
    ELSE IF @WaitMillis < 500 SET LOCK_TIMEOUT 100;
    ELSE IF @WaitMillis < 2000 SET LOCK_TIMEOUT 500;
    ELSE IF @WaitMillis < 10000 SET LOCK_TIMEOUT 2000;
    ELSE SET LOCK_TIMEOUT 10000;
    DECLARE @Now datetime2(6);
    DECLARE @From bigint;
    DECLARE @Applied int = 0;
    DECLARE @Ended int = 0;

    BEGIN TRANSACTION;
    UPDATE $(schema).LeaseholdStore SET RecoveryEpoch = RecoveryEpoch WHERE Id = 1;
    SELECT @From = RecoveryEpoch FROM $(schema).LeaseholdStore WHERE Id = 1;

    IF @Epoch > @From
    BEGIN
        UPDATE $(schema).ReportPublication SET Generation = Generation WHERE 1 = 1;
        SET @Now = SYSUTCDATETIME();
        SELECT @Ended = COUNT(*)
        FROM $(schema).ReportPublication
        WHERE LeaseOwner IS NOT NULL
          AND LeaseUntilUtc > @Now;

        UPDATE $(schema).ReportPublication
        SET RecoveryEpoch = @Epoch,
            LeaseOwner = NULL,
            LeaseUntilUtc = NULL
        WHERE 1 = 1;
        UPDATE $(schema).LeaseholdStore SET RecoveryEpoch = @Epoch WHERE Id = 1;
        SET @Applied = 1;
    END;
    COMMIT TRANSACTION;

    SELECT @From AS FromEpoch, @Applied AS Applied, @Ended AS EndedLeases;
END
GO

-- Operators: deletes ledger rows older than this whose generation is below their row's current one. First every row remembers up
-- to where its evidence goes, then the evidence goes.
CREATE PROCEDURE $(schema).LeaseholdPrune
    @OlderThanSeconds int,
    @OlderThanMillis int,
    @WaitMillis int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET IMPLICIT_TRANSACTIONS OFF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @@TRANCOUNT > 0 THROW 51800, N'a transaction is open on this connection', 1;
    IF @WaitMillis < 100 SET LOCK_TIMEOUT 20;
    ELSE IF @WaitMillis < 500 SET LOCK_TIMEOUT 100;
    ELSE IF @WaitMillis < 2000 SET LOCK_TIMEOUT 500;
    ELSE IF @WaitMillis < 10000 SET LOCK_TIMEOUT 2000;
    ELSE SET LOCK_TIMEOUT 10000;
    DECLARE @Pruned int;
    DECLARE @Cutoff datetime2(6);
    SET @Cutoff = DATEADD(millisecond, -@OlderThanMillis, DATEADD(second, -@OlderThanSeconds, SYSUTCDATETIME()));
    DECLARE @Prunable TABLE (ReportId uniqueidentifier NOT NULL PRIMARY KEY, UpTo bigint NOT NULL);

    BEGIN TRANSACTION;
    INSERT INTO @Prunable (ReportId, UpTo)
    SELECT l.ReportId, MAX(l.Generation)
    FROM $(schema).ReportLedger AS l
             INNER JOIN $(schema).ReportPublication AS r ON r.ReportId = l.ReportId
    WHERE l.EndedAtUtc <= @Cutoff
      AND l.Generation < r.Generation
    GROUP BY l.ReportId;

    UPDATE $(schema).ReportPublication
    SET PrunedUpTo = p.UpTo
    FROM @Prunable AS p
    WHERE $(schema).ReportPublication.ReportId = p.ReportId
      AND $(schema).ReportPublication.PrunedUpTo < p.UpTo;

    DELETE FROM $(schema).ReportLedger
    WHERE EndedAtUtc <= @Cutoff
      AND EXISTS (SELECT 1 FROM @Prunable AS p
                  WHERE p.ReportId = $(schema).ReportLedger.ReportId
                    AND $(schema).ReportLedger.Generation <= p.UpTo);
    SET @Pruned = @@ROWCOUNT;

    COMMIT TRANSACTION;
    SELECT @Pruned AS Pruned;
END
GO
