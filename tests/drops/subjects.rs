//! What is dropped: each public `async fn`, made ready to be polled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::LocalBoxFuture;
use leasehold::answer::{PublishAnswer, Version};
use leasehold::store::{Budget, FencedTransaction, PublishRequest, Store, StoreError};
use leasehold::testing::{Fault, MemoryTransaction, Operation};
use leasehold::{Epoch, Generation, LeaseSupervisor, Publication, ReportId};
use tokio::sync::Mutex;

use crate::drop_at::Subjected;
use crate::support::{DEADLINE, Scene, TestStore, budget};
use crate::verdict::Verdict;

pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// The call that the faults befall.
    pub(crate) operation: Operation,
    pub(crate) prepare: for<'a> fn(&'a Scene) -> LocalBoxFuture<'a, Prepared>,
}

pub(crate) struct Prepared {
    pub(crate) future: Subjected,
    pub(crate) verdict: Verdict,
}

/// What becomes of a publication whose call was dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum After {
    Drop,
    Resolve,
    SendAgain,
}

impl Subject {
    /// Whether what it leaves is ended by a clean-up that nothing befalls, and not left to expire.
    pub(crate) fn is_cleaned_up(&self) -> bool {
        // Under a build on a blocking thread nothing is released.
        let blocks = self.name.contains("blocking");
        // A report that has no row yet has no place to note that an acquisition is closed: should its row be made while the
        // request is still on its way, that request takes one TTL from others.
        let no_row = self.name.starts_with("acquire_or_provision");
        !blocks && !no_row && !matches!(self.operation, Operation::Close | Operation::Release)
    }

    pub(crate) fn afters(&self) -> &'static [After] {
        match self.name {
            "send" | "send_and_advance" | "send_within" | "send_within_applied" | "publication_resolve" => {
                &[After::Drop, After::Resolve, After::SendAgain]
            }
            _ => &[After::Drop],
        }
    }
}

pub(crate) const PAYLOAD: &str = "mine";

/// A report that was never provisioned.
fn unheard_of() -> ReportId {
    ReportId::from_name("unheard of")
}

fn ready(future: impl Future<Output = ()> + 'static, verdict: Verdict) -> Prepared {
    Prepared { future: Box::pin(future), verdict }
}

/// A subject that needs nothing but the supervisor.
fn asked<F: Future<Output = ()> + 'static>(
    scene: &Scene,
    report: ReportId,
    ask: impl FnOnce(LeaseSupervisor, ReportId) -> F + 'static,
) -> LocalBoxFuture<'_, Prepared> {
    let prepared = ready(ask(scene.supervisor.clone(), report), Verdict::of(report));
    Box::pin(std::future::ready(prepared))
}

/// A subject that needs a publication of a lease that is held.
fn published<F: Future<Output = ()> + 'static>(
    scene: &Scene,
    made: impl FnOnce(Publication) -> Publication + 'static,
    ask: impl FnOnce(Arc<Mutex<Publication>>, MemoryTransaction, Arc<AtomicUsize>) -> F + 'static,
) -> LocalBoxFuture<'_, Prepared> {
    Box::pin(async move {
        let publication = made(scene.acquire().await.publication(PAYLOAD));
        let ticket = publication.ticket();
        let publication = Arc::new(Mutex::new(publication));
        let committed = Arc::new(AtomicUsize::new(0));
        let transaction = scene.store.begin(budget()).await.unwrap();
        let future = ask(Arc::clone(&publication), transaction, Arc::clone(&committed));
        ready(
            future,
            Verdict { publication: Some(publication), ticket: Some(ticket), committed, ..Verdict::of(scene.report) },
        )
    })
}

