//! A report that is published together with two tables of your own, on SQL Server: all three change, or none.
//!
//! ```text
//! cargo run --example two_tables -- --sqlserver 'Server=tcp:localhost,1433;Database=reports;User Id=…;Password=…;TrustServerCertificate=true'
//! ```
//!
//! `Sales` has rows that no report counted yet; `Totals` has what was counted so far. The report adds them up. Were the sales marked
//! and the totals raised by statements of their own, a worker that lost its lease in between would count some twice. In a fenced
//! transaction they are committed with the publication, if this worker still holds the lease at that moment, or not at all.
//!
//! The schema, `two_tables` unless `--schema` says otherwise, is made if it is not there, with leasehold's tables and these two; each
//! run adds three sales.

use std::error::Error;
use std::time::Duration;

use clap::Parser;
use leasehold::store::sqlserver::tiberius::Config;
use leasehold::store::sqlserver::{Client, SqlServerStore, SqlServerTransaction};
use leasehold::store::{Budget, Store};
use leasehold::{Acquisition, LeaseGuard, LeasePolicy, LeaseSupervisor, ReportId, StoreError};
use tokio::net::TcpStream;
use tokio_util::compat::TokioAsyncWriteCompatExt;

/// Adds up sales, and publishes the report together with the tables that it changes.
#[derive(Debug, Parser)]
struct Arguments {
    /// The server's connection string, in the form of ADO.NET, of a login that may create tables
    #[arg(long, value_name = "CONNECTION_STRING")]
    sqlserver: String,

    /// The schema for all tables
    #[arg(long, default_value = "two_tables")]
    schema: String,
}

fn budget() -> Budget {
    Budget::within(Duration::from_secs(30))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let tables = Tables::of(&arguments.schema);
    let store = SqlServerStore::builder().connection_string(&arguments.sqlserver).schema(&arguments.schema).build()?;
    store.install(budget()).await?;
    tables.install(&arguments.sqlserver).await?;

    let policy = LeasePolicy::builder(Duration::from_secs(30)).build()?;
    let supervisor = LeaseSupervisor::new(store.clone(), policy)?;
    if let Acquisition::Acquired(guard) = supervisor.acquire_or_provision(ReportId::from_name("sales"), None).await? {
        println!("{}", report(guard, &store, &tables).await?);
    }
    let left = supervisor.shutdown(Duration::from_secs(5)).await;
    if left.not_released.is_empty() { Ok(()) } else { Err("a lease was not released: it ends with its TTL".into()) }
}

/// Counts what is new, and publishes.
async fn report(guard: LeaseGuard, store: &SqlServerStore, tables: &Tables) -> Result<String, Box<dyn Error>> {
    let mut transaction = store.begin(budget()).await?;
    // The build, inside the transaction because it is short. It is dropped, and everything rolled back, if the lease is lost.
    let total = guard.supervise(tables.count(&mut transaction)).await??;
    let mut publication = guard.publication(format!("total: {total}"));
    // One last trip: the fence, the payload, the ledger and the commit. Refused, both tables are as they were.
    let receipt = publication.send_within(transaction).await?;
    Ok(format!("published generation {}: total {total}", receipt.generation))
}

/// The two tables of our own, by their quoted names.
struct Tables {
    sales: String,
    totals: String,
}

impl Tables {
    fn of(schema: &str) -> Self {
        let schema = format!("[{}]", schema.replace(']', "]]"));
        Self { sales: format!("{schema}.Sales"), totals: format!("{schema}.Totals") }
    }

    /// Marks the sales that were not counted yet, raises the total by them, and gives the new total.
    async fn count(&self, transaction: &mut SqlServerTransaction) -> Result<i64, StoreError> {
        let Self { sales, totals } = self;
        let raise = format!(
            "UPDATE {totals} SET Total = Total + ISNULL((SELECT SUM(Amount) FROM {sales} WHERE Counted = 0), 0) WHERE Id = @P1"
        );
        transaction.execute(&raise, &[&1_i32], budget()).await?;
        let mark = format!("UPDATE {sales} SET Counted = 1 WHERE Counted = 0");
        transaction.execute(&mark, &[], budget()).await?;
        let rows = transaction.query(&format!("SELECT Total AS [Total] FROM {totals}"), &[], budget()).await?;
        Ok(rows.first().and_then(|row| row.get::<i64, _>("Total")).unwrap_or_default())
    }

    /// Makes the tables if they are not there, and adds three sales to count, by a connection past the store.
    async fn install(&self, connection_string: &str) -> Result<(), Box<dyn Error>> {
        let Self { sales, totals } = self;
        let statements = [
            format!("CREATE TABLE {sales} (Id int IDENTITY PRIMARY KEY, Amount bigint NOT NULL, Counted int NOT NULL)"),
            format!("CREATE TABLE {totals} (Id int PRIMARY KEY, Total bigint NOT NULL)"),
            format!("INSERT INTO {totals} (Id, Total) VALUES (1, 0)"),
        ];
        let config = Config::from_ado_string(connection_string)?;
        let stream = TcpStream::connect(config.get_addr()).await?;
        let mut client: Client = Client::connect(config, stream.compat_write()).await?;
        let found = client.query("SELECT 1 WHERE OBJECT_ID(@P1, N'U') IS NULL", &[totals]).await?;
        if !found.into_first_result().await?.is_empty() {
            for statement in statements {
                client.simple_query(statement).await?.into_results().await?;
            }
        }
        let sell = format!("INSERT INTO {sales} (Amount, Counted) VALUES (10, 0), (20, 0), (12, 0)");
        client.simple_query(sell).await?.into_results().await?;
        Ok(())
    }
}
