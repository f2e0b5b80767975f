//! Servers that are not there and strings that say nothing: each an error of its own, with what to do and no secret.

use std::collections::HashMap;
use std::time::Duration;

use leasehold::store::sqlserver::SqlServerStore;
use leasehold::store::sqlserver::tiberius::{AuthMethod, Config, EncryptionLevel};
use leasehold::store::{Budget, Store};
use leasehold::{StoreError, StoreErrorKind};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::support::{Schema, config, connection_string};
use crate::tds::{Reply, SqlError, TdsServer};
use crate::words::{SECRET, budget, says, unknown_report};

/// The parts of the connection string, by their names in lower case.
fn parts() -> HashMap<String, String> {
    let string = connection_string();
    let parts = string.split(';').filter_map(|part| part.split_once('='));
    parts.map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned())).collect()
}

fn part(names: &[&str]) -> String {
    let parts = parts();
    names.iter().find_map(|name| parts.get(*name)).unwrap_or_else(|| panic!("{names:?} in the string")).clone()
}

/// The password of the server to test against; without one, a text that stands nowhere.
pub(crate) fn password() -> String {
    if std::env::var("LEASEHOLD_TEST_SQLSERVER").is_err() {
        return SECRET.to_owned();
    }
    part(&["password", "pwd"])
}

async fn a_call(config: Config) -> Result<(), StoreError> {
    let store = SqlServerStore::builder().config(config).build().expect("a store");
    store.metadata(unknown_report(), budget()).await.map(drop)
}

/// Of a server that is not there.
fn elsewhere(host: &str, port: u16) -> Config {
    let mut config = Config::new();
    config.host(host);
    config.port(port);
    config.authentication(AuthMethod::sql_server("worker", SECRET));
    config
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    says(a_call(elsewhere("127.0.0.1", port)).await, StoreErrorKind::Unavailable, &["no connection", "its port"]);
}

#[tokio::test]
async fn a_host_that_does_not_resolve_is_unavailable() {
    let error = a_call(elsewhere("no-such-host.invalid", 1433)).await;
    says(error, StoreErrorKind::Unavailable, &["no connection to the server", "its name"]);
}

#[tokio::test]
async fn a_server_that_speaks_something_else_is_told_apart() {
    for greeting in ["SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let greeter = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(greeting.as_bytes()).await.unwrap();
            }
        });
        let error = a_call(elsewhere("127.0.0.1", port)).await;
        says(error, StoreErrorKind::Unavailable, &["server"]);
        greeter.abort();
    }
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_costs_the_budget_and_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let store = SqlServerStore::builder().config(elsewhere("127.0.0.1", port)).build().unwrap();
    let short = || Budget::within(Duration::from_millis(50));
    let words = ["no connection", "within the budget"];
    says(store.metadata(unknown_report(), short()).await, StoreErrorKind::Unavailable, &words);
    says(store.provision(unknown_report(), short()).await, StoreErrorKind::Unavailable, &words);
    says(store.begin(short()).await, StoreErrorKind::Unavailable, &["did not arrive"]);
}

