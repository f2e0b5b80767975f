//! `--read`: a reader needs no lease and no supervisor, only the store.

use std::time::Duration;

use leasehold::ReportId;
use leasehold::answer::ReadAnswer;
use leasehold::store::sqlite::SqliteStore;
use leasehold::store::{Budget, Store};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::inventory::{self, Inventory};
use crate::{command, rendering};

/// How long the database may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The published report as text, or as JSON.
pub(crate) async fn read(arguments: &Arguments) -> Result<String, Failure> {
    let name = arguments.report_name()?;
    let report = ReportId::from_name(&name);
    // Opening creates the file, which a reader should not.
    let answer = match arguments.database.try_exists() {
        Ok(false) => ReadAnswer::Missing,
        _ => ask(arguments, report).await?,
    };
    let ReadAnswer::Found { visible, payload } = answer else {
        return Err(Failure::Unpublished { name, to_build: command::again(arguments) });
    };
    if arguments.json {
        return Ok(payload + "\n");
    }
    let foreign = |why| Failure::Foreign { why, to_read: command::to_read(arguments) };
    let inventory: Inventory = serde_json::from_str(&payload).map_err(|error| foreign(error.to_string()))?;
    if inventory.format != inventory::FORMAT {
        return Err(foreign(format!("it has format {}, not {}", inventory.format, inventory::FORMAT)));
    }
    Ok(rendering::inventory(&inventory, &visible))
}

async fn ask(arguments: &Arguments, report: ReportId) -> Result<ReadAnswer, Failure> {
    let store = SqliteStore::open(&arguments.database).await.map_err(Failure::Store)?;
    store.read(report, None, Budget::within(LIMIT)).await.map_err(Failure::Store)
}
