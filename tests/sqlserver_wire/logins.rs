//! Connections that are never made: denied logins, redirects, no encryption, certificates that nobody trusts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold::StoreErrorKind::{self, Invalid, Rejected, Unavailable};
use leasehold::store::Store;
use leasehold::store::sqlserver::SqlServerStore;
use tokio::net::TcpListener;

use crate::scene::{PATIENCE, budget};
use crate::sqlserver::connection_string;
use crate::stand_in::{PASSWORD, answering, config, short_budget, store};
use crate::subject::Subject;
use crate::tds::{Reply, Request, SqlError, TdsServer, Value};

async fn told_at_login(reply: Reply) -> (StoreErrorKind, usize) {
    let server = TdsServer::answering_logins_with(reply).await;
    let told = store(server.addr()).inspect(Subject::fresh().report, budget()).await;
    (told.expect_err("nobody is let in").kind(), server.logins())
}

#[tokio::test]
async fn a_denied_login_says_whether_somebody_has_to_mend_it() {
    for (number, class, expected) in [
        (18_456, 14, Rejected),
        (18_487, 14, Rejected),
        (18_488, 14, Rejected),
        (18_470, 14, Rejected),
        (4060, 11, Rejected),
        (40_615, 14, Rejected),
        (40_613, 17, Unavailable),
        (40_197, 17, Unavailable),
        (10_928, 20, Unavailable),
        (17_142, 14, Unavailable),
    ] {
        let (kind, logins) = told_at_login(Reply::Error(SqlError::new(number, class))).await;
        assert_eq!((kind, logins), (expected, 1), "{number}: told at once, and not tried again");
    }
}

#[tokio::test]
async fn a_login_that_breaks_off_sent_nothing() {
    assert_eq!(told_at_login(Reply::HangUp).await, (Unavailable, 1));
}

#[tokio::test]
async fn a_login_that_is_never_answered_ends_with_the_budget() {
    let server = TdsServer::answering_logins_with(Reply::Silence).await;
    let subject = Subject::fresh();
    let store = store(server.addr());
    let publishing = store.publish(subject.publish_request(), short_budget());
    let told = tokio::time::timeout(PATIENCE, publishing).await.expect("it ends");
    assert_eq!(told.expect_err("nobody is let in").kind(), Unavailable, "nothing was sent yet");
}

#[tokio::test]
async fn a_redirect_is_followed() {
    let target = answering(|_| Reply::Rows(vec!["Nothing"], vec![])).await;
    let gateway = TdsServer::answering_logins_with(Reply::Route("127.0.0.1".to_owned(), target.addr().port())).await;
    let store = store(gateway.addr());
    store.check(budget()).await.expect("the target answers");
    store.check(budget()).await.expect("the target answers");
    assert_eq!((gateway.logins(), target.logins()), (1, 1));
}

#[tokio::test]
async fn a_redirect_loop_ends() {
    let port = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&port);
    let server = TdsServer::start(move |_| {
        let port = u16::try_from(own.load(Ordering::SeqCst)).expect("a port");
        Reply::Route("127.0.0.1".to_owned(), port)
    })
    .await;
    port.store(usize::from(server.addr().port()), Ordering::SeqCst);
    let told = store(server.addr()).check(budget()).await;
    assert_eq!(told.expect_err("it leads nowhere").kind(), Unavailable);
    assert!((2..=10).contains(&server.logins()), "{}", server.logins());
}

#[tokio::test]
async fn a_redirect_to_nobody_can_be_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let dead = listener.local_addr().expect("its own address").port();
    drop(listener);
    let server = TdsServer::answering_logins_with(Reply::Route("127.0.0.1".to_owned(), dead)).await;
    let told = store(server.addr()).check(budget()).await;
    assert_eq!(told.expect_err("nobody is there").kind(), Unavailable);
}

#[tokio::test]
async fn a_server_without_encryption_is_refused_before_a_login_is_sent() {
    for settings in ["", ";Encrypt=true", ";TrustServerCertificate=true", ";Encrypt=true;TrustServerCertificate=true"] {
        let server = TdsServer::start(|_| Reply::Done).await;
        let port = server.addr().port();
        let text = format!("Server=tcp:127.0.0.1,{port};Database=reports;User Id=worker;Password={PASSWORD}{settings}");
        let error = SqlServerStore::connect(&text).await.expect_err("no encryption, no login");
        assert_eq!(error.kind(), Rejected, "{settings}: {error:?}");
        assert_eq!(server.seen(), [], "{settings}");
    }
}

#[tokio::test]
async fn a_plain_configuration_connects_to_a_plain_server_only_when_it_says_so() {
    let server = answering(|_| Reply::Done).await;
    let mut required = config(server.addr());
    required.encryption(leasehold::store::sqlserver::tiberius::EncryptionLevel::Required);
    let store = SqlServerStore::builder().config(required).build().expect("a store");
    assert_eq!(store.check(budget()).await.expect_err("no encryption").kind(), Rejected);
    assert_eq!(server.logins(), 0);
}

#[tokio::test]
async fn a_schema_whose_version_is_not_understood_is_rejected() {
    for version in [vec![], vec![vec![Value::Text("1".to_owned())]], vec![vec![Value::Null]]] {
        let server = TdsServer::start(move |request| match request {
            Request::Call(_) => Reply::Rows(vec!["SchemaVersion"], version.clone()),
            _ => Reply::Done,
        })
        .await;
        let told = store(server.addr()).inspect(Subject::fresh().report, budget()).await;
        assert_eq!(told.expect_err("no such schema").kind(), Rejected);
    }
}

#[tokio::test]
async fn a_store_without_a_server_is_invalid() {
    assert_eq!(SqlServerStore::builder().build().expect_err("no server").kind(), Invalid);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_self_signed_certificate_is_refused_unless_it_is_asked_for() {
    let asked = connection_string();
    let unasked: Vec<&str> =
        asked.split(';').filter(|part| !part.to_ascii_lowercase().contains("trustservercertificate")).collect();
    assert_ne!(unasked.join(";"), asked, "the server of the tests has a certificate of its own");
    let error = SqlServerStore::connect(&unasked.join(";")).await.expect_err("nobody trusts it");
    assert_eq!(error.kind(), Rejected, "{error:?}");
    SqlServerStore::connect(&asked).await.expect("it was asked for");
}
