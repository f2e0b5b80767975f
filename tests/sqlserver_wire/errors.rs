//! What a server says on a bad day, and what the caller is told.

use std::time::{Duration, Instant};

use leasehold::StoreErrorKind::{self, Rejected, Unavailable, Unknown};
use leasehold::store::Store;

use crate::scene::{PATIENCE, budget};
use crate::stand_in::{Asked, Found, answering, calls, done, outcome, short_budget, stand_in, store};
use crate::subject::{Operation, Subject};
use crate::tds::{Reply, SqlError, Tokens};

#[tokio::test]
async fn a_call_that_the_server_rolled_back_for_another_is_run_again_on_the_same_connection() {
    for (number, class) in [(1205, 13), (2627, 14), (2601, 14), (3960, 16)] {
        for operation in Operation::ALL {
            let subject = Subject::fresh();
            let found = Found::before(operation, &subject);
            let server = answering(move |before| match before {
                0 | 1 => Reply::Error(SqlError::new(number, class)),
                _ => found.applied(1),
            })
            .await;
            let told = subject.ask(&store(server.addr()), operation).await;
            assert_eq!(told.expect("the third attempt is applied"), operation.success());
            assert_eq!((calls(&server), server.logins()), (3, 1), "{operation:?} after {number}");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_rolled_back_for_ever_is_surely_not_applied() {
    let server = answering(|_| Reply::Error(SqlError::new(1205, 13))).await;
    let subject = Subject::fresh();
    let error = subject.ask(&store(server.addr()), Operation::Publish).await.expect_err("no success");
    assert_eq!(error.kind(), Unavailable);
    assert!((2..=20).contains(&calls(&server)), "{}", calls(&server));
}

#[tokio::test]
async fn a_connection_that_does_not_answer_to_its_clean_up_does_not_outlast_the_budget() {
    let server = stand_in(|asked| match asked {
        Asked::Call(..) => Reply::Error(SqlError::new(1205, 13)),
        Asked::Batch => Reply::Silence,
    })
    .await;
    let began = Instant::now();
    let subject = Subject::fresh();
    let error = store(server.addr()).publish(subject.publish_request(), short_budget()).await.expect_err("no success");
    assert_eq!(error.kind(), Unavailable);
    // What was waited for before was five seconds.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

/// Fails the first call with it, and applies the next one.
async fn told_after(error: SqlError, operation: Operation) -> StoreErrorKind {
    let subject = Subject::fresh();
    let found = Found::before(operation, &subject);
    let case = format!("{operation:?} after {error:?}");
    let server = answering(move |before| match before {
        0 => Reply::Error(error.clone()),
        _ => found.applied(1),
    })
    .await;
    let store = store(server.addr());
    let kind = subject.ask(&store, operation).await.expect_err(&case).kind();
    assert_eq!(calls(&server), 1, "not sent again: {case}");
    assert_eq!(subject.ask(&store, operation).await.expect(&case), operation.success());
    kind
}

#[tokio::test]
async fn an_error_of_the_server_says_what_the_caller_can_do() {
    for (number, class, expected) in [
        (1222, 16, Unavailable),
        (40_613, 17, Unavailable),
        (40_501, 16, Unavailable),
        (10_928, 16, Unavailable),
        (976, 14, Unavailable),
        (701, 17, Unavailable),
        (229, 14, Rejected),
        (2812, 16, Rejected),
        (3906, 16, Rejected),
        (9002, 17, Rejected),
        (50_001, 16, Rejected),
        (547, 16, Rejected),
        (40_197, 16, Unknown),
        (596, 21, Unknown),
    ] {
        for operation in Operation::ALL {
            assert_eq!(told_after(SqlError::new(number, class), operation).await, expected, "{operation:?}, {number}");
        }
    }
}

#[tokio::test]
async fn an_error_that_ends_the_connection_leaves_the_outcome_unknown_whatever_its_number() {
    for number in [50_001, 40_613, 40_501, 10_928, 1205, 229] {
        for class in [20, 25] {
            let told = told_after(SqlError::new(number, class), Operation::Publish).await;
            assert_eq!(told, Unknown, "{number}, class {class}");
        }
    }
}

/// The error comes after what was found, or after what was done.
async fn told_after_rows(number: u32, after_the_outcome: bool) -> StoreErrorKind {
    let subject = Subject::fresh();
    let mut tokens = Found::before(Operation::Publish, &subject).tokens();
    if after_the_outcome {
        tokens = outcome(tokens, 1);
    }
    let tokens = tokens.error(&SqlError::new(number, 16)).done_procedure(Tokens::FAILED);
    let server = answering(move |_| Reply::Raw(tokens.clone())).await;
    let told = store(server.addr()).publish(subject.publish_request(), budget()).await;
    told.expect_err("no success").kind()
}

#[tokio::test]
async fn an_error_after_what_was_found_is_unknown_if_it_may_have_come_after_the_commit() {
    for (number, expected) in [
        (1205, Unavailable),
        (1222, Unavailable),
        (2627, Unavailable),
        (229, Rejected),
        (50_001, Rejected),
        (701, Unknown),
        (40_501, Unknown),
        (976, Unknown),
    ] {
        assert_eq!(told_after_rows(number, false).await, expected, "{number}");
    }
}

#[tokio::test]
async fn an_error_after_what_was_done_leaves_the_outcome_unknown() {
    for number in [1205, 2627, 1222, 229, 701, 50_001] {
        assert_eq!(told_after_rows(number, true).await, Unknown, "{number}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_within_the_budget_is_unknown_in_time() {
    for operation in Operation::ALL {
        let subject = Subject::fresh();
        let found = Found::before(operation, &subject);
        let server = answering(move |before| if before == 0 { Reply::Silence } else { found.applied(1) }).await;
        let store = store(server.addr());
        let began = Instant::now();
        let asked = subject.ask_within(short_budget(), &store, operation);
        let told = tokio::time::timeout(PATIENCE, asked).await.expect("the budget ends it");
        assert_eq!(told.expect_err("no answer").kind(), Unknown, "{operation:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{operation:?} took {:?}", began.elapsed());
        assert_eq!(subject.ask(&store, operation).await.expect("another connection"), operation.success());
        assert_eq!(server.logins(), 2, "{operation:?}: the connection of the call without an answer is thrown away");
    }
}

#[tokio::test]
async fn a_server_that_hangs_up_instead_of_answering_leaves_the_outcome_unknown() {
    for operation in Operation::ALL {
        let subject = Subject::fresh();
        let found = Found::before(operation, &subject);
        let server = answering(move |before| if before == 0 { Reply::HangUp } else { found.applied(1) }).await;
        let store = store(server.addr());
        assert_eq!(subject.ask(&store, operation).await.expect_err("no answer").kind(), Unknown, "{operation:?}");
        assert_eq!(subject.ask(&store, operation).await.expect("another connection"), operation.success());
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_in_the_middle_is_unknown() {
    use crate::proxy::{Action, Direction, Fault, Proxy};
    let subject = Subject::fresh();
    let answer = Found::before(Operation::Publish, &subject);
    let whole = done(outcome(answer.tokens(), 1));
    let server = answering(move |_| Reply::Raw(whole.clone())).await;
    let proxy = Proxy::start(server.addr()).await;
    let store = store(proxy.addr());
    subject.ask(&store, Operation::Publish).await.expect("all goes well");
    let before = proxy.traffic();
    subject.ask(&store, Operation::Publish).await.expect("all goes well");
    let cost = (proxy.traffic() - before).to_client;
    for after in 1..cost {
        let armed = proxy.latest().arm(Fault::new(Direction::ToClient, after, Action::Finish));
        let told = subject.ask(&store, Operation::Publish).await;
        armed.fired().await;
        assert_eq!(told.expect_err("a part of an answer is none").kind(), Unknown, "{after} of {cost} bytes");
        subject.ask(&store, Operation::Publish).await.expect("another connection");
    }
}

#[tokio::test]
async fn a_read_without_an_answer_may_be_tried_again() {
    for reply in [Reply::HangUp, Reply::Silence] {
        let server = answering(move |_| reply.clone()).await;
        let subject = Subject::fresh();
        let told = store(server.addr()).inspect(subject.report, short_budget()).await;
        assert_eq!(told.expect_err("no answer").kind(), Unavailable);
    }
}
