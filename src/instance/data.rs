//! The data channel of a set: words per instance whose meaning the material decides.

use bytemuck::Pod;
use core::ops::Range;

use super::InstanceError;

/// The largest size of an instance's data, in bytes.
pub(super) const MAX_SIZE: usize = 16;

/// Up to four words per instance, of which the first is the tag. The number of words only grows:
/// words that an instance was not given are 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Data {
    /// Words per instance; 0 without the channel.
    words: usize,
    values: Vec<u32>,
}

impl Data {
    /// A channel of `words` words per instance; `values` has a multiple of them.
    pub fn new(words: usize, values: Vec<u32>) -> Self {
        Self { words, values }
    }

    /// A channel of words from elsewhere, for `len` instances.
    ///
    /// # Errors
    /// [`InstanceError::DataSize`], [`InstanceError::ChannelLength`]
    pub fn checked(words: usize, values: Vec<u32>, len: usize) -> Result<Self, InstanceError> {
        words_of(words.saturating_mul(4))?;
        if len.checked_mul(words) == Some(values.len()) {
            return Ok(Self::new(words, values));
        }
        // An instance that lacks some of its words counts only if that says what is wrong.
        let whole = values.len() / words;
        Err(InstanceError::ChannelLength {
            channel: "data",
            len: if whole == len { whole + 1 } else { whole },
            expected: len,
        })
    }

    /// A channel of these values.
    ///
    /// # Errors
    /// [`InstanceError::DataSize`]
    pub fn of<T: Pod>(values: Vec<T>) -> Result<Self, InstanceError> {
        let words = words_of(size_of::<T>())?;
        let values = bytemuck::allocation::try_cast_vec(values)
            .unwrap_or_else(|(_, values)| bytemuck::pod_collect_to_vec(&values));
        Ok(Self { words, values })
    }

    /// Words per instance; 0 without the channel.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The words of all instances.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.words).unwrap_or(0)
    }

    /// The words of an existing instance, followed by zeros.
    pub fn get(&self, at: usize) -> [u32; MAX_SIZE / 4] {
        let mut words = [0; MAX_SIZE / 4];
        words[..self.words].copy_from_slice(&self.values[self.places(at..at + 1)]);
        words
    }

    /// Makes room for this number of words. `len` is the number of instances.
    pub fn widen(&mut self, words: usize, len: usize) {
        if words <= self.words {
            return;
        }
        let mut wide = vec![0; words * len];
        if self.words > 0 {
            let rows = self.values.chunks_exact(self.words);
            for (to, from) in wide.chunks_exact_mut(words).zip(rows) {
                to[..self.words].copy_from_slice(from);
            }
        }
        *self = Self::new(words, wide);
    }

    /// Replaces the first words of an existing one of `len` instances.
    pub fn set(&mut self, at: usize, words: &[u32], len: usize) {
        self.widen(words.len(), len);
        let first = at * self.words;
        self.values[first..first + words.len()].copy_from_slice(words);
    }

    /// Adds the tag of an instance behind `len` others.
    pub fn push(&mut self, tag: u32, len: usize) {
        if tag != 0 {
            self.widen(1, len);
        }
        let end = (len + 1) * self.words;
        self.values.resize(end, 0);
        if tag != 0 {
            self.values[end - self.words] = tag;
        }
    }

    /// Replaces `range` of `len` instances by `added` others, as [`Vec::splice`] does. Returns what
    /// was there, with as many words as the channel had.
    pub fn splice(&mut self, range: Range<usize>, len: usize, mut new: Self, added: usize) -> Self {
        let before = self.words;
        self.widen(new.words, len);
        new.widen(self.words, added);
        let places = self.places(range);
        let removed: Vec<u32> = self.values.splice(places, new.values).collect();
        let kept = match before {
            0 => Vec::new(),
            _ if before == self.words => removed,
            _ => {
                let rows = removed.chunks_exact(self.words);
                rows.flat_map(|row| &row[..before]).copied().collect()
            }
        };
        Self::new(before, kept)
    }

    /// Adds `added` instances behind `len` others.
    pub fn append(&mut self, len: usize, tail: Self, added: usize) {
        if len == 0 && self.words <= tail.words {
            *self = tail;
        } else {
            self.splice(len..len, len, tail, added);
        }
    }

    pub fn truncate(&mut self, len: usize) {
        self.values.truncate(len * self.words);
    }

    /// Puts the last instance's words in the place of another one's.
    pub fn swap_remove(&mut self, at: usize) {
        let last = self.values.len().saturating_sub(self.words);
        self.values.copy_within(last.., at * self.words);
        self.values.truncate(last);
    }

    /// Keeps the words of instances that are marked.
    pub fn retain(&mut self, kept: &[bool]) {
        let words = self.words;
        let mut place = 0;
        self.values.retain(|_| {
            let instance = place / words;
            place += 1;
            kept.get(instance).is_none_or(|kept| *kept)
        });
    }

    fn places(&self, range: Range<usize>) -> Range<usize> {
        range.start * self.words..range.end * self.words
    }
}

