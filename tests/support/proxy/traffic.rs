//! What an operation costs on the wire.

use std::ops::{Add, Sub};

use super::fault::Direction;

/// Bytes that arrived at the proxy, whatever became of them, and round trips: how often something came back from the server
/// after the client had sent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    pub to_server: u64,
    pub to_client: u64,
    pub round_trips: u64,
}

impl Traffic {
    pub fn bytes(self, direction: Direction) -> u64 {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            to_server: self.to_server + other.to_server,
            to_client: self.to_client + other.to_client,
            round_trips: self.round_trips + other.round_trips,
        }
    }
}

/// What came since an earlier look.
impl Sub for Traffic {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            to_server: self.to_server - earlier.to_server,
            to_client: self.to_client - earlier.to_client,
            round_trips: self.round_trips - earlier.round_trips,
        }
    }
}
