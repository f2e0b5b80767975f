-- Takes the lease, by one conditional UPDATE that increments the generation. Answers what was found, and whether it was taken.
CREATE PROCEDURE $(schema).LeaseholdAcquire
    @ReportId uniqueidentifier,
    @Owner uniqueidentifier,
    @TtlMillis int,
    @Holder nvarchar(256),
    @MinEpoch bigint,
    @TakeoverDelayMillis int,
    @WaitMillis int,
    @Wanted bigint = NULL
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
    SET Generation = Generation + 1,
        LeaseOwner = @Owner,
        LeaseUntilUtc = DATEADD(millisecond, @TtlMillis, @Now),
        LeaseHolder = @Holder,
        LeaseAcquiredAtUtc = @Now,
        TakeoverDelayMillis = @TakeoverDelayMillis
    WHERE ReportId = @ReportId
      AND RecoveryEpoch >= @MinEpoch
      AND NOT EXISTS (SELECT 1 FROM $(schema).ReportLedger WHERE LeaseOwner = @Owner)
      AND (@Wanted IS NULL
        OR PublishedGeneration = 0
        OR SourceRevision IS NULL
        OR SourceRevision < @Wanted
        OR SourceRevision < SourceRevisionFloor)
      AND (LeaseUntilUtc IS NULL OR DATEADD(millisecond, TakeoverDelayMillis, LeaseUntilUtc) <= @Now)
      AND Generation < 9223372036854775807;
    SET @Applied = @@ROWCOUNT;

    COMMIT TRANSACTION;
    SELECT @Applied AS Applied;
END
GO
