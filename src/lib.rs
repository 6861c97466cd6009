//! GPU-driven culling for Bevy.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod cull;
#[cfg(feature = "bevy")]
pub mod diagnostics;
pub mod instance;
#[cfg(feature = "bevy")]
pub mod render;

/// What an app needs: `use bevy_gpu_culling::prelude::*;`
pub mod prelude {
    pub use crate::cull::CullingTier;
    #[cfg(feature = "overlay")]
    pub use crate::diagnostics::CullingOverlayPlugin;
    pub use crate::instance::{InstanceSet, InstanceTransform, PackedInstance, PackedQuat};
    #[cfg(feature = "bevy")]
    pub use crate::render::{
        CullingRadius, CullingReport, FreezeCulling, GpuCullingPlugin, GpuCullingSettings,
        GpuCullingSystems, GpuInstances,
    };
}
