//! A store without its type: one box per database call, so that guards and errors carry no type parameter.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::answer::{
    AcquireAnswer, BatchRenewal, CloseAnswer, Metadata, ProvisionAnswer, PublishAnswer, ReadAnswer, ReleaseAnswer,
    RenewAnswer, ReportStatus, Version,
};
use crate::error::StoreError;
use crate::fence::{Fence, ReportId};
use crate::store::{AcquireRequest, AdvanceRequest, Budget, CloseRequest, PublishRequest, Store};

/// A store call that owns all it needs.
pub(crate) type StoreCall<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// The operations that the client uses, of whatever store.
pub(crate) trait ErasedStore: Send + Sync + 'static {
    fn for_runtime(&self, runtime: &Handle) -> Arc<dyn ErasedStore>;
    fn provision(&self, report: ReportId, budget: Budget) -> StoreCall<ProvisionAnswer>;
    fn acquire(&self, request: AcquireRequest, budget: Budget) -> StoreCall<AcquireAnswer>;
    fn renew(&self, fence: Fence, ttl: Duration, budget: Budget) -> StoreCall<RenewAnswer>;
    fn renew_many(&self, fences: Vec<Fence>, ttl: Duration, budget: Budget) -> StoreCall<Vec<BatchRenewal>>;
    fn publish(&self, request: PublishRequest, budget: Budget) -> StoreCall<PublishAnswer>;
    fn publish_and_advance(&self, request: AdvanceRequest, budget: Budget) -> StoreCall<PublishAnswer>;
    fn close(&self, request: CloseRequest, budget: Budget) -> StoreCall<CloseAnswer>;
    fn release(&self, fence: Fence, budget: Budget) -> StoreCall<ReleaseAnswer>;
    fn read(&self, report: ReportId, newer_than: Option<Version>, budget: Budget) -> StoreCall<ReadAnswer>;
    fn metadata(&self, report: ReportId, budget: Budget) -> StoreCall<Option<Metadata>>;
    fn inspect(&self, report: ReportId, budget: Budget) -> StoreCall<Option<ReportStatus>>;
}

/// Boxes each operation of a store, which is cheap to clone, with a clone of it.
macro_rules! boxed_calls {
    ($($operation:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $operation(&self, $($argument: $type,)* budget: Budget) -> StoreCall<$answer> {
            let store = self.clone();
            Box::pin(async move { Store::$operation(&store, $($argument,)* budget).await })
        })*
    };
}

impl<S: Store> ErasedStore for S {
    fn for_runtime(&self, runtime: &Handle) -> Arc<dyn ErasedStore> {
        Arc::new(Store::for_runtime(self, runtime))
    }

    boxed_calls! {
        provision(report: ReportId) -> ProvisionAnswer;
        acquire(request: AcquireRequest) -> AcquireAnswer;
        renew(fence: Fence, ttl: Duration) -> RenewAnswer;
        renew_many(fences: Vec<Fence>, ttl: Duration) -> Vec<BatchRenewal>;
        publish(request: PublishRequest) -> PublishAnswer;
        publish_and_advance(request: AdvanceRequest) -> PublishAnswer;
        close(request: CloseRequest) -> CloseAnswer;
        release(fence: Fence) -> ReleaseAnswer;
        read(report: ReportId, newer_than: Option<Version>) -> ReadAnswer;
        metadata(report: ReportId) -> Option<Metadata>;
        inspect(report: ReportId) -> Option<ReportStatus>;
    }
}
