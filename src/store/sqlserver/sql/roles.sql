-- A worker may execute what a worker needs, an operator that and more, and neither may touch a table: the procedures reach them
-- because they have the same owner (ownership chaining).
IF DATABASE_PRINCIPAL_ID(N'leasehold_worker') IS NULL CREATE ROLE leasehold_worker;
GO
IF DATABASE_PRINCIPAL_ID(N'leasehold_operator') IS NULL CREATE ROLE leasehold_operator;
GO
GRANT EXECUTE ON $(schema).LeaseholdVersion TO leasehold_worker;
GRANT EXECUTE ON $(schema).LeaseholdProvision TO leasehold_worker;
GRANT EXECUTE ON $(schema).LeaseholdAcquire TO leasehold_worker;
GRANT EXECUTE ON $(schema).LeaseholdRenew TO leasehold_worker;
GRANT EXECUTE ON $(schema).LeaseholdRenewMany TO leasehold_worker;
GRANT EXECUTE ON $(schema).LeaseholdPublish TO leasehold_worker;
GRANT EXECUTE ON $(schema).LeaseholdClose TO leasehold_worker;
GRANT EXECUTE ON $(schema).LeaseholdRelease TO leasehold_worker;
GRANT EXECUTE ON $(schema).LeaseholdRead TO leasehold_worker;
GRANT EXECUTE ON $(schema).LeaseholdInspect TO leasehold_worker;
GRANT EXECUTE ON $(schema).LeaseholdList TO leasehold_worker;
GO
GRANT EXECUTE ON $(schema).LeaseholdVersion TO leasehold_operator;
GRANT EXECUTE ON $(schema).LeaseholdInspect TO leasehold_operator;
GRANT EXECUTE ON $(schema).LeaseholdList TO leasehold_operator;
GRANT EXECUTE ON $(schema).LeaseholdForceRelease TO leasehold_operator;
GRANT EXECUTE ON $(schema).LeaseholdRequireRevision TO leasehold_operator;
GRANT EXECUTE ON $(schema).LeaseholdResetRevision TO leasehold_operator;
GRANT EXECUTE ON $(schema).LeaseholdAdvanceEpoch TO leasehold_operator;
GRANT EXECUTE ON $(schema).LeaseholdPrune TO leasehold_operator;
GO
