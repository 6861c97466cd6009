//! Settings: how a mesh is cut into meshlets, and how its levels of detail are made.

use super::{MeshletError, error::check_setting};

/// Settings for cutting a mesh into meshlets.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "bevy", derive(bevy::reflect::Reflect))]
pub struct MeshletSettings {
    /// Largest number of vertices in a meshlet, 3 to 256. The default is 64: two subgroups of 32 on
    /// today's GPUs.
    pub max_vertices: u32,
    /// Largest number of triangles in a meshlet, 1 to 512. The default is 124.
    pub max_triangles: u32,
    /// Weight of the cones: 0 makes meshlets round; 1 makes their triangles face one way, so that
    /// the cones reject more of them. The default is 0.5.
    pub cone_weight: f32,
    /// How coarser levels of detail are made, which far instances draw. `None`, the default, makes
    /// no levels.
    pub lods: Option<LodSettings>,
}

impl Default for MeshletSettings {
    fn default() -> Self {
        Self {
            max_vertices: 64,
            max_triangles: 124,
            cone_weight: 0.5,
            lods: None,
        }
    }
}

impl MeshletSettings {
    /// Refuses values out of range.
    ///
    /// # Errors
    /// [`MeshletError::Setting`].
    pub fn check(&self) -> Result<(), MeshletError> {
        check_setting("max_vertices", f64::from(self.max_vertices), 3.0, 256.0)?;
        check_setting("max_triangles", f64::from(self.max_triangles), 1.0, 512.0)?;
        check_setting("cone_weight", f64::from(self.cone_weight), 0.0, 1.0)?;
        self.lods.map_or(Ok(()), |lods| lods.check())
    }
}

/// Settings for levels of detail.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "bevy", derive(bevy::reflect::Reflect))]
pub struct LodSettings {
    /// Largest number of levels, without the full mesh, 1 to 7. The default is 5.
    pub max_levels: u32,
    /// Share of triangles that each level keeps of the level before, 0.05 to 0.75. The default is
    /// 0.5.
    pub kept: f32,
    /// No level has fewer triangles. The default is 4.
    pub min_triangles: u32,
    /// Whether small separate pieces are leaves (or blades, needles, petals), whose edges cannot
    /// collapse. A level keeps some of them, evenly spread, and widens these so that all leaves
    /// together have the area that they have in the full mesh. They stay in the box around all
    /// leaves. What else the mesh has, such as a trunk, is simplified as without the setting. The
    /// default is `false`.
    ///
    /// A piece is a leaf if it shares no corner with other pieces, and its area is at most 8 times
    /// the median of all pieces and a sixteenth of the mesh's. There must be 32 or more; otherwise
    /// the setting changes nothing. So it is for meshes with leaves: in a mesh of bark alone,
    /// separate branches would count as leaves.
    #[cfg_attr(feature = "bevy", reflect(default))]
    pub foliage: bool,
}

impl Default for LodSettings {
    fn default() -> Self {
        Self {
            max_levels: 5,
            kept: 0.5,
            min_triangles: 4,
            foliage: false,
        }
    }
}

impl LodSettings {
    /// Largest number of levels, without the full mesh.
    pub const MAX_LEVELS: u32 = 7;

    /// Refuses values out of range.
    ///
    /// # Errors
    /// [`MeshletError::Setting`].
    pub fn check(&self) -> Result<(), MeshletError> {
        let max = f64::from(Self::MAX_LEVELS);
        check_setting("max_levels", f64::from(self.max_levels), 1.0, max)?;
        check_setting("kept", f64::from(self.kept), 0.05, 0.75)
    }

    /// The settings' numbers, as they are compared.
    #[cfg(all(feature = "bevy", feature = "meshlets"))]
    pub(crate) fn bits(self) -> [u32; 4] {
        let Self {
            max_levels,
            kept,
            min_triangles,
            foliage,
        } = self;
        [max_levels, kept.to_bits(), min_triangles, foliage.into()]
    }
}
