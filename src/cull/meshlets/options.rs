//! The options of the meshlet stages.

use super::expansion::MeshletExpansion;

/// Options of a [`MeshletCuller`](super::MeshletCuller).
#[derive(Clone, Copy, Debug)]
pub struct MeshletOptions {
    /// Whether the kernels keep their bounds checks (for tests; off by default).
    pub shader_checks: bool,
    /// Number of cells that a new batch holds, if as many can occur. A cell is one meshlet of a
    /// tile of 128 survivors and takes 20 bytes. A row that does not fit is drawn whole; the batch
    /// grows a few frames later. The default is 262,144.
    pub cell_capacity: u32,
    /// Number of ids (4 bytes each) that a new batch holds: one per drawn meshlet of each survivor.
    /// The default is 4,194,304.
    pub survivor_capacity: u32,
    /// Largest number of workgroups of 128 threads for a stage whose amount of work only the GPU
    /// knows. The default is 4,096: more threads than any GPU runs at once.
    pub workgroups: u32,
    /// How survivors are expanded to meshlets.
    pub expansion: MeshletExpansion,
    /// Whether the capacities stay fixed, so that rows that do not fit are always drawn whole (for
    /// tests; off by default).
    pub keeps_capacity: bool,
}

impl Default for MeshletOptions {
    fn default() -> Self {
        Self {
            shader_checks: false,
            cell_capacity: 1 << 18,
            survivor_capacity: 1 << 22,
            workgroups: 4096,
            expansion: MeshletExpansion::Auto,
            keeps_capacity: false,
        }
    }
}
