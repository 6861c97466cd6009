//! The number of instances that a set can have.

use super::InstanceError;

/// The largest number of instances in a set. On the GPU, a set occupies whole blocks of 1,024
/// places, and 32 bits could not count the places of a longer set.
pub(super) const MAX_LEN: usize = u32::MAX as usize - 1023;

/// The index of the instance that follows `len` instances.
pub(super) fn next_index(len: usize) -> Result<u32, InstanceError> {
    check_len(len.saturating_add(1))?;
    Ok(len as u32)
}

pub(super) fn check_len(len: usize) -> Result<(), InstanceError> {
    if len <= MAX_LEN {
        Ok(())
    } else {
        Err(InstanceError::TooMany {
            len,
            limit: MAX_LEN,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_index_is_one_below_the_limit() {
        assert_eq!(next_index(0), Ok(0));
        assert_eq!(next_index(MAX_LEN - 1), Ok(u32::MAX - 1024));
        let error = InstanceError::TooMany {
            len: MAX_LEN + 1,
            limit: MAX_LEN,
        };
        assert_eq!(next_index(MAX_LEN), Err(error.clone()));
        assert_eq!(check_len(MAX_LEN + 1), Err(error));
        assert_eq!(check_len(MAX_LEN), Ok(()));
    }
}