/// With a stand-in for a server: some real ones let everybody in who comes from their own machine.
#[tokio::test]
async fn a_login_that_is_denied_says_why_and_what_to_do() {
    let rejected = [
        (18_456, "the login failed", "name and password"),
        (18_487, "password is locked, expired", "ask the database's owner"),
        (18_470, "the login is disabled", "ask the database's owner"),
        (4_060, "the database does not exist", "look at its name"),
        (40_615, "firewall", "ask its owner"),
    ];
    for (number, why, what_to_do) in rejected {
        let server = TdsServer::answering_logins_with(Reply::Error(SqlError::new(number, 14))).await;
        let mut config = elsewhere("127.0.0.1", server.addr().port());
        config.encryption(EncryptionLevel::NotSupported);
        says(a_call(config).await, StoreErrorKind::Rejected, &[why, what_to_do]);
    }
    let server = TdsServer::answering_logins_with(Reply::Error(SqlError::new(40_613, 17))).await;
    let mut config = elsewhere("127.0.0.1", server.addr().port());
    config.encryption(EncryptionLevel::NotSupported);
    says(a_call(config).await, StoreErrorKind::Unavailable, &["does not accept connections now", "40613"]);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_wrong_password_or_user_is_rejected_and_neither_is_told() {
    if SqlServerStore::connect(&connection_string().replace(&password(), SECRET)).await.is_ok() {
        return println!("skipped: this server asks nobody from here for a password");
    }
    let user = part(&["user id", "uid", "user"]);
    for (user, password) in [(user.as_str(), SECRET), ("nobody-at-all", SECRET), (user.as_str(), "")] {
        let mut config = config("leasehold tests");
        config.authentication(AuthMethod::sql_server(user, password));
        says(a_call(config).await, StoreErrorKind::Rejected, &["login failed", "name and password"]);
    }
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_certificate_that_nobody_trusts_is_rejected_in_words() {
    let string = connection_string().replace("TrustServerCertificate=true", "TrustServerCertificate=false");
    let mut config = Config::from_ado_string(&string).unwrap();
    config.encryption(EncryptionLevel::Required);
    says(a_call(config).await, StoreErrorKind::Rejected, &["certificate", "TrustServerCertificateCA"]);
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn an_ado_string_and_a_jdbc_string_name_the_same_server() {
    let server = part(&["server", "data source"]);
    let (host, port) = server.trim_start_matches("tcp:").split_once(',').expect("a port in the string");
    let jdbc = format!(
        "jdbc:sqlserver://{host}:{port};databaseName={};user={};password={{{}}};trustServerCertificate=true;encrypt=true",
        part(&["database", "initial catalog"]),
        part(&["user id", "uid", "user"]),
        password().replace('}', "}}"),
    );
    let schema = Schema::installed().await;
    for string in [connection_string(), jdbc] {
        SqlServerStore::connect(&string).await.unwrap();
        let store = SqlServerStore::builder().connection_string(&string).schema(&schema.name).build().unwrap();
        crate::words::every_worker_operation(&store).await;
    }
}

#[tokio::test]
async fn a_string_that_cannot_be_read_is_invalid_and_not_quoted() {
    let unreadable = [
        "hush-hush",
        "Server=tcp:db,notaport;Password=hush-hush",
        "Server=tcp:db,99999;Password=hush-hush",
        "Server=db;User Id=a;Password='hush-hush",
        "Server=db;Password=hush-hush;TrustServerCertificate=perhaps",
        "jdbc:sqlserver//db:1433;password=hush-hush",
        "jdbc:sqlserver://db:port;password=hush-hush",
        "JDBC:mysql://db/hush-hush",
    ];
    for string in unreadable {
        let words = ["can not be read", "write it like"];
        says(SqlServerStore::connect(string).await.map(drop), StoreErrorKind::Invalid, &words);
        let built = SqlServerStore::builder().connection_string(string).build();
        says(built.map(drop), StoreErrorKind::Invalid, &words);
    }
    says(SqlServerStore::builder().build().map(drop), StoreErrorKind::Invalid, &["no server was named"]);
}

#[test]
fn outside_a_runtime_no_store_is_made() {
    let built = SqlServerStore::builder().connection_string("Server=db;User Id=a;Password=hush-hush").build();
    says(built.map(drop), StoreErrorKind::Invalid, &["inside a tokio runtime"]);
}

#[tokio::test]
async fn a_builder_and_a_store_show_no_secret() {
    let builder = || SqlServerStore::builder().connection_string("Server=db;User Id=a;Password=hush-hush");
    let store = builder().build().unwrap();
    for shown in [format!("{:?}", builder()), format!("{store:?}")] {
        assert!(!shown.contains(SECRET), "{shown}");
    }
}
