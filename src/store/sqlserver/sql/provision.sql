-- Creates the report's row with the store-wide recovery epoch. Idempotent. The store's row is locked so that an advance of the
-- epoch leaves no row behind in the old one.
CREATE PROCEDURE $(schema).LeaseholdProvision
    @ReportId uniqueidentifier,
    @WaitMillis int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET IMPLICIT_TRANSACTIONS OFF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @@TRANCOUNT > 0 THROW 51800, N'a transaction is open on this connection', 1;
    DECLARE @Applied int = 0;

    IF NOT EXISTS (SELECT 1 FROM $(schema).ReportPublication WHERE ReportId = @ReportId)
    BEGIN
        IF @WaitMillis < 100 SET LOCK_TIMEOUT 20;
        ELSE IF @WaitMillis < 500 SET LOCK_TIMEOUT 100;
        ELSE IF @WaitMillis < 2000 SET LOCK_TIMEOUT 500;
        ELSE IF @WaitMillis < 10000 SET LOCK_TIMEOUT 2000;
        ELSE SET LOCK_TIMEOUT 10000;

        BEGIN TRANSACTION;
        UPDATE $(schema).LeaseholdStore SET RecoveryEpoch = RecoveryEpoch WHERE Id = 1;

        INSERT INTO $(schema).ReportPublication (ReportId, RecoveryEpoch)
        SELECT @ReportId, s.RecoveryEpoch
        FROM $(schema).LeaseholdStore AS s
        WHERE s.Id = 1
          AND NOT EXISTS (SELECT 1 FROM $(schema).ReportPublication WHERE ReportId = @ReportId);
        SET @Applied = @@ROWCOUNT;
        COMMIT TRANSACTION;
    END;

    SELECT @Applied AS Applied;
END
GO