async fn build(fails: bool) -> Result<&'static str, &'static str> {
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    if fails { Err("the build's own error") } else { Ok(PAYLOAD) }
}

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "provision",
        operation: Operation::Provision,
        prepare: |scene| {
            asked(scene, unheard_of(), |supervisor, report| async move { drop(supervisor.provision(report).await) })
        },
    },
    Subject {
        name: "acquire",
        operation: Operation::Acquire,
        prepare: |scene| {
            asked(scene, scene.report, |supervisor, report| async move { drop(supervisor.acquire(report, None).await) })
        },
    },
    Subject {
        name: "acquire_or_provision",
        operation: Operation::Acquire,
        prepare: |scene| {
            asked(scene, unheard_of(), |supervisor, report| async move {
                drop(supervisor.acquire_or_provision(report, None).await)
            })
        },
    },
    Subject {
        name: "acquire_or_provision_provisioning",
        operation: Operation::Provision,
        prepare: |scene| {
            asked(scene, unheard_of(), |supervisor, report| async move {
                drop(supervisor.acquire_or_provision(report, None).await)
            })
        },
    },
    Subject {
        name: "acquire_wait",
        operation: Operation::Acquire,
        prepare: |scene| {
            asked(
                scene,
                scene.report,
                |supervisor, report| async move { drop(supervisor.acquire_wait(report, None).await) },
            )
        },
    },
    Subject {
        name: "run_acquiring",
        operation: Operation::Acquire,
        prepare: |scene| {
            asked(scene, scene.report, |supervisor, report| async move {
                drop(supervisor.run(report, None, |_| build(false)).await)
            })
        },
    },
    Subject {
        name: "run_publishing",
        operation: Operation::Publish,
        prepare: |scene| {
            asked(scene, scene.report, |supervisor, report| async move {
                drop(supervisor.run(report, None, |_| build(false)).await)
            })
        },
    },
    Subject {
        name: "run_failing",
        operation: Operation::Release,
        prepare: |scene| {
            asked(scene, scene.report, |supervisor, report| async move {
                drop(supervisor.run(report, None, |_| build(true)).await)
            })
        },
    },
    Subject {
        name: "run_blocking",
        operation: Operation::Publish,
        prepare: |scene| {
            asked(scene, scene.report, |supervisor, report| async move {
                drop(supervisor.run_blocking(report, None, |_| Ok::<_, ()>(PAYLOAD)).await);
            })
        },
    },
    Subject {
        name: "supervise_blocking",
        operation: Operation::Release,
        prepare: |scene| {
            Box::pin(async move {
                let guard = scene.acquire().await;
                ready(
                    async move { drop(guard.supervise_blocking(|lease| lease.fence()).await) },
                    Verdict::of(scene.report),
                )
            })
        },
    },
    Subject {
        name: "resolve",
        operation: Operation::Close,
        prepare: |scene| {
            Box::pin(async move {
                // Published, and nobody was told; another process has the ticket.
                scene.store.plan(Operation::PublishAndAdvance, Fault::HangAfterwards);
                let mut publication = scene.acquire().await.publication(PAYLOAD).and_advance();
                let ticket = publication.ticket();
                assert!(tokio::time::timeout(std::time::Duration::from_millis(1), publication.send()).await.is_err());
                let (supervisor, kept) = (scene.rival(), scene.supervisor.clone());
                let asking = LeaseSupervisor::builder(scene.store.clone(), supervisor.policy().clone())
                    .clock(leasehold::testing::TokioClock::start())
                    .renew_on(tokio::runtime::Handle::current())
                    .start()
                    .unwrap();
                let future = async move {
                    drop(asking.resolve(ticket).await);
                    drop(kept);
                };
                let publication = Some(Arc::new(Mutex::new(publication)));
                ready(future, Verdict { publication, ticket: Some(ticket), ..Verdict::of(scene.report) })
            })
        },
    },
    Subject {
        name: "read",
        operation: Operation::Read,
        prepare: |scene| {
            asked(scene, scene.report, |supervisor, report| async move { drop(supervisor.read(report).await) })
        },
    },
    Subject {
        name: "read_if_newer",
        operation: Operation::Read,
        prepare: |scene| {
            asked(scene, scene.report, |supervisor, report| async move {
                let than = Version { epoch: Epoch::new(0), generation: Generation::new(0) };
                drop(supervisor.read_if_newer(report, than).await);
            })
        },
    },
    Subject {
        name: "metadata",
        operation: Operation::Metadata,
        prepare: |scene| {
            asked(scene, scene.report, |supervisor, report| async move { drop(supervisor.metadata(report).await) })
        },
    },
    Subject {
        name: "inspect",
        operation: Operation::Inspect,
        prepare: |scene| {
            asked(scene, scene.report, |supervisor, report| async move { drop(supervisor.inspect(report).await) })
        },
    },
    Subject {
        name: "shutdown",
        operation: Operation::Release,
        prepare: |scene| {
            Box::pin(async move {
                let guard = scene.acquire().await;
                tokio::spawn(async move {
                    guard.lost().await;
                });
                asked(scene, scene.report, |supervisor, _| async move {
                    let _ = supervisor.shutdown(std::time::Duration::from_secs(8)).await;
                })
                .await
            })
        },
    },
    Subject {
        name: "release",
        operation: Operation::Release,
        prepare: |scene| {
            Box::pin(async move {
                let guard = scene.acquire().await;
                ready(async move { drop(guard.release().await) }, Verdict::of(scene.report))
            })
        },
    },
    Subject {
        name: "publish",
        operation: Operation::Publish,
        prepare: |scene| {
            Box::pin(async move {
                let guard = scene.acquire().await;
                ready(async move { drop(guard.publish(PAYLOAD).await) }, Verdict::of(scene.report))
            })
        },
    },
    Subject {
        name: "lost",
        operation: Operation::Renew,
        prepare: |scene| {
            Box::pin(async move {
                let guard = scene.acquire().await;
                // Lost for sure, whatever becomes of the renewals.
                scene.store.inner().clock().step(DEADLINE);
                let future = async move {
                    let _ = tokio::time::timeout(std::time::Duration::from_secs(40), guard.lost()).await;
                };
                ready(future, Verdict::of(scene.report))
            })
        },
    },
    Subject {
        name: "watch",
        operation: Operation::Renew,
        prepare: |scene| {
            Box::pin(async move {
                let guard = scene.acquire().await;
                let future = async move {
                    let mut watch = guard.watch();
                    for _ in 0..3 {
                        drop(watch.changed().await);
                    }
                };
                ready(future, Verdict::of(scene.report))
            })
        },
    },
    Subject {
        name: "send",
        operation: Operation::Publish,
        prepare: |scene| {
            published(
                scene,
                |publication| publication,
                |publication, _, _| async move { drop(publication.lock().await.send().await) },
            )
        },
    },
    Subject {
        name: "send_and_advance",
        operation: Operation::PublishAndAdvance,
        prepare: |scene| {
            published(scene, Publication::and_advance, |publication, _, _| async move {
                drop(publication.lock().await.send().await)
            })
        },
    },
    // What is planned for `begin` befalls the transaction's final trip, before or after it is applied.
    Subject { name: "send_within", operation: Operation::Begin, prepare: |scene| sent_within(scene, false) },
    Subject { name: "send_within_applied", operation: Operation::Begin, prepare: |scene| sent_within(scene, true) },
    Subject {
        name: "publication_resolve",
        operation: Operation::Close,
        prepare: |scene| {
            published(
                scene,
                |publication| publication,
                |publication, _, _| async move { drop(publication.lock().await.resolve().await) },
            )
        },
    },
];

