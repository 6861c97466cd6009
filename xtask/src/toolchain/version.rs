//! Versions of Rust.

use std::fmt;

/// A version without what follows the numbers: a beta counts as its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    /// Reads `1.97.1`, `1.97`, `1.98.0-nightly` or a package's `1.97.1+dfsg1-1`.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(|c: char| c != '.' && !c.is_ascii_digit()).next();
        let mut numbers = numbers?.split('.');
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.parse().ok()?;
        let patch = match numbers.next() {
            Some(patch) => patch.parse().ok()?,
            None => 0,
        };
        Some(Self {
            major,
            minor,
            patch,
        })
    }

    /// Reads what `rustc --version` prints.
    pub fn of_program(words: &str) -> Option<Self> {
        Self::parse(words.split_whitespace().nth(1)?)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let ordered = [
            "1.9.9", "1.85", "1.97", "1.97.1", "1.97.10", "1.100.0", "2.0",
        ];
        for pair in ordered.windows(2) {
            assert!(
                Version::parse(pair[0]) < Version::parse(pair[1]),
                "{pair:?}"
            );
        }
        assert_eq!(Version::parse("1.97"), Version::parse("1.97.0"));
        assert_eq!(Version::parse("1.97.1+dfsg1-1"), Version::parse("1.97.1"));
        for text in ["", "stable", "1", "1.x", "1.97.", "v1.97"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_compiler_says_its_version() {
        let read = |words: &str| Version::of_program(words).map(|version| version.to_string());
        for (words, version) in [
            ("rustc 1.95.0 (59807616e 2026-04-14)", "1.95.0"),
            (
                "rustc 1.97.1 (8bab26f4f 2026-07-14) (built from a source tarball)",
                "1.97.1",
            ),
            ("rustc 1.99.0-nightly (0f6f5b2d3 2026-08-01)\n", "1.99.0"),
        ] {
            assert_eq!(read(words).as_deref(), Some(version), "{words}");
        }
        assert_eq!(read("error: no such command"), None);
        assert_eq!(read(""), None);
    }
}
