//! Runs cases: each on a fresh database, with its panic caught and its hanging ended.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::harness::{Database, Harness};
use super::report::{Outcome, Report};
use super::scene::Scene;

/// One sentence of the contract, as code.
pub(super) struct Case<D: Database> {
    group: &'static str,
    name: &'static str,
    run: fn(Scene<D>) -> BoxFuture<'static, ()>,
}

impl<D: Database> Case<D> {
    pub(super) fn new(module: &'static str, name: &'static str, run: fn(Scene<D>) -> BoxFuture<'static, ()>) -> Self {
        let group = module.rsplit("::").next().unwrap_or(module);
        Self { group, name, run }
    }

    fn full_name(&self) -> String {
        format!("{}::{}", self.group, self.name)
    }

    fn matches(&self, prefix: &str) -> bool {
        self.name.starts_with(prefix) || self.full_name().starts_with(prefix)
    }
}

/// Lists the cases of a file. One that is not listed is dead code, which the compiler tells.
macro_rules! cases {
    ($($name:ident),+ $(,)?) => {
        pub(super) fn cases<D: $crate::conformance::Database>() -> Vec<$crate::conformance::suite::Case<D>> {
            vec![$($crate::conformance::suite::Case::new(
                module_path!(),
                stringify!($name),
                |scene| Box::pin($name(scene)),
            )),+]
        }
    };
}
pub(super) use cases;

/// The suite, or a part of it.
#[derive(Debug, Clone)]
pub struct Suite {
    prefix: String,
    hang_limit: Duration,
}

impl Default for Suite {
    /// Every case, and a minute for each.
    fn default() -> Self {
        Self { prefix: String::new(), hang_limit: Duration::from_secs(60) }
    }
}

impl Suite {
    /// Only cases whose name, with or without its group, begins with this: `waiting::` or `late_renewal`.
    #[must_use]
    pub fn matching(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// After how long a case counts as hanging, and fails. Generous by default, because machines that run tests are busy.
    #[must_use]
    pub fn hang_limit(mut self, limit: Duration) -> Self {
        self.hang_limit = limit;
        self
    }

    /// Runs the cases one after the other, each on a fresh database.
    ///
    /// It needs a tokio runtime with its time driver on and not paused: the database's clock is not paused either.
    ///
    /// # Cancel safety
    /// May be dropped at any time; calls that a case had under way end by their budgets.
    pub async fn run<H: Harness>(&self, harness: &H) -> Report {
        let mut report = Report::default();
        for case in super::all_cases::<H::Database>().iter().filter(|case| case.matches(&self.prefix)) {
            let started = Instant::now();
            let failure = self.failure_of(harness, case).await;
            report.outcomes.push(Outcome { name: case.full_name(), failure, took: started.elapsed() });
        }
        report
    }

    async fn failure_of<H: Harness>(&self, harness: &H, case: &Case<H::Database>) -> Option<String> {
        let run = async { (case.run)(Scene::new(harness.fresh().await).await).await };
        match tokio::time::timeout(self.hang_limit, AssertUnwindSafe(run).catch_unwind()).await {
            Ok(Ok(())) => None,
            Ok(Err(panic)) => Some(message_of(&*panic)),
            Err(_) => Some(format!("hangs: no end after {} s", self.hang_limit.as_secs_f32())),
        }
    }
}

/// Runs the whole contract against a store: [`Suite::default`] and [`Suite::run`].
pub async fn run<H: Harness>(harness: &H) -> Report {
    Suite::default().run(harness).await
}

/// Runs the cases whose name, with or without its group, begins with this prefix.
pub async fn run_matching<H: Harness>(harness: &H, prefix: &str) -> Report {
    Suite::default().matching(prefix).run(harness).await
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("panicked without a message").to_owned()
}
