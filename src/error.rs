//! [`StoreError`]: why a store could not answer, sorted by what the caller can do about it.

use std::error::Error;
use std::fmt;

/// What a [`StoreError`] means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The operation was surely not applied; trying again may work. A network that is down, a lock that was not had in
    /// time, a server that restarts.
    Unavailable,
    /// The operation may have been applied, now or later: its answer did not arrive. Send it again with the same
    /// identifiers, or `close` it.
    Unknown,
    /// The operation was surely not applied, and will not be until somebody mends something: a wrong password, a missing
    /// table, a read-only file, a full disk.
    Rejected,
    /// The operation was surely not applied, and this request never will be: an oversized payload, a TTL out of range.
    Invalid,
}

/// Why a store could not answer. Its text says what to do, and holds no password, connection string or payload.
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// An error of a kind, with a sentence that says what happened and what to do. Put no secret in it.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same error with the driver's own error as its source.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// [`StoreErrorKind::Unavailable`] with a message.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Unavailable, message)
    }

    /// [`StoreErrorKind::Unknown`] with a message.
    #[must_use]
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Unknown, message)
    }

    /// [`StoreErrorKind::Rejected`] with a message.
    #[must_use]
    pub fn rejected(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Rejected, message)
    }

    /// [`StoreErrorKind::Invalid`] with a message.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Invalid, message)
    }

    /// The same error, meaning something else.
    #[cfg(feature = "sqlserver")]
    pub(crate) fn meaning(self, kind: StoreErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// What the error means for the caller.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same request can succeed later without anybody mending anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Unknown)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreError")
            .field("kind", &self.kind)
            .field("message", &self.message)
            .field("source", &self.source.as_ref().map(ToString::to_string))
            .finish()
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
