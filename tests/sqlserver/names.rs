//! Schema names that would break a statement that did not quote them.

use leasehold::StoreErrorKind;
use leasehold::store::sqlserver::SqlServerStore;

use crate::support::{Schema, config};
use crate::words::{budget, every_operator_operation, every_worker_operation, says};

/// Installs into a schema of this name and does everything in it.
pub(crate) async fn works_from_end_to_end(name: &str) {
    let schema = Schema::named(name).await;
    let store = SqlServerStore::builder().config(config("leasehold tests")).schema(name).build().expect("a store");
    store.install(budget()).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    store.install(budget()).await.unwrap_or_else(|error| panic!("{name}, again: {error:?}"));
    let report = every_worker_operation(&store).await;
    every_operator_operation(&store, report).await;
    drop(schema);
}

/// A name that no other run uses.
pub(crate) fn unique(name: &str) -> String {
    format!("{name} {}", uuid::Uuid::new_v4().simple())
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_name_with_quotes_works_from_end_to_end() {
    works_from_end_to_end(&unique("o'brien's \"own\"")).await;
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_name_with_spaces_brackets_that_open_and_statements_works_from_end_to_end() {
    works_from_end_to_end(&unique("[a; DROP TABLE x; -- /*")).await;
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_name_in_unicode_works_from_end_to_end() {
    works_from_end_to_end(&unique("報告 näher 🙂")).await;
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_name_like_a_place_in_the_scripts_works_from_end_to_end() {
    works_from_end_to_end(&unique("$(schema) $(schema_text)")).await;
}

#[tokio::test]
#[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
async fn a_name_of_128_characters_works_from_end_to_end() {
    let name = unique(&"x".repeat(95));
    assert_eq!(name.len(), 128);
    works_from_end_to_end(&name).await;
}

#[tokio::test]
async fn a_name_that_no_schema_can_have_is_refused_before_anything_is_sent() {
    let long = "x".repeat(129);
    let wide = "🙂".repeat(65);
    for name in ["", "a\nb", "a\tb", "a\0b", "a\u{85}b", &long, &wide] {
        // Nobody listens there, and nobody is asked.
        let built = SqlServerStore::builder()
            .connection_string("Server=tcp:127.0.0.1,1;User Id=a;Password=hush-hush;Database=d")
            .schema(name)
            .build();
        says(built.map(drop), StoreErrorKind::Invalid, &["choose another"]);
        says(SqlServerStore::install_script(name).map(drop), StoreErrorKind::Invalid, &["choose another"]);
    }
}
