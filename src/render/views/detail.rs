//! In how much detail cameras draw sets.

use crate::render::settings::GpuCullingSettings;
use bevy::{
    prelude::*,
    render::{RenderApp, extract_component::ExtractComponent},
};

/// On a camera: the detail in which it draws sets, instead of the detail of
/// [`GpuCullingSettings`]. For a mirror, a minimap, or the smaller picture of a split screen.
///
/// A field that is `None` stays with the settings. The shadow maps of point and spot lights, which
/// all cameras share, always do. If `lod_pixels` or `min_pixels` differ from the settings,
/// levels replace each other at once in the camera, and small instances vanish at once. Visibility
/// ranges fade.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// fn minimap(mut commands: Commands) {
///     let coarse = CameraDetail {
///         lod_pixels: Some(4.0),
///         min_pixels: Some(2.0),
///         ..default()
///     };
///     commands.spawn((Camera3d::default(), coarse));
/// }
/// ```
#[derive(Component, ExtractComponent, Reflect, Clone, Copy, Debug, Default, PartialEq)]
#[extract_app(RenderApp)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct CameraDetail {
    /// The greatest error, in pixels, with which the camera draws levels of detail, instead of
    /// [`GpuCullingSettings::lod_pixels`].
    pub lod_pixels: Option<f32>,
    /// The same in the camera's cascades, instead of [`GpuCullingSettings::shadow_lod_pixels`].
    pub shadow_lod_pixels: Option<f32>,
    /// Diameter in pixels below which the camera and its cascades draw no instance, instead of
    /// [`GpuCullingSettings::min_pixels`].
    pub min_pixels: Option<f32>,
}

/// The detail in which a view draws sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::render) struct Detail {
    lod_pixels: f32,
    shadow_lod_pixels: f32,
    min_pixels: f32,
    /// Whether the slots of sets that fade hold for it.
    pub fades: bool,
}

impl Detail {
    /// The detail of the settings.
    pub fn of(settings: &GpuCullingSettings) -> Self {
        Self {
            lod_pixels: settings.lod_pixels.max(0.0),
            shadow_lod_pixels: settings.shadow_lod_pixels.max(0.0),
            min_pixels: settings.min_pixels.max(0.0),
            fades: true,
        }
    }

    /// The detail of a camera whose component this is.
    pub fn with(self, own: Option<&CameraDetail>) -> Self {
        let Some(own) = own else {
            return self;
        };
        let lod_pixels = own.lod_pixels.unwrap_or(self.lod_pixels).max(0.0);
        let min_pixels = own.min_pixels.unwrap_or(self.min_pixels).max(0.0);
        let shadow_lod_pixels = own.shadow_lod_pixels.unwrap_or(self.shadow_lod_pixels);
        Self {
            lod_pixels,
            shadow_lod_pixels: shadow_lod_pixels.max(0.0),
            min_pixels,
            fades: (lod_pixels, min_pixels) == (self.lod_pixels, self.min_pixels),
        }
    }

    /// The greatest error of levels, in pixels.
    pub fn max_error(&self, is_shadow: bool) -> f32 {
        match is_shadow {
            true => self.shadow_lod_pixels,
            false => self.lod_pixels,
        }
    }

    /// The least diameter that is drawn, in pixels; 0 if every size is.
    pub fn min_pixels(&self) -> f32 {
        self.min_pixels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_none_stay_with_the_settings() {
        let settings = GpuCullingSettings {
            min_pixels: 3.0,
            ..default()
        };
        let of_settings = Detail::of(&settings);
        assert_eq!(of_settings.with(None), of_settings);
        assert_eq!(
            of_settings.with(Some(&CameraDetail::default())),
            of_settings
        );
        let own = CameraDetail {
            shadow_lod_pixels: Some(9.0),
            ..default()
        };
        let own = of_settings.with(Some(&own));
        assert_eq!([own.max_error(false), own.max_error(true)], [1.0, 9.0]);
        assert_eq!(own.min_pixels(), 3.0);
        assert!(own.fades, "cascades never fade");
    }

    #[test]
    fn a_camera_with_its_own_sizes_does_not_fade() {
        let of_settings = Detail::of(&GpuCullingSettings::default());
        for (lod_pixels, min_pixels, fades) in [
            (Some(1.0), Some(0.0), true),
            (Some(-1.0), None, false),
            (Some(2.0), None, false),
            (None, Some(2.0), false),
        ] {
            let own = CameraDetail {
                lod_pixels,
                min_pixels,
                ..default()
            };
            let own = of_settings.with(Some(&own));
            assert_eq!(own.fades, fades, "{lod_pixels:?} {min_pixels:?}");
            assert!(own.max_error(false) >= 0.0);
        }
    }
}
