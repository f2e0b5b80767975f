//! The same test on every store that the examples can use. A server's tests are in modules of their own, by whose names
//! `tests/run.sh` finds them.

/// Makes each of these functions, which take a `Scene`, a test on an SQLite file and one on each server.
macro_rules! on_every_store {
    ($($(#[$attribute:meta])* $name:ident),* $(,)?) => {
        mod on_sqlite {
            $($(#[$attribute])*
            #[tokio::test]
            async fn $name() {
                super::$name(crate::Scene::on_sqlite().await).await;
            })*
        }

        on_every_server! { crate::Scene; $($(#[$attribute])* $name),* }
    };
}

/// Makes each of these functions a test on each server, with a `TestDatabase` unless another type is named.
macro_rules! on_every_server {
    ($place:path; $($functions:tt)*) => {
        #[cfg(all(feature = "sqlserver", feature = "conformance"))]
        on_sqlserver! { $place; $($functions)* }
        #[cfg(all(feature = "postgres", feature = "conformance"))]
        on_postgres! { $place; $($functions)* }
    };
    ($($functions:tt)*) => {
        on_every_server! { crate::database::TestDatabase; $($functions)* }
    };
}

/// On a SQL Server.
#[cfg(all(feature = "sqlserver", feature = "conformance"))]
macro_rules! on_sqlserver {
    ($place:path; $($(#[$attribute:meta])* $name:ident),* $(,)?) => {
        mod on_sqlserver {
            $($(#[$attribute])*
            #[tokio::test]
            #[ignore = "needs a SQL Server: bash tests/run.sh finds one"]
            async fn $name() {
                super::$name(<$place>::on_sqlserver().await).await;
            })*
        }
    };
}

/// On the PostgreSQL server that `tests/run.sh` starts.
#[cfg(all(feature = "postgres", feature = "conformance"))]
macro_rules! on_postgres {
    ($place:path; $($(#[$attribute:meta])* $name:ident),* $(,)?) => {
        mod on_postgres {
            $($(#[$attribute])*
            #[tokio::test]
            async fn $name() {
                super::$name(<$place>::on_postgres().await).await;
            })*
        }
    };
}
