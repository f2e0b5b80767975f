//! What must hold after a drop, whatever was dropped where.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::answer::PublishAnswer;
use leasehold::store::{Payload, PublishRequest, Store};
use leasehold::testing::Operation;
use leasehold::{LeaseGuard, LeaseSupervisor, OperationId, Outcome, Publication, PublishError, ReportId, Ticket};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::subjects::{After, PAYLOAD, Subject};
use crate::support::{Scene, TTL, budget, secs};
use crate::{MANY, Plan};

pub(crate) struct Verdict {
    pub(crate) report: ReportId,
    pub(crate) publication: Option<Arc<Mutex<Publication>>>,
    pub(crate) ticket: Option<Ticket>,
    /// How often the user's own statements were committed.
    pub(crate) committed: Arc<AtomicUsize>,
}

impl Verdict {
    pub(crate) fn of(report: ReportId) -> Self {
        Self { report, publication: None, ticket: None, committed: Arc::default() }
    }

    pub(crate) async fn check(self, scene: &Scene, subject: &Subject, plan: &Plan, after: After, what: &str) {
        let dropped_at = Instant::now();
        scene.store.plan_always(subject.operation, None);
        let mut told = None;
        if let Some(publication) = self.publication {
            // Nothing else has it any more: the dropped call had the other clone.
            let publication = Arc::into_inner(publication).expect("the call was dropped").into_inner();
            told = go_on(scene, publication, after, what).await;
        }
        let rival = scene.rival();
        rival.provision(self.report).await.unwrap();
        let since = if matches!(after, After::Drop) { dropped_at } else { Instant::now() };
        let limit = if plan.cleanup.is_none() && subject.is_cleaned_up() {
            // Once the clean-up is over, requests that were held on their way must find that they are too late.
            sleep(Duration::from_millis(2_500)).await;
            open(plan).await;
            secs(3)
        } else {
            // Nobody renews it.
            TTL + secs(1)
        };
        let theirs = acquired_within(&rival, self.report, since, limit, what).await;
        if let Some(ticket) = self.ticket {
            let truth = truth(scene, ticket).await;
            let first = rival.resolve(ticket).await.unwrap();
            assert_eq!(matches!(first, Outcome::Published(_)), truth, "{what}: {first:?}");
            assert_eq!(told.unwrap_or(first), first, "{what}: its holder was told otherwise");
            open(plan).await;
            assert_eq!(rival.resolve(ticket).await.unwrap(), first, "{what}: the answer changed");
            no_second_publication(scene, ticket, what).await;
            let published = matches!(first, Outcome::Published(_));
            let commits = self.committed.load(Ordering::SeqCst);
            assert!(commits <= usize::from(published), "{what}: the user's statements without the publication");
            theirs.publish("theirs").await.unwrap();
            assert_eq!(rival.resolve(ticket).await.unwrap(), first, "{what}: the answer changed");
        } else {
            theirs.publish("theirs").await.unwrap();
        }
        no_tasks_left(&scene.supervisor, what).await;
        assert_eq!(scene_payload(scene, self.report).await.as_deref(), Some("theirs"), "{what}: it was overwritten");
    }
}

/// Goes on with a publication; what its holder is told, if anything certain.
async fn go_on(scene: &Scene, mut publication: Publication, after: After, what: &str) -> Option<Outcome> {
    if !matches!(after, After::Drop) {
        for cleanup in [Operation::Close, Operation::Release] {
            scene.store.plan_always(cleanup, None);
        }
    }
    let told = match after {
        After::Drop => None,
        After::Resolve => publication.resolve().await.ok(),
        After::SendAgain => match publication.send().await {
            Ok(receipt) => Some(Outcome::Published(receipt)),
            Err(PublishError::Lost(_)) => Some(Outcome::NotPublished),
            Err(PublishError::Unresolved(_)) => None,
            Err(error) => panic!("{what}: {error}"),
        },
    };
    drop(publication);
    told
}

/// Lets go what is held on its way.
async fn open(plan: &Plan) {
    for _ in 0..MANY {
        plan.late.open();
    }
    sleep(Duration::from_millis(10)).await;
}

async fn acquired_within(
    rival: &LeaseSupervisor,
    report: ReportId,
    since: Instant,
    limit: Duration,
    what: &str,
) -> LeaseGuard {
    loop {
        match rival.acquire(report, None).await {
            Ok(acquisition) => return acquisition.acquired().unwrap(),
            Err(error) => assert!(since.elapsed() <= limit, "{what}: {error} after {:?}", since.elapsed()),
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// Whether the database has it.
async fn truth(scene: &Scene, ticket: Ticket) -> bool {
    scene_payload(scene, ticket.fence.report).await.as_deref() == Some(PAYLOAD)
}

async fn scene_payload(scene: &Scene, report: ReportId) -> Option<String> {
    match scene.store.inner().read(report, None, budget()).await.unwrap() {
        leasehold::answer::ReadAnswer::Found { payload, .. } => Some(payload),
        _ => None,
    }
}

/// The generation's one publication was made, or never will be.
async fn no_second_publication(scene: &Scene, ticket: Ticket, what: &str) {
    let payload = Payload::new("a second one", 64).unwrap();
    let request = PublishRequest { fence: ticket.fence, operation: OperationId::random(), payload, revision: None };
    let answer = scene.store.inner().publish(request, budget()).await.unwrap();
    assert!(matches!(answer, PublishAnswer::Refused(_)), "{what}: {answer:?}");
}

async fn no_tasks_left(supervisor: &LeaseSupervisor, what: &str) {
    let started = Instant::now();
    while supervisor.tasks() > 0 {
        assert!(started.elapsed() < secs(120), "{what}: {} tasks are left", supervisor.tasks());
        sleep(Duration::from_millis(250)).await;
    }
}
