UPDATE ReportPublication
SET RecoveryEpoch = :epoch,
    LeaseOwner = NULL,
    LeaseUntilUtc = NULL,
    LeaseBootId = NULL,
    LeaseUntilNanos = NULL
