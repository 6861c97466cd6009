//! The head of files: what they are, their version, and a checksum.
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | the kind of the file |
//! | 4 | its version, little-endian like all numbers |
//! | 4 | CRC-32 (IEEE) of the payload |
//! | 8 | size of the payload, in bytes |
//! | rest | the payload |

/// Size of the head, in bytes.
pub(crate) const HEAD: usize = 24;

/// A kind of file.
pub(crate) struct FileKind {
    /// The first bytes of each file.
    pub magic: [u8; 8],
    /// The version that is written; no other is read.
    pub version: u32,
}

/// What is wrong with a file, whatever its kind.
#[derive(Debug, PartialEq)]
pub(crate) enum HeadError {
    /// It begins with these bytes, which are not the magic.
    Foreign { found: Vec<u8> },
    /// It has another version.
    Version { found: u32, supported: u32 },
    /// It has another size, in bytes, than its head says.
    Length { found: u64, expected: u64 },
    /// Its payload has another checksum than its head says.
    Checksum { found: u32, expected: u32 },
}

impl FileKind {
    /// The bytes of a file. `append` adds the payload, of about `size` bytes, to the bytes that it
    /// is given.
    pub fn write<E>(
        &self,
        size: usize,
        append: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        let mut bytes = Vec::with_capacity(HEAD + size);
        bytes.resize(HEAD, 0);
        let mut bytes = append(bytes)?;
        let (head, payload) = bytes.split_at_mut(HEAD);
        head[..8].copy_from_slice(&self.magic);
        head[8..12].copy_from_slice(&self.version.to_le_bytes());
        head[12..16].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        head[16..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        Ok(bytes)
    }

    /// The payload of a file, which is whole and of this kind.
    pub fn payload<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], HeadError> {
        let found = bytes.get(..8).unwrap_or(bytes);
        if found != self.magic {
            return Err(HeadError::Foreign {
                found: found.to_vec(),
            });
        }
        let found = bytes.len() as u64;
        let Some((head, payload)) = bytes.split_at_checked(HEAD) else {
            return Err(HeadError::Length {
                found,
                expected: HEAD as u64,
            });
        };
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| head[at + i]));
        if word(8) != self.version {
            return Err(HeadError::Version {
                found: word(8),
                supported: self.version,
            });
        }
        let size = u64::from(word(16)) | u64::from(word(20)) << 32;
        if payload.len() as u64 != size {
            return Err(HeadError::Length {
                found,
                expected: size.saturating_add(HEAD as u64),
            });
        }
        let checksum = crc32fast::hash(payload);
        if checksum != word(12) {
            return Err(HeadError::Checksum {
                found: checksum,
                expected: word(12),
            });
        }
        Ok(payload)
    }
}
