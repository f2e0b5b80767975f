//! Where a scene is played: the worker processes, and everything that they and the director did, in order.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::arguments::Task;
use crate::database::Database;
use crate::event::{At, Entry, Event, Who};
use crate::failure::Failure;
use crate::narration;
use crate::place::Place;
use crate::record::Record;

/// How long anything may take before it counts as hung. Nothing waits for it to pass.
const LIMIT: Duration = Duration::from_secs(60);

/// How often what cannot be waited for is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// A scene under way.
pub(crate) struct Stage {
    database: Database,
    report: String,
    ttl: Duration,
    pub(crate) record: Record,
    heard: UnboundedReceiver<Heard>,
    tell: UnboundedSender<Heard>,
    /// The latest process of each worker: that an earlier one ended is no news.
    latest: Vec<(Who, u32)>,
}

/// A worker process. Killed when dropped.
pub(crate) struct Actor {
    pub(crate) who: Who,
    child: Child,
    input: ChildStdin,
}

/// What comes from a worker's standard output.
enum Heard {
    Said(Result<Entry, Failure>),
    Ended { pid: u32 },
}

impl Stage {
    pub(crate) fn new(place: &Place) -> Self {
        let (tell, heard) = unbounded_channel();
        let (database, report) = (place.database.clone(), place.name.clone());
        Self { database, report, ttl: place.ttl, record: Record::begin(), heard, tell, latest: Vec::new() }
    }

    /// Starts a worker: this program once more, as a process of its own.
    pub(crate) fn cast(
        &mut self,
        task: Task,
        who: Who,
        build: Duration,
        ticket: Option<&Path>,
    ) -> Result<Actor, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("worker").arg(task.name()).args(["--who", &who.to_string(), "--report", &self.report]);
        self.database.hand_to(&mut command);
        command.args(["--ttl", &format!("{}us", self.ttl.as_micros())]);
        command.args(["--build", &format!("{}us", build.as_micros())]);
        if let Some(ticket) = ticket {
            command.arg("--ticket").arg(ticket);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = pipes else { unreachable!("both are piped") };
        let (tell, pid) = (self.tell.clone(), child.id());
        self.latest.retain(|(other, _)| *other != who);
        self.latest.push((who, pid));
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = tell.send(Heard::Said(serde_json::from_str(&line).map_err(Failure::from)));
            }
            let _ = tell.send(Heard::Ended { pid });
        });
        Ok(Actor { who, child, input })
    }

    /// Waits until this worker has said so, now or before.
    pub(crate) async fn until(
        &mut self,
        who: Who,
        waited_for: &str,
        is_it: impl Fn(&Event) -> bool,
    ) -> Result<Entry, Failure> {
        if let Some(entry) = self.record.first(who, &is_it) {
            return Ok(entry.clone());
        }
        self.next(who, waited_for, is_it).await
    }

    /// Waits until this worker says so from now on.
    pub(crate) async fn next(
        &mut self,
        who: Who,
        waited_for: &str,
        is_it: impl Fn(&Event) -> bool,
    ) -> Result<Entry, Failure> {
        let waiting = async {
            loop {
                // The stage itself has a sender.
                match self.heard.recv().await {
                    Some(Heard::Said(entry)) => {
                        let entry = entry?;
                        self.note(entry.clone());
                        if entry.who == who && is_it(&entry.event) {
                            return Ok(entry);
                        }
                    }
                    Some(Heard::Ended { pid }) if !self.latest.contains(&(who, pid)) => {}
                    Some(Heard::Ended { .. }) | None => return Err(Failure::Ended(who)),
                }
            }
        };
        let silent = |_| Failure::Silent { waited_for: format!("{waited_for} of {who}"), limit: LIMIT };
        tokio::time::timeout(LIMIT, waiting).await.map_err(silent)?
    }

    /// Takes note of what the director does.
    pub(crate) fn act(&mut self, event: Event) {
        self.note(Entry { who: Who::Director, at: At::now(), event });
    }

    fn note(&mut self, entry: Entry) {
        println!("{}", narration::line(&entry, self.record.began));
        self.record.entries.push(entry);
    }
}

impl Actor {
    /// Lets it pass its gate, now or when it comes to it.
    pub(crate) fn open_gate(&mut self) -> Result<(), Failure> {
        Ok(self.input.write_all(b"go\n")?)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        Ok(kill_process(Pid::from_child(&self.child), signal).map_err(std::io::Error::from)?)
    }

    /// Stops it, and waits until it surely does not run.
    pub(crate) async fn stop(&self) -> Result<(), Failure> {
        self.signal(Signal::STOP)?;
        let id = WaitId::Pid(Pid::from_child(&self.child));
        // Only looked at: who ended is still to be waited for.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let stopped = async {
            loop {
                match waitid(id.clone(), options).map_err(std::io::Error::from)? {
                    Some(status) if status.stopped() => return Ok(()),
                    Some(_) => return Err(Failure::Ended(self.who)),
                    None => tokio::time::sleep(LOOK).await,
                }
            }
        };
        let silent = |_| Failure::Silent { waited_for: format!("the stop of {}", self.who), limit: LIMIT };
        tokio::time::timeout(LIMIT, stopped).await.map_err(silent)?
    }

    /// Waits for its end; answers the signal that ended it, if one did.
    pub(crate) async fn end(mut self) -> Result<Option<i32>, Failure> {
        use std::os::unix::process::ExitStatusExt;

        let ended = async {
            loop {
                match self.child.try_wait()? {
                    Some(status) if status.success() || status.signal().is_some() => return Ok(status.signal()),
                    Some(_) => return Err(Failure::Ended(self.who)),
                    None => tokio::time::sleep(LOOK).await,
                }
            }
        };
        let silent = |_| Failure::Silent { waited_for: format!("the end of {}", self.who), limit: LIMIT };
        tokio::time::timeout(LIMIT, ended).await.map_err(silent)?
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // SIGKILL also ends a process that is stopped. Of one that ended already nobody is left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
