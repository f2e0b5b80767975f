-- leasehold's tables, schema version 1. Idempotent; keeps every row that it finds, also of the article's own table.

-- What holds for the whole store: one row.
IF OBJECT_ID(N'$(schema_text).LeaseholdStore', N'U') IS NULL
    CREATE TABLE $(schema).LeaseholdStore
    (
        Id            int    NOT NULL
            CONSTRAINT PK_LeaseholdStore PRIMARY KEY
            CONSTRAINT CK_LeaseholdStore_OneRow CHECK (Id = 1),

        SchemaVersion int    NOT NULL,
        RecoveryEpoch bigint NOT NULL
    );
GO

IF NOT EXISTS (SELECT 1 FROM $(schema).LeaseholdStore)
    INSERT INTO $(schema).LeaseholdStore (Id, SchemaVersion, RecoveryEpoch) VALUES (1, 0, 0);
GO

-- One row a report: who may publish, and what is published. It is never deleted, and Generation never goes down. These are the
-- article's columns and constraints; what leasehold adds follows, so that a table made from the article is upgraded by the same
-- statements.
IF OBJECT_ID(N'$(schema_text).ReportPublication', N'U') IS NULL
    CREATE TABLE $(schema).ReportPublication
    (
        ReportId uniqueidentifier NOT NULL
            CONSTRAINT PK_ReportPublication PRIMARY KEY,

        Generation bigint NOT NULL
            CONSTRAINT DF_ReportPublication_Generation DEFAULT (0),

        LeaseOwner uniqueidentifier NULL,
        LeaseUntilUtc datetime2(7) NULL,

        PublishedGeneration bigint NOT NULL
            CONSTRAINT DF_ReportPublication_PublishedGeneration DEFAULT (0),

        Payload nvarchar(max) NULL,
        PublishedAtUtc datetime2(7) NULL
    );
GO

-- Of the latest acquisition; they stay when it is over.
IF COL_LENGTH(N'$(schema_text).ReportPublication', N'LeaseHolder') IS NULL
    ALTER TABLE $(schema).ReportPublication ADD LeaseHolder nvarchar(256) NULL;
GO
IF COL_LENGTH(N'$(schema_text).ReportPublication', N'LeaseAcquiredAtUtc') IS NULL
    ALTER TABLE $(schema).ReportPublication ADD LeaseAcquiredAtUtc datetime2(7) NULL;
GO
IF COL_LENGTH(N'$(schema_text).ReportPublication', N'TakeoverDelayMillis') IS NULL
    ALTER TABLE $(schema).ReportPublication ADD TakeoverDelayMillis int NOT NULL
        CONSTRAINT DF_ReportPublication_TakeoverDelayMillis DEFAULT (0);
GO
-- Which database history the row belongs to.
IF COL_LENGTH(N'$(schema_text).ReportPublication', N'RecoveryEpoch') IS NULL
    ALTER TABLE $(schema).ReportPublication ADD RecoveryEpoch bigint NOT NULL
        CONSTRAINT DF_ReportPublication_RecoveryEpoch DEFAULT (0);
GO
-- The revision of the source data that the payload was built from, and the least that the next one must have.
IF COL_LENGTH(N'$(schema_text).ReportPublication', N'SourceRevision') IS NULL
    ALTER TABLE $(schema).ReportPublication ADD SourceRevision bigint NULL;
GO
IF COL_LENGTH(N'$(schema_text).ReportPublication', N'SourceRevisionFloor') IS NULL
    ALTER TABLE $(schema).ReportPublication ADD SourceRevisionFloor bigint NULL;
GO
-- The highest generation of which evidence may be missing in the ledger.
IF COL_LENGTH(N'$(schema_text).ReportPublication', N'PrunedUpTo') IS NULL
    ALTER TABLE $(schema).ReportPublication ADD PrunedUpTo bigint NOT NULL
        CONSTRAINT DF_ReportPublication_PrunedUpTo DEFAULT (0);
GO
-- The latest force release.
IF COL_LENGTH(N'$(schema_text).ReportPublication', N'ForcedGeneration') IS NULL
    ALTER TABLE $(schema).ReportPublication ADD ForcedGeneration bigint NULL;
GO
IF COL_LENGTH(N'$(schema_text).ReportPublication', N'ForcedBy') IS NULL
    ALTER TABLE $(schema).ReportPublication ADD ForcedBy nvarchar(256) NULL;
GO
IF COL_LENGTH(N'$(schema_text).ReportPublication', N'ForcedAtUtc') IS NULL
    ALTER TABLE $(schema).ReportPublication ADD ForcedAtUtc datetime2(7) NULL;
GO

-- One row an acquisition that is over: published (it has an operation) or closed. An operation id is used once, whichever owner
-- and report it came with. The last index is for pruning.
IF OBJECT_ID(N'$(schema_text).ReportLedger', N'U') IS NULL
BEGIN
    CREATE TABLE $(schema).ReportLedger
    (
        LeaseOwner     uniqueidentifier NOT NULL
            CONSTRAINT PK_ReportLedger PRIMARY KEY,

        ReportId       uniqueidentifier NOT NULL,
        Generation     bigint           NOT NULL,
        RecoveryEpoch  bigint           NOT NULL,
        OperationId    uniqueidentifier NULL,
        SourceRevision bigint           NULL,
        EndedAtUtc     datetime2(7)     NOT NULL
    );
    CREATE UNIQUE INDEX UX_ReportLedger_OperationId ON $(schema).ReportLedger (OperationId) WHERE OperationId IS NOT NULL;
    CREATE INDEX IX_ReportLedger_EndedAtUtc ON $(schema).ReportLedger (EndedAtUtc);
END;
GO

-- A table that comes from the article has publications of which no ledger was kept, so nobody can be told their outcome. Its
-- leases count as they are; an owner without an expiry holds nothing there, and holds nothing here.
IF EXISTS (SELECT 1 FROM $(schema).LeaseholdStore WHERE SchemaVersion = 0)
BEGIN
    UPDATE $(schema).ReportPublication SET PrunedUpTo = PublishedGeneration WHERE PublishedGeneration > PrunedUpTo;
    UPDATE $(schema).ReportPublication SET LeaseOwner = NULL WHERE LeaseUntilUtc IS NULL AND LeaseOwner IS NOT NULL;
    UPDATE $(schema).ReportPublication SET LeaseUntilUtc = CAST(LeaseUntilUtc AS datetime2(6)) WHERE LeaseUntilUtc IS NOT NULL;
    UPDATE $(schema).ReportPublication SET PublishedAtUtc = SYSUTCDATETIME()
    WHERE PublishedGeneration > 0 AND PublishedAtUtc IS NULL;
END;
GO
