//! What the log has said, so that it says it once.

use bevy::platform::collections::HashSet;
use core::hash::Hash;

/// Number of messages that are remembered. Beyond it, all are forgotten: an app that makes new
/// materials or entities for hours needs no memory of each.
const MAX: usize = 4096;

/// Names of what was logged.
pub(super) struct Told<K>(HashSet<K>);

impl<K> Default for Told<K> {
    fn default() -> Self {
        Self(HashSet::default())
    }
}

impl<K: Eq + Hash> Told<K> {
    /// Notes a message. Returns whether it is to be logged, because it is new.
    pub fn is_new(&mut self, message: K) -> bool {
        if self.0.len() >= MAX && !self.0.contains(&message) {
            self.0.clear();
        }
        self.0.insert(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_new_once_and_few_are_remembered() {
        let mut told = Told::default();
        assert!(told.is_new(0));
        assert!(!told.is_new(0));
        for message in 1..3 * MAX {
            assert!(told.is_new(message));
            assert!(!told.is_new(message));
            assert!(told.0.len() <= MAX);
        }
    }
}
