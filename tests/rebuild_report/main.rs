//! The main job, `examples/rebuild_report`, in real processes.

// It takes signals to stop one of two at a known point.
#[cfg(unix)]
mod lease;
#[cfg_attr(not(unix), allow(dead_code))]
mod process;
mod report;