/// Number of words of data of this size in bytes.
///
/// # Errors
/// [`InstanceError::DataSize`]
pub(super) fn words_of(bytes: usize) -> Result<usize, InstanceError> {
    match bytes {
        4..=MAX_SIZE if bytes.is_multiple_of(4) => Ok(bytes / 4),
        _ => Err(InstanceError::DataSize { bytes }),
    }
}

/// The words of a value, followed by zeros.
///
/// # Errors
/// [`InstanceError::DataSize`]
pub(super) fn words<T: Pod>(value: T) -> Result<[u32; MAX_SIZE / 4], InstanceError> {
    let count = words_of(size_of::<T>())?;
    let mut words = [0; MAX_SIZE / 4];
    bytemuck::cast_slice_mut(&mut words[..count]).copy_from_slice(bytemuck::bytes_of(&value));
    Ok(words)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn data_has_4_to_16_bytes() {
        assert_eq!(Data::of(vec![[1u16, 2]; 3]).unwrap().words(), 1);
        assert_eq!(Data::of(vec![1.0f32; 3]).unwrap().words(), 1);
        assert_eq!(Data::of(vec![7u64; 3]).unwrap().words(), 2);
        assert_eq!(Data::of(vec![[0.5f32; 3]; 3]).unwrap().words(), 3);
        assert_eq!(Data::of(vec![7u128; 3]).unwrap().words(), 4);
        for (bytes, refused) in [
            (0, Data::of(vec![(); 3])),
            (2, Data::of(vec![1u16])),
            (6, Data::of(vec![[1u16; 3]])),
            (20, Data::of(vec![[1u32; 5]])),
        ] {
            assert_eq!(refused, Err(InstanceError::DataSize { bytes }));
        }
    }

    #[test]
    fn words_follow_their_instance() {
        let mut data = Data::of(vec![[1u32, 10], [2, 20], [3, 30]]).unwrap();
        data.swap_remove(0);
        assert_eq!(data.values(), [3, 30, 2, 20]);
        data.push(0, 2);
        data.push(5, 3);
        assert_eq!(data.values(), [3, 30, 2, 20, 0, 0, 5, 0]);
        data.retain(&[true, false, true, true]);
        let removed = data.splice(1..2, 3, Data::of(vec![[7u32, 8, 9]; 2]).unwrap(), 2);
        assert_eq!(removed, Data::new(2, vec![0, 0]));
        assert_eq!(data.values(), [3, 30, 0, 7, 8, 9, 7, 8, 9, 5, 0, 0]);
        assert_eq!(data.get(3), [5, 0, 0, 0]);
        data.truncate(1);
        data.append(1, Data::new(1, vec![4]), 1);
        assert_eq!(data.values(), [3, 30, 0, 4, 0, 0]);
        data.swap_remove(1);
        data.swap_remove(0);
        assert_eq!((data.words(), data.values().len()), (3, 0));
    }
}
