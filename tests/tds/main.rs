//! The stand-in for a TDS server is understood by the driver as a real one is.
#![cfg(feature = "sqlserver")]

#[path = "../support/proxy/mod.rs"]
mod proxy;
#[path = "../support/tds/mod.rs"]
mod tds;

mod cuts;

use std::net::SocketAddr;
use std::time::Duration;

use tds::{Reply, Request, SqlError, TdsServer, Tokens, Value};
use tiberius::error::Error;
use tiberius::{AuthMethod, Client, Command, CommandResult, Config, EncryptionLevel};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

type Connection = Client<Compat<TcpStream>>;

async fn connect(server: &TdsServer) -> Result<Connection, Error> {
    connect_to(server.addr()).await
}

async fn connect_to(addr: SocketAddr) -> Result<Connection, Error> {
    connect_with(addr, EncryptionLevel::NotSupported).await
}

async fn connect_with(addr: SocketAddr, encryption: EncryptionLevel) -> Result<Connection, Error> {
    let mut config = Config::new();
    config.host("127.0.0.1");
    config.port(addr.port());
    config.database("reports");
    config.application_name("leasehold");
    config.authentication(AuthMethod::sql_server("worker", "secret"));
    config.encryption(encryption);
    config.handshake_timeout(Some(Duration::from_secs(5)));
    let stream = TcpStream::connect(addr).await?;
    Client::connect(config, stream.compat_write()).await
}

async fn call(connection: &mut Connection) -> Result<CommandResult, Error> {
    let mut command = Command::new("dbo.LeaseholdAcquire");
    command.bind_param("@TtlMs", 30_000_i64);
    command.exec(connection).await?.into_command_result().await
}

fn server_error<T>(result: Result<T, Error>) -> (u32, u8, u8, String) {
    match result {
        Err(Error::Server(error)) => (error.code(), error.class(), error.state(), error.message().to_owned()),
        Err(other) => panic!("an error of the server, not {other:?}"),
        Ok(_) => panic!("an error of the server"),
    }
}

#[tokio::test]
async fn a_call_fails_with_any_number_class_and_state() {
    for (number, class, state) in [
        (1205, 13, 51),
        (1222, 16, 45),
        (229, 14, 5),
        (2812, 16, 62),
        (976, 14, 1),
        (3906, 16, 1),
        (40197, 16, 1),
        (40501, 16, 1),
        (10928, 16, 1),
        (50_001, 16, 1),
    ] {
        let error = SqlError::new(number, class).state(state).message("näher 🙂");
        let server = TdsServer::failing_with(error).await;
        let mut connection = connect(&server).await.unwrap();
        for _ in 0..2 {
            let told = server_error(call(&mut connection).await);
            assert_eq!(told, (number, class, state, "näher 🙂".to_owned()), "the connection goes on");
        }
    }
}

#[tokio::test]
async fn an_error_of_class_20_ends_the_connection() {
    let server = TdsServer::failing_with(SqlError::new(40_613, 20)).await;
    let mut connection = connect(&server).await.unwrap();
    assert_eq!(server_error(call(&mut connection).await).0, 40_613);
    assert!(matches!(call(&mut connection).await, Err(Error::Io { .. } | Error::Protocol(_))));
}

#[tokio::test]
async fn a_batch_fails_too() {
    let server = TdsServer::failing_with(SqlError::new(3902, 16)).await;
    let mut connection = connect(&server).await.unwrap();
    let failed = connection.simple_query("COMMIT").await.map(drop);
    assert_eq!(server_error(failed).0, 3902);
    assert_eq!(server.seen().last(), Some(&Request::Batch("COMMIT".to_owned())));
}

#[tokio::test]
async fn a_login_is_denied() {
    for (number, class) in [(18_456, 14), (4060, 11), (40_613, 17), (10_928, 20)] {
        let server = TdsServer::answering_logins_with(Reply::Error(SqlError::new(number, class))).await;
        let told = server_error(connect(&server).await);
        assert_eq!((told.0, told.1), (number, class));
        assert_eq!(server.logins(), 1);
    }
}

