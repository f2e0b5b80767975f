//! What the suite found: the [`Report`].

use std::fmt;
use std::time::Duration;

/// What one case found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome {
    /// The case: its group and a sentence, such as `waiting::late_renewal_after_lock_wait_is_refused`.
    pub name: String,
    /// What failed; `None` if the case passed.
    pub failure: Option<String>,
    /// How long it took.
    pub took: Duration,
}

/// What the suite found, case by case.
#[derive(Debug, Clone, Default)]
#[must_use = "a report that nobody looks at proves nothing: call assert_passed"]
pub struct Report {
    pub(super) outcomes: Vec<Outcome>,
}

impl Report {
    /// Every case that ran, in the order in which they ran.
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// The names of every case that ran.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.outcomes.iter().map(|outcome| outcome.name.as_str())
    }

    /// The names of the cases that passed.
    pub fn passed(&self) -> impl Iterator<Item = &str> {
        self.outcomes.iter().filter(|outcome| outcome.failure.is_none()).map(|outcome| outcome.name.as_str())
    }

    /// The names of the cases that failed.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        self.outcomes.iter().filter(|outcome| outcome.failure.is_some()).map(|outcome| outcome.name.as_str())
    }

    /// Whether at least one case ran and none failed.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        !self.outcomes.is_empty() && self.failed().next().is_none()
    }

    /// Does nothing if the suite passed.
    ///
    /// # Panics
    /// With the list of what failed; also if no case ran, so that a misspelt prefix is no success.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(!self.outcomes.is_empty(), "no case of the conformance suite has a name with that prefix");
        assert!(self.is_passed(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed) = (self.passed().count(), self.failed().count());
        write!(f, "conformance: {passed} passed, {failed} failed")?;
        for outcome in &self.outcomes {
            if let Some(failure) = &outcome.failure {
                write!(f, "\n  {}: {failure}", outcome.name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, failure: Option<&str>) -> Outcome {
        Outcome { name: name.to_owned(), failure: failure.map(str::to_owned), took: Duration::ZERO }
    }

    #[test]
    fn a_report_names_what_failed() {
        let report = Report { outcomes: vec![outcome("a::holds", None), outcome("b::breaks", Some("left != right"))] };
        assert!(!report.is_passed());
        assert_eq!(report.failed().collect::<Vec<_>>(), ["b::breaks"]);
        assert_eq!(report.to_string(), "conformance: 1 passed, 1 failed\n  b::breaks: left != right");
    }

    #[test]
    #[should_panic(expected = "no case")]
    fn a_report_of_no_case_is_no_success() {
        Report::default().assert_passed();
    }
}
