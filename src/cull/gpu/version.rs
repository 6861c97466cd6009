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

    /// Number of changes since an earlier version; `None` if that is of another owner.
    pub(crate) fn changes_since(self, before: Self) -> Option<u64> {
        let is_same_owner = self.0 >> 32 == before.0 >> 32;
        self.0.checked_sub(before.0).filter(|_| is_same_owner)
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
        assert_eq!(one.changes_since(first), Some(100));
        assert_eq!(one.changes_since(one), Some(0));
        assert_eq!(first.changes_since(one), None, "a later one");
        assert_eq!(other.changes_since(one), None, "another owner");
    }
}
