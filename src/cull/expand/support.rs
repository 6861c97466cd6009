//! Which expansions a device can run.

use super::Expansion;
use crate::cull::CullError;
use wgpu::Features;

impl Expansion {
    /// Whether it can run on a device with `features`, else an error that names what is missing.
    ///
    /// # Errors
    /// [`CullError::ExpansionUnsupported`].
    pub fn check(self, features: Features) -> Result<(), CullError> {
        let missing = self.strategy().features - features;
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = missing.iter_names().map(|(name, _)| name).collect();
        Err(CullError::ExpansionUnsupported {
            expansion: self.name(),
            missing: names.join(" and "),
        })
    }

    /// This expansion, or what takes its place on a device with `features`, with the reason to log.
    #[must_use]
    pub fn supported(self, features: Features) -> (Self, Option<String>) {
        match self.check(features) {
            Ok(()) => (self, None),
            Err(error) => (Self::default(), Some(error.to_string())),
        }
    }
}

#[cfg(all(test, feature = "study"))]
mod tests {
    use super::*;

    #[test]
    fn what_needs_64_bits_names_the_features_and_gives_way() {
        let (expansion, reason) = Expansion::PackedAtomic.supported(Features::SHADER_INT64);
        assert_eq!(expansion, Expansion::OneBucket);
        let reason = reason.unwrap_or_default();
        assert!(
            reason.contains("packed-atomic") && reason.contains("SHADER_INT64_ATOMIC_ALL_OPS"),
            "{reason}"
        );
        let all = Expansion::wanted_features();
        assert_eq!(
            Expansion::PackedAtomic.supported(all),
            (Expansion::PackedAtomic, None)
        );
        for expansion in Expansion::ALL {
            let has = expansion.check(Features::empty()).is_ok();
            assert_eq!(has, *expansion != Expansion::PackedAtomic);
        }
    }
}
