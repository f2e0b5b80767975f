-- Extends the lease of exactly this fence, if it has not expired. A renewal never revives, and never shortens.
CREATE PROCEDURE $(schema).LeaseholdRenew
    @ReportId uniqueidentifier,
    @Owner uniqueidentifier,
    @Generation bigint,
    @Epoch bigint,
    @TtlMillis int,
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
    SET LeaseUntilUtc = CASE
                            WHEN LeaseUntilUtc > DATEADD(millisecond, @TtlMillis, @Now) THEN LeaseUntilUtc
                            ELSE DATEADD(millisecond, @TtlMillis, @Now)
        END
    WHERE ReportId = @ReportId
      AND Generation = @Generation
      AND LeaseOwner = @Owner
      AND RecoveryEpoch = @Epoch
      AND LeaseUntilUtc > @Now;
    SET @Applied = @@ROWCOUNT;

    COMMIT TRANSACTION;
    SELECT @Applied AS Applied;
END
GO
