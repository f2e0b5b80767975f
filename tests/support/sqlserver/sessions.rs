//! A pool of the user's own, as a user would write it, that leaves its sessions in a state that nobody would want.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use leasehold::store::sqlserver::{Client, ConnectionPool};
use tokio::runtime::Handle;

use super::{batch, is_babelfish, raw};

/// What somebody left the sessions of a pool at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// As a connection begins.
    Clean,
    /// An isolation level.
    Isolation(&'static str),
    /// Implicit transactions, a lock time-out of a millisecond, answers cut short, errors that roll back.
    Dirty,
    /// Transactions that may write nothing, as on a secondary; of Babelfish only.
    ReadOnly,
    /// A transaction that somebody forgot, in which the table `Notes` of this schema was written.
    OpenTransaction,
}

impl Setting {
    fn sql(self, schema: &str) -> String {
        match self {
            Self::Clean => String::new(),
            Self::Isolation(level) => format!("SET TRANSACTION ISOLATION LEVEL {level};"),
            Self::Dirty => "SET LOCK_TIMEOUT 1; SET XACT_ABORT OFF; SET NOCOUNT OFF; SET TEXTSIZE 3; \
                            SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; SET ROWCOUNT 1; SET IMPLICIT_TRANSACTIONS ON;"
                .to_owned(),
            Self::ReadOnly => "SELECT set_config('default_transaction_read_only', 'on', 'f');".to_owned(),
            Self::OpenTransaction => {
                format!("IF @@TRANCOUNT = 0 BEGIN TRANSACTION; INSERT INTO [{schema}].Notes (Note) VALUES (51800);")
            }
        }
    }
}

/// Connections to one schema, each set anew whenever it is handed out.
pub(crate) struct Sessions {
    schema: String,
    setting: Setting,
    idle: Arc<Mutex<Vec<Client>>>,
    made: Arc<Counts>,
}

/// How many connections were made, how many thrown away, and how many pools there are.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) opened: AtomicUsize,
    pub(crate) discarded: AtomicUsize,
    pub(crate) pools: AtomicUsize,
}

impl Sessions {
    pub(crate) fn new(schema: &str, setting: Setting) -> Self {
        Self::counted(schema, setting, Arc::default())
    }

    pub(crate) fn counted(schema: &str, setting: Setting, made: Arc<Counts>) -> Self {
        made.pools.fetch_add(1, Ordering::SeqCst);
        Self { schema: schema.to_owned(), setting, idle: Arc::default(), made }
    }

    async fn open(&self) -> Client {
        let mut client = raw(&self.schema).await;
        self.made.opened.fetch_add(1, Ordering::SeqCst);
        if matches!(self.setting, Setting::Isolation(_)) && is_babelfish(&mut client).await {
            // It has these two levels only as PostgreSQL understands them, and only if that is said.
            for level in ["repeatable_read", "serializable"] {
                batch(&mut client, &format!("EXEC sp_babelfish_configure 'isolation_level_{level}', 'pg_isolation'"))
                    .await;
            }
        }
        client
    }
}

/// A connection that goes back to its pool when it is dropped.
pub(crate) struct Session {
    client: Option<Client>,
    idle: Arc<Mutex<Vec<Client>>>,
    made: Arc<Counts>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.idle.lock().expect("no panic").extend(self.client.take());
    }
}

impl ConnectionPool for Sessions {
    type Connection = Session;

    async fn get(&self) -> Result<Session, Box<dyn Error + Send + Sync>> {
        let idle = self.idle.lock().expect("no panic").pop();
        let mut client = match idle {
            Some(client) => client,
            None => self.open().await,
        };
        let setting = self.setting.sql(&self.schema);
        if !setting.is_empty() {
            client.simple_query(setting).await?.into_results().await?;
        }
        Ok(Session { client: Some(client), idle: Arc::clone(&self.idle), made: Arc::clone(&self.made) })
    }

    fn client(connection: &mut Session) -> &mut Client {
        connection.client.as_mut().expect("it is there until it is discarded")
    }

    fn discard(mut connection: Session) {
        connection.made.discarded.fetch_add(1, Ordering::SeqCst);
        drop(connection.client.take());
    }

    fn for_runtime(&self, _: &Handle) -> Self {
        Self::counted(&self.schema, self.setting, Arc::clone(&self.made))
    }
}
