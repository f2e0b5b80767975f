-- Rules 1 to 3 of the protocol, for one report, inside the caller's transaction: lock the row, then read the clock, then end a
-- lease that has expired. The clock is read in a statement of its own because SYSUTCDATETIME() is fixed when a statement starts,
-- which is before it waits for a lock. An UPDATE takes the lock: it does so on every engine, hint or no hint.
CREATE PROCEDURE $(schema).LeaseholdLock
    @ReportId uniqueidentifier,
    @WaitMillis int,
    @Now datetime2(6) OUTPUT
AS
BEGIN
    SET NOCOUNT ON;

    -- The wait for the lock ends before the caller's budget does. LOCK_TIMEOUT takes no variable. It is undone on return.
    IF @WaitMillis < 20 SET LOCK_TIMEOUT 5;
    ELSE IF @WaitMillis < 50 SET LOCK_TIMEOUT 20;
    ELSE IF @WaitMillis < 100 SET LOCK_TIMEOUT 50;
    ELSE IF @WaitMillis < 200 SET LOCK_TIMEOUT 100;
    ELSE IF @WaitMillis < 500 SET LOCK_TIMEOUT 200;
    ELSE IF @WaitMillis < 1000 SET LOCK_TIMEOUT 500;
    ELSE IF @WaitMillis < 2000 SET LOCK_TIMEOUT 1000;
    ELSE IF @WaitMillis < 5000 SET LOCK_TIMEOUT 2000;
    ELSE IF @WaitMillis < 10000 SET LOCK_TIMEOUT 5000;
    ELSE IF @WaitMillis < 20000 SET LOCK_TIMEOUT 10000;
    ELSE IF @WaitMillis < 60000 SET LOCK_TIMEOUT 20000;
    ELSE SET LOCK_TIMEOUT 60000;

    UPDATE $(schema).ReportPublication
    SET Generation = Generation
    WHERE ReportId = @ReportId;

    SET @Now = SYSUTCDATETIME();

    UPDATE $(schema).ReportPublication
    SET LeaseOwner = NULL
    WHERE ReportId = @ReportId
      AND LeaseOwner IS NOT NULL
      AND LeaseUntilUtc <= @Now;
END
GO
