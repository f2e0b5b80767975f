-- Makes the outcome of an acquisition certain: as the ledger has it, or else closed from now on. Without a generation and epoch
-- the caller never learned them, so that the acquisition cannot have published.
CREATE PROCEDURE $(schema).LeaseholdClose
    @ReportId uniqueidentifier,
    @Owner uniqueidentifier,
    @WaitMillis int,
    @Generation bigint = NULL,
    @Epoch bigint = NULL
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
    EXEC $(schema).LeaseholdFound @ReportId = @ReportId, @Now = @Now, @Owner = @Owner;

    -- Written, not only looked for: a request still on its way can be accepted no more.
    INSERT INTO $(schema).ReportLedger (LeaseOwner, ReportId, Generation, RecoveryEpoch, EndedAtUtc)
    SELECT @Owner, @ReportId, ISNULL(@Generation, Generation), ISNULL(@Epoch, RecoveryEpoch), @Now
    FROM $(schema).ReportPublication
    WHERE ReportId = @ReportId
      AND (@Generation IS NULL OR (PrunedUpTo < @Generation AND Generation >= @Generation AND RecoveryEpoch = @Epoch))
      AND NOT EXISTS (SELECT 1 FROM $(schema).ReportLedger WHERE LeaseOwner = @Owner);
    SET @Applied = @@ROWCOUNT;

    IF @Applied = 1
        UPDATE $(schema).ReportPublication
        SET LeaseOwner = NULL,
            LeaseUntilUtc = NULL
        WHERE ReportId = @ReportId
          AND LeaseOwner = @Owner;

    COMMIT TRANSACTION;
    SELECT @Applied AS Applied;
END
GO

-- Frees the lease if exactly this fence holds it, and writes the owner's closing to the ledger.
CREATE PROCEDURE $(schema).LeaseholdRelease
    @ReportId uniqueidentifier,
    @Owner uniqueidentifier,
    @Generation bigint,
    @Epoch bigint,
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
    EXEC $(schema).LeaseholdFound @ReportId = @ReportId, @Now = @Now, @Owner = @Owner;

    UPDATE $(schema).ReportPublication
    SET LeaseOwner = NULL,
        LeaseUntilUtc = NULL
    WHERE ReportId = @ReportId
      AND Generation = @Generation
      AND LeaseOwner = @Owner
      AND RecoveryEpoch = @Epoch
      AND LeaseUntilUtc > @Now
      AND NOT EXISTS (SELECT 1 FROM $(schema).ReportLedger WHERE LeaseOwner = @Owner);
    SET @Applied = @@ROWCOUNT;

    IF @Applied = 1
        INSERT INTO $(schema).ReportLedger (LeaseOwner, ReportId, Generation, RecoveryEpoch, EndedAtUtc)
        VALUES (@Owner, @ReportId, @Generation, @Epoch, @Now);

    COMMIT TRANSACTION;
    SELECT @Applied AS Applied;
END
GO
