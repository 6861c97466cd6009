//! The scatter: fills the tiles of a set that the GPU writes with what grows there.
//!
//! A tile is a block of 1,024 instances, one candidate per cell. Which tiles there are, and where,
//! is up to the caller, who fills a tile once and again if its layer or a map changes.

pub use crate::cull::layout::{SCATTER_TURNS, ScatterLayer, ScatterTile, ScatterTurn};
use crate::cull::{
    CullError, CullingTier, Gpu,
    gpu::{
        binding::{Access, Bind},
        guard::guarded,
        kernel::KernelJob,
        limits::dispatch_2d,
        program::Program,
    },
    layout::BLOCK,
    shaders::{SCATTER_RULE, kernels},
    store::WrittenRegion,
};
use crate::instance::PackedQuat;
use glam::Quat;
use wgpu::{
    BindGroup, BindingResource, Buffer, BufferDescriptor, BufferUsages, ComputePass, Device,
    Extent3d, TextureDescriptor, TextureDimension, TextureFormat, TextureUsages, TextureView,
};

/// What the kernel binds, with its numbers in `shaders/scatter`.
#[derive(Clone, Copy)]
enum Resource {
    Layer = 0,
    Tiles = 1,
    Turns = 2,
    Density = 3,
    Height = 4,
    Exclusion = 5,
    Instances = 6,
    Scales = 7,
    Live = 8,
}

const BINDS: [(Resource, Access); 9] = [
    (Resource::Layer, Access::Uniform),
    (Resource::Tiles, Access::Read),
    (Resource::Turns, Access::Read),
    (Resource::Density, Access::Texture),
    (Resource::Height, Access::Texture),
    (Resource::Exclusion, Access::Texture),
    (Resource::Instances, Access::Write),
    (Resource::Scales, Access::Write),
    (Resource::Live, Access::Write),
];

/// The kernel `scatter`.
pub struct ScatterKernel {
    program: Program<Resource>,
    workgroups: u32,
    /// Bound in place of maps that a layer does not have.
    no_map: TextureView,
}

/// The textures of a layer's maps: of fractions, with two dimensions. Those that
/// [`ScatterLayer::flags`] names are there.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScatterTextures<'a> {
    /// The density.
    pub density: Option<&'a TextureView>,
    /// The height.
    pub height: Option<&'a TextureView>,
    /// What is excluded.
    pub exclusion: Option<&'a TextureView>,
}

/// Tiles of one region of a set, to be filled.
#[derive(Clone, Copy, Debug)]
pub struct ScatterFill<'a> {
    /// What grows where.
    pub layer: &'a ScatterLayer,
    /// The directions that candidates can face: [`SCATTER_TURNS`].
    pub turns: &'a [ScatterTurn],
    /// The maps.
    pub maps: ScatterTextures<'a>,
    /// The region. The set has one scale per instance.
    pub region: &'a WrittenRegion,
    /// The number of instances that grow in each tile: [`counts_buffer`].
    pub live: &'a Buffer,
    /// The tiles. Their slots and counts must be within the region and the buffer.
    pub tiles: &'a [ScatterTile],
}

/// A fill that can be recorded.
#[derive(Debug)]
pub struct ScatterPass {
    bind_group: BindGroup,
    tiles: u32,
}

/// A buffer for the counts of `tiles` tiles, which are 0.
///
/// # Errors
/// [`CullError::Gpu`].
pub fn counts_buffer(device: &Device, tiles: u32) -> Result<Buffer, CullError> {
    guarded(device, "counts of tiles", || {
        device.create_buffer(&BufferDescriptor {
            label: Some("gpu_culling scatter counts"),
            size: u64::from(tiles.max(1)) * 4,
            usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        })
    })
}

/// [`SCATTER_TURNS`] directions from 0 to `angle`, in radians.
#[must_use]
pub fn scatter_turns(angle: f32) -> Vec<ScatterTurn> {
    let turn = |index: u32| {
        let half = f64::from(angle) * f64::from(index) / f64::from(2 * SCATTER_TURNS);
        let (half_sin, half_cos) = (half.sin() as f32, half.cos() as f32);
        let rotation = PackedQuat::encode(Quat::from_xyzw(0.0, half_sin, 0.0, half_cos));
        ScatterTurn {
            half_sin,
            half_cos,
            rotation: rotation.to_bits(),
        }
    };
    (0..SCATTER_TURNS).map(turn).collect()
}

