-- Publishes and ends the lease, or with a next owner lets it go on under the next generation. The article's conditional UPDATE,
-- with the ledger's row beside it.
--
-- With @InTransaction = 1 it ends a transaction that the caller began: committed with the caller's statements if the publication
-- is accepted, rolled back with them if not. It then leaves an empty transaction open, because a procedure must return with as
-- many transactions as it was called with (error 266); the client ends that one.
CREATE PROCEDURE $(schema).LeaseholdPublish
    @ReportId uniqueidentifier,
    @Owner uniqueidentifier,
    @Generation bigint,
    @Epoch bigint,
    @OperationId uniqueidentifier,
    @Payload nvarchar(max),
    @WaitMillis int,
    @Revision bigint = NULL,
    @NextOwner uniqueidentifier = NULL,
    @TtlMillis int = NULL,
    @InTransaction bit = 0
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    IF @InTransaction = 0
    BEGIN
        SET IMPLICIT_TRANSACTIONS OFF;
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    END;
    IF @InTransaction = 0 AND @@TRANCOUNT > 0 THROW 51800, N'a transaction is open on this connection', 1;
    IF @InTransaction = 1 AND @@TRANCOUNT <> 1 THROW 51801, N'the transaction that was to be published is not open (any more)', 1;
    DECLARE @Now datetime2(6);
    DECLARE @Applied int;
    DECLARE @Advanced int = 0;

    IF @InTransaction = 0 BEGIN TRANSACTION;
    EXEC $(schema).LeaseholdLock @ReportId = @ReportId, @WaitMillis = @WaitMillis, @Now = @Now OUTPUT;
    EXEC $(schema).LeaseholdFound @ReportId = @ReportId, @Now = @Now, @Owner = @Owner, @OperationId = @OperationId;

    -- The lease goes on unless the next owner is over already (closed by a recovery) or there is no next generation.
    IF @NextOwner IS NOT NULL
        AND @Generation < 9223372036854775807
        AND NOT EXISTS (SELECT 1 FROM $(schema).ReportLedger WHERE LeaseOwner = @NextOwner)
        SET @Advanced = 1;

    UPDATE $(schema).ReportPublication
    SET Payload = @Payload,
        PublishedGeneration = @Generation,
        PublishedAtUtc = @Now,
        SourceRevision = @Revision,
        Generation = Generation + @Advanced,
        LeaseOwner = CASE WHEN @Advanced = 1 THEN @NextOwner END,
        LeaseUntilUtc = CASE WHEN @Advanced = 1 THEN DATEADD(millisecond, @TtlMillis, @Now) END,
        LeaseAcquiredAtUtc = CASE WHEN @Advanced = 1 THEN @Now ELSE LeaseAcquiredAtUtc END
    WHERE ReportId = @ReportId
      AND Generation = @Generation
      AND LeaseOwner = @Owner
      AND RecoveryEpoch = @Epoch
      AND LeaseUntilUtc > @Now
      AND PublishedGeneration < @Generation
      AND PrunedUpTo < @Generation
      AND (ForcedGeneration IS NULL OR ForcedGeneration <> @Generation)
      AND (SourceRevisionFloor IS NULL OR @Revision >= SourceRevisionFloor)
      AND (PublishedGeneration = 0 OR SourceRevision IS NULL OR @Revision >= SourceRevision)
      AND NOT EXISTS (SELECT 1 FROM $(schema).ReportLedger WHERE LeaseOwner = @Owner)
      AND NOT EXISTS (SELECT 1 FROM $(schema).ReportLedger WHERE OperationId = @OperationId);
    SET @Applied = @@ROWCOUNT;

    IF @Applied = 1
        INSERT INTO $(schema).ReportLedger
            (LeaseOwner, ReportId, Generation, RecoveryEpoch, OperationId, SourceRevision, EndedAtUtc)
        VALUES (@Owner, @ReportId, @Generation, @Epoch, @OperationId, @Revision, @Now);

    IF @InTransaction = 0 OR @Applied = 1
        COMMIT TRANSACTION;
    ELSE
    BEGIN
        -- With the caller's statements went the record of an expiry that was seen: make it anew.
        ROLLBACK TRANSACTION;
        BEGIN TRANSACTION;
        EXEC $(schema).LeaseholdLock @ReportId = @ReportId, @WaitMillis = @WaitMillis, @Now = @Now OUTPUT;
        COMMIT TRANSACTION;
    END;
    IF @InTransaction = 1 BEGIN TRANSACTION;

    SELECT @Applied AS Applied, @Advanced AS Advanced;
END
GO
