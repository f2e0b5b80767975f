//! `--read`: a reader needs no lease and no supervisor, only the store.

use std::time::Duration;

use leasehold::ReportId;
use leasehold::answer::ReadAnswer;
use leasehold::store::Budget;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::inventory::{self, Inventory};
use crate::{command, opening, rendering};

/// How long the database may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The published report as text, or as JSON.
pub(crate) async fn read(arguments: &Arguments) -> Result<String, Failure> {
    let name = arguments.report_name()?;
    let report = ReportId::from_name(&name);
    let database = arguments.database()?;
    // Opening would create the file, which a reader should not.
    let answer = if database.is_absent() {
        ReadAnswer::Missing
    } else {
        let store = opening::open(arguments, &database).await?;
        store.read(report, Budget::within(LIMIT)).await.map_err(Failure::Store)?
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