fn sent_within(scene: &Scene, applied_first: bool) -> LocalBoxFuture<'_, Prepared> {
    let store = scene.store.clone();
    published(
        scene,
        |publication| publication,
        move |publication, mut inner, committed| async move {
            inner.on_commit(move || {
                committed.fetch_add(1, Ordering::SeqCst);
            });
            let transaction = Transaction { inner, store, applied_first };
            drop(publication.lock().await.send_within(transaction).await);
        },
    )
}

/// A transaction whose final trip goes through the faults that are planned for `begin`.
struct Transaction {
    inner: MemoryTransaction,
    store: TestStore,
    applied_first: bool,
}

impl FencedTransaction for Transaction {
    async fn publish(self, request: PublishRequest, budget: Budget) -> Result<PublishAnswer, StoreError> {
        let Self { inner, store, applied_first } = self;
        if applied_first {
            let answer = inner.publish(request, budget).await;
            // After it was applied no store can say that it surely was not.
            let fault = store.begin(budget).await.map(drop);
            fault.map_err(|_| StoreError::unknown("planned: the answer is lost"))?;
            answer
        } else {
            store.begin(budget).await.map(drop)?;
            inner.publish(request, budget).await
        }
    }

    async fn rollback(self, budget: Budget) -> Result<(), StoreError> {
        self.inner.rollback(budget).await
    }
}
