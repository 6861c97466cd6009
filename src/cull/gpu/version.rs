//! Numbers that say whether something changed.

use core::sync::atomic::{AtomicU64, Ordering};

/// Changes whenever its owner's content does, and is never the version of another owner: equal
/// versions mean equal content, so whatever was derived from the content is still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(u64);

impl Version {
    /// The version of a new owner. No other owner has any of its numbers.
    pub(crate) fn new() -> Self {
        static FIRST: AtomicU64 = AtomicU64::new(0);
        Self(FIRST.fetch_add(1 << 32, Ordering::Relaxed))
    }

    /// The content changed.
    pub(crate) fn bump(&mut self) {
        self.0 += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_two_owners_never_meet() {
        let (mut one, mut other) = (Version::new(), Version::new());
        let first = one;
        assert_ne!(one, other);
        for _ in 0..100 {
            one.bump();
            other.bump();
            assert_ne!(one, other);
        }
        assert_ne!(one, first);
    }
}