#[tokio::test]
async fn a_login_is_sent_elsewhere() {
    let server = TdsServer::answering_logins_with(Reply::Route("node-2.example".to_owned(), 11_003)).await;
    match connect(&server).await {
        Err(Error::Routing { host, port }) => assert_eq!((host.as_str(), port), ("node-2.example", 11_003)),
        other => panic!("a route, not {:?}", other.err()),
    }
}

#[tokio::test]
async fn a_client_that_requires_encryption_never_logs_in() {
    for encryption in [EncryptionLevel::Required, EncryptionLevel::On] {
        let server = TdsServer::start(|_| Reply::Done).await;
        assert!(matches!(connect_with(server.addr(), encryption).await, Err(Error::Protocol(_))));
        assert_eq!(server.seen(), []);
    }
}

#[tokio::test]
async fn a_call_gives_rows() {
    let columns = vec!["Answer", "RemainingMs", "Holder"];
    let row = vec![Value::Text("acquired".to_owned()), Value::BigInt(29_999), Value::Null];
    let none = vec![Value::Null, Value::Null, Value::Null];
    let server = TdsServer::start(move |request| match request {
        Request::Call(_) => Reply::Rows(columns.clone(), vec![row.clone(), none.clone()]),
        _ => Reply::Done,
    })
    .await;
    let mut connection = connect(&server).await.unwrap();
    let mut command = Command::new("dbo.LeaseholdAcquire");
    command.bind_param("@TtlMs", 30_000_i64);
    let rows = command.exec(&mut connection).await.unwrap().into_command_result().await.unwrap();
    let rows = rows.to_query_result(0).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].get::<&str, _>("Answer"), Some("acquired"));
    assert_eq!(rows[0].get::<i64, _>("RemainingMs"), Some(29_999));
    assert_eq!(rows[1].get::<&str, _>("Answer"), None);
    let Request::Login(login) = &server.seen()[0] else { panic!("a login comes first") };
    assert_eq!((login.user.as_str(), login.database.as_str()), ("worker", "reports"));
    assert_eq!((login.application.as_str(), login.server.as_str()), ("leasehold", "127.0.0.1"));
    assert_eq!(server.seen()[1], Request::Call("dbo.LeaseholdAcquire".to_owned()));
}

#[tokio::test]
async fn an_answer_longer_than_a_packet_is_put_together() {
    let text = "x".repeat(4000);
    let long = text.clone();
    let server = TdsServer::start(move |request| match request {
        Request::Call(_) => Reply::Rows(vec!["Payload"], vec![vec![Value::Text(long.clone())]]),
        _ => Reply::Done,
    })
    .await;
    let mut connection = connect(&server).await.unwrap();
    let answer = call(&mut connection).await.unwrap();
    assert_eq!(answer.to_query_result(0).unwrap()[0].get::<&str, _>(0), Some(text.as_str()));
}

#[tokio::test]
async fn a_call_may_fail_after_a_row_was_sent() {
    let row = vec![Value::BigInt(1)];
    let tokens = Tokens::default()
        .columns(&["Generation"], std::slice::from_ref(&row))
        .row(&row)
        .error(&SqlError::new(1205, 13))
        .done_procedure(Tokens::FAILED);
    let server = TdsServer::start(move |request| match request {
        Request::Call(_) => Reply::Raw(tokens.clone()),
        _ => Reply::Done,
    })
    .await;
    let mut connection = connect(&server).await.unwrap();
    assert_eq!(server_error(call(&mut connection).await).0, 1205);
}

#[tokio::test]
async fn a_call_is_left_without_an_answer() {
    let server = TdsServer::start(|request| match request {
        Request::Call(_) => Reply::HangUp,
        _ => Reply::Done,
    })
    .await;
    let mut connection = connect(&server).await.unwrap();
    assert!(matches!(call(&mut connection).await, Err(Error::Io { .. } | Error::Protocol(_))));

    let server = TdsServer::start(|request| match request {
        Request::Call(_) => Reply::Silence,
        _ => Reply::Done,
    })
    .await;
    let mut connection = connect(&server).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(50), call(&mut connection)).await;
    assert!(waited.is_err(), "nothing comes");
}
