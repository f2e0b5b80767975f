-- What is visible moves into the new epoch too: a reader's copy of a later generation, from the history that was lost, must
-- not count as newer than it.
UPDATE ReportPublication
SET RecoveryEpoch = :epoch,
    PublishedEpoch = CASE WHEN PublishedEpoch IS NOT NULL THEN :epoch END,
    LeaseOwner = NULL,
    LeaseUntilUtc = NULL,
    LeaseBootId = NULL,
    LeaseUntilNanos = NULL
