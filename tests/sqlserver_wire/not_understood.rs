//! Answers that cannot be: never a success, and after a write never "surely not applied".

use leasehold::StoreErrorKind::{Rejected, Unknown};
use leasehold::store::Store;
use uuid::Uuid;

use crate::scene::budget;
use crate::stand_in::{Found, answering, done, outcome, store};
use crate::subject::{Operation, Subject};
use crate::tds::{Reply, Tokens, Value};

fn misunderstandings(operation: Operation, subject: &Subject) -> Vec<(&'static str, Reply)> {
    let right = Found::before(operation, subject);
    let other = Value::Id(Uuid::new_v4());
    vec![
        ("nothing at all", Reply::Done),
        ("no outcome", Reply::Raw(done(right.tokens()))),
        ("an outcome only", Reply::Raw(done(outcome(Tokens::default(), 1)))),
        ("an outcome that says that nothing was done", right.applied(0)),
        ("two rows written", right.applied(2)),
        ("no clock", right.clone().without("NowMicros").applied(1)),
        ("no generation", right.clone().without("Generation").applied(1)),
        ("a generation of NULL", right.clone().with("Generation", Value::Null).applied(1)),
        ("a text for a number", right.clone().with("Generation", Value::Text("1".to_owned())).applied(1)),
        ("a number for an identifier", right.clone().with("LeaseOwner", Value::BigInt(1)).applied(1)),
        ("another report", right.clone().with("ReportId", other).applied(1)),
        ("a report that is not there", right.clone().with("ReportId", Value::NoId).applied(1)),
        ("a later generation", right.clone().with("Generation", Value::BigInt(i64::MAX)).applied(1)),
        ("a holder without a name", right.with("LeaseHolder", Value::Text(String::new())).applied(1)),
    ]
}

#[tokio::test]
async fn an_answer_that_cannot_be_leaves_the_outcome_of_a_write_unknown() {
    for operation in Operation::ALL {
        let subject = Subject::fresh();
        let right = Found::before(operation, &subject);
        let server = answering(move |_| right.applied(1)).await;
        let told = subject.ask(&store(server.addr()), operation).await;
        assert_eq!(told.expect("what is right is understood"), operation.success());
        for (what, reply) in misunderstandings(operation, &subject) {
            let closes_any = operation == Operation::Close && what == "a later generation";
            if closes_any {
                continue;
            }
            let server = answering(move |_| reply.clone()).await;
            let told = subject.ask(&store(server.addr()), operation).await;
            let error = told.err().unwrap_or_else(|| panic!("{operation:?} succeeds after {what}"));
            assert_eq!(error.kind(), Unknown, "{operation:?} after {what}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_read_that_cannot_be_is_rejected() {
    let subject = Subject::fresh();
    let found = Found::before(Operation::Renew, &subject).without("Generation");
    let tokens = done(found.tokens());
    let server = answering(move |_| Reply::Raw(tokens.clone())).await;
    let told = store(server.addr()).inspect(subject.report, budget()).await;
    assert_eq!(told.expect_err("no answer").kind(), Rejected);
    let server = answering(|_| Reply::Rows(vec!["Nothing"], vec![vec![Value::BigInt(1)]])).await;
    let told = store(server.addr()).read(subject.report, None, budget()).await;
    assert_eq!(told.expect_err("no answer").kind(), Rejected);
}

#[tokio::test]
async fn an_answer_about_another_report_is_never_given_to_a_reader() {
    let (asked, other) = (Subject::fresh(), Subject::fresh());
    let tokens = done(Found::before(Operation::Renew, &other).tokens());
    let server = answering(move |_| Reply::Raw(tokens.clone())).await;
    let told = store(server.addr()).inspect(asked.report, budget()).await;
    assert_eq!(told.expect_err("no answer").kind(), Rejected);
}