impl ScatterKernel {
    /// Compiles the kernel, with bounds checks if `checks`. A `rule` is WGSL with the function of
    /// [`SCATTER_RULE`]; with one, the kernel always has bounds checks.
    ///
    /// # Errors
    /// [`CullError::Pipeline`], also if the rule is not valid; [`CullError::Gpu`].
    pub fn new(device: &Device, rule: Option<&str>, checks: bool) -> Result<Self, CullError> {
        let source = kernels::SCATTER.on(CullingTier::Workgroup);
        let job = KernelJob {
            tier: CullingTier::Workgroup,
            label: "scatter",
            source: match rule {
                Some(rule) => source.replace(SCATTER_RULE, rule),
                None => source.to_owned(),
            },
            entry: "scatter",
            checks: checks || rule.is_some(),
        };
        let binds = BINDS.into_iter();
        let binds = binds.map(|(resource, access)| Bind::at(resource as u32, resource, access));
        let program = Program::build(device, &job, binds)?;
        let no_map = guarded(device, "scatter", || {
            let texture = device.create_texture(&TextureDescriptor {
                label: Some("gpu_culling no map"),
                size: Extent3d::default(),
                mip_level_count: 1,
                sample_count: 1,
                dimension: TextureDimension::D2,
                format: TextureFormat::R8Unorm,
                usage: TextureUsages::TEXTURE_BINDING,
                view_formats: &[],
            });
            texture.create_view(&Default::default())
        })?;
        Ok(Self {
            program,
            workgroups: device.limits().max_compute_workgroups_per_dimension,
            no_map,
        })
    }

    /// Uploads what a fill needs. `None` if the region has no scales, or there are no tiles.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; nothing can then be recorded.
    pub fn prepare(
        &self,
        gpu: Gpu<'_>,
        fill: ScatterFill<'_>,
    ) -> Result<Option<ScatterPass>, CullError> {
        let Some(scales) = fill.region.scales_binding() else {
            return Ok(None);
        };
        if fill.tiles.is_empty() {
            return Ok(None);
        }
        let slots = fill.region.capacity / BLOCK;
        let counts = (fill.live.size() / 4).min(u64::from(u32::MAX)) as u32;
        let is_inside = |tile: &ScatterTile| tile.slot < slots && tile.live < counts;
        if fill.turns.len() != SCATTER_TURNS as usize || !fill.tiles.iter().all(is_inside) {
            return Err(CullError::Gpu {
                what: "scatter",
                message: format!(
                    "a fill needs {SCATTER_TURNS} turns, slots below {slots} and counts below {counts}"
                ),
            });
        }
        let count = fill.tiles.len() as u32;
        let tiles = [bytemuck::bytes_of(&count), bytemuck::cast_slice(fill.tiles)].concat();
        let storage = BufferUsages::STORAGE;
        let bind_group = guarded(gpu.device, "scatter", || {
            let made = |label, usage, bytes: &[u8]| {
                let buffer = gpu.device.create_buffer(&BufferDescriptor {
                    label: Some(label),
                    size: bytes.len() as u64,
                    usage: usage | BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                });
                gpu.queue.write_buffer(&buffer, 0, bytes);
                buffer
            };
            let layer = bytemuck::bytes_of(fill.layer);
            let layer = made("gpu_culling scatter layer", BufferUsages::UNIFORM, layer);
            let tiles = made("gpu_culling scatter tiles", storage, &tiles);
            let turns = bytemuck::cast_slice(fill.turns);
            let turns = made("gpu_culling scatter turns", storage, turns);
            self.program.bind(gpu.device, |resource| match resource {
                Resource::Layer => layer.as_entire_binding(),
                Resource::Tiles => tiles.as_entire_binding(),
                Resource::Turns => turns.as_entire_binding(),
                Resource::Density => self.map(fill.maps.density),
                Resource::Height => self.map(fill.maps.height),
                Resource::Exclusion => self.map(fill.maps.exclusion),
                Resource::Instances => fill.region.instances_binding(),
                Resource::Scales => scales.clone(),
                Resource::Live => fill.live.as_entire_binding(),
            })
        })?;
        Ok(Some(ScatterPass {
            bind_group,
            tiles: count,
        }))
    }

    fn map<'a>(&'a self, map: Option<&'a TextureView>) -> BindingResource<'a> {
        BindingResource::TextureView(map.unwrap_or(&self.no_map))
    }

    /// Records a fill: one dispatch.
    pub fn record(&self, pass: &mut ComputePass<'_>, fill: &ScatterPass) {
        pass.set_pipeline(self.program.pipeline());
        pass.set_bind_group(0, &fill.bind_group, &[]);
        let (x, y) = dispatch_2d(fill.tiles, self.workgroups);
        pass.dispatch_workgroups(x, y, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::f32::consts::TAU;

    #[test]
    fn turns_go_once_around() {
        let turns = scatter_turns(TAU);
        assert_eq!(turns.len(), SCATTER_TURNS as usize);
        assert_eq!(turns[0].rotation, PackedQuat::IDENTITY.to_bits());
        let quarter = PackedQuat::from_bits(turns[64].rotation).decode();
        assert!(
            quarter.angle_between(Quat::from_rotation_y(TAU / 4.0)) < PackedQuat::MAX_ERROR_RADIANS
        );
        // Without a turn, all face the same way.
        let still = scatter_turns(0.0);
        assert!(still.iter().all(|turn| *turn == still[0]));
    }
}
