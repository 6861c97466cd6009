//! How the meshlet stages are made.

/// How a [`MeshletCuller`] is made.
#[derive(Clone, Copy, Debug)]
pub struct MeshletOptions {
    /// Keeps the bounds checks of the kernels (for tests; off by default).
    pub shader_checks: bool,
    /// Number of cells (one meshlet of a tile of 128 survivors, 20 bytes) that a new batch holds, if as
    /// many can occur. A row that does not fit is drawn whole; the room grows a few frames later. The
    /// default is 262,144.
    pub cell_capacity: u32,
    /// Number of ids (4 bytes each) that a new batch holds: one per drawn meshlet of each survivor. The
    /// default is 4,194,304.
    pub pair_capacity: u32,
    /// Largest number of workgroups of 128 threads that share the work of a stage whose amount only the
    /// GPU knows. The default is 4,096: more threads than any GPU runs at once.
    pub workgroups: u32,
    /// Whether the capacities stay, so that rows that do not fit are always drawn whole (for tests; off
    /// by default).
    pub keeps_capacity: bool,
}

impl Default for MeshletOptions {
    fn default() -> Self {
        Self {
            shader_checks: false,
            cell_capacity: 1 << 18,
            pair_capacity: 1 << 22,
            workgroups: 4096,
            keeps_capacity: false,
        }
    }
}
