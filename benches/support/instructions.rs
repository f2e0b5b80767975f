//! Counts instructions with gungraun: its runner starts this same binary under valgrind, once for each benchmark.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use gungraun::{library_benchmark, library_benchmark_group};

use super::polling::{self, POLLS, Polled};

/// Set for the copy of this process that hands its benchmarks to gungraun's runner.
const HANDS_OVER: &str = "LEASEHOLD_HANDS_OVER_TO_GUNGRAUN";

macro_rules! counted {
    ($($name:ident),*) => {
        $(#[library_benchmark]
        #[bench::polls(polling::$name())]
        fn $name(mut polled: Polled) -> Polled {
            polled.poll(POLLS);
            // Not dropped in what is counted.
            polled
        })*
        library_benchmark_group!(name = polls; benchmarks = $($name),*);
    };
}

counted!(bare, supervised, run_until_cancelled, select_biased, abortable);

gungraun::main!(library_benchmark_groups = polls);

/// Whether this process was started to be counted, or to hand over to the runner.
pub(crate) fn is_for_gungraun() -> bool {
    std::env::var_os(HANDS_OVER).is_some() || std::env::args().nth(1).is_some_and(|first| first == "--gungraun-run")
}

pub(crate) fn for_gungraun() {
    main();
}

/// The instructions of each benchmark; `None`, and loudly, if they cannot be counted here.
pub(crate) fn count() -> Option<HashMap<String, f64>> {
    if !runs("valgrind") || !runs("gungraun-runner") {
        println!("INSTRUCTIONS PER POLL WERE NOT MEASURED: they need valgrind and gungraun's runner. To install them:");
        println!("    apt-get install valgrind");
        println!("    cargo install --locked --version 0.20.0 gungraun-runner");
        return None;
    }
    let this = std::env::current_exe().expect("this program");
    let output = Command::new(this)
        .args(["--bench", "--output-format=json"])
        .env(HANDS_OVER, "1")
        .stderr(Stdio::inherit())
        .output()
        .expect("this program starts");
    if !output.status.success() {
        println!("INSTRUCTIONS PER POLL WERE NOT MEASURED: gungraun's runner failed, as it said above");
        return None;
    }
    // One line of JSON for each benchmark.
    let text = String::from_utf8(output.stdout).expect("summaries in JSON");
    Some(text.lines().map(instructions).collect())
}

/// The name of a benchmark and its instructions, of all threads that ran it.
fn instructions(summary: &str) -> (String, f64) {
    let summary: serde_json::Value = serde_json::from_str(summary).expect("a summary in JSON");
    let name = summary["function_name"].as_str().expect("a name");
    let count = summary["profiles"][0]["data"]["total"]["metrics"]["Ir"]["values"]["new"].as_f64();
    (name.to_owned(), count.expect("callgrind's count"))
}

fn runs(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}
