//! The depth pyramid of a view, made on the GPU.

use crate::cull::{
    CullError, CullingTier, Gpu,
    gpu::{
        binding::{Access, Bind},
        buffer::{Growable, Table},
        guard::guarded,
        kernel::KernelJob,
        limits::binding_limit,
        program::Program,
        version::Version,
    },
    layout::{DepthPyramid, PYRAMID_TILE},
    run::inputs::PyramidBuffers,
    shaders::{Composed, kernels},
};
use glam::UVec2;
use wgpu::{BindGroup, BindingResource, Buffer, BufferUsages, ComputePass, Device, TextureView};

/// What the kernels bind, with its numbers in `shaders/occlusion/pyramid.wesl`.
#[derive(Clone, Copy)]
enum Resource {
    Depths = 17,
    Texels = 18,
    Shape = 19,
}

impl Resource {
    fn bind(self, access: Access) -> Bind<Self> {
        Bind::at(self as u32, self, access)
    }
}

/// Number of levels that one pass adds.
const PASS_LEVELS: u32 = PYRAMID_TILE.ilog2();

/// The kernels of depth pyramids, compiled.
pub struct PyramidBuilder {
    from_depth: Program<Resource>,
    /// Not every adapter reads multisampled depth in a kernel.
    from_samples: Result<Program<Resource>, CullError>,
    /// The second and the third pass.
    others: [Program<Resource>; 2],
}

impl PyramidBuilder {
    /// Compiles the kernels; `checks` keeps their bounds checks.
    ///
    /// # Errors
    /// [`CullError::Pipeline`].
    pub fn new(device: &Device, checks: bool) -> Result<Self, CullError> {
        Self::build(device, checks, &|_, source| source)
    }

    /// Compiles kernels that `edit` changes (label, WGSL), with bounds checks: a test breaks them.
    ///
    /// # Errors
    /// [`CullError::Pipeline`].
    #[cfg(feature = "testing")]
    pub fn with_sources(
        device: &Device,
        edit: impl Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        Self::build(device, true, &edit)
    }

    fn build(
        device: &Device,
        checks: bool,
        edit: &dyn Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        let program = |label, kernel: &Composed, source: Option<Access>| {
            let tier = CullingTier::Workgroup;
            let job = KernelJob {
                tier,
                label,
                source: edit(label, kernel.on(tier).to_owned()),
                entry: "reduce",
                checks,
            };
            let source = source.map(|access| Resource::Depths.bind(access));
            let others = [
                Resource::Texels.bind(Access::Write),
                Resource::Shape.bind(Access::Uniform),
            ];
            Program::build(device, &job, source.into_iter().chain(others))
        };
        let depth = Some(Access::Depth);
        let samples = Some(Access::MultisampledDepth);
        let from_samples = program(
            "pyramid_multisampled",
            &kernels::PYRAMID_MULTISAMPLED,
            samples,
        );
        if let Err(error @ CullError::Gpu { .. }) = from_samples {
            // There may be memory later.
            return Err(error);
        }
        Ok(Self {
            from_depth: program("pyramid", &kernels::PYRAMID, depth)?,
            from_samples,
            others: [
                program("pyramid_second", &kernels::PYRAMID_SECOND, None)?,
                program("pyramid_third", &kernels::PYRAMID_THIRD, None)?,
            ],
        })
    }

    /// The program of the pass that reads the depth texture.
    fn first(&self, samples: u32) -> Result<&Program<Resource>, CullError> {
        match (samples, &self.from_samples) {
            (1, _) => Ok(&self.from_depth),
            (_, Ok(program)) => Ok(program),
            (_, Err(error)) => Err(error.clone()),
        }
    }
}

/// The depth pyramid of one view.
pub struct Pyramid {
    shape: DepthPyramid,
    texels: Growable,
    /// Changes when the buffer of texels is replaced.
    version: Version,
    uniform: Table,
    bound: Option<BoundDepth>,
}

/// What is bound, while it stays.
struct BoundDepth {
    depth: TextureView,
    /// Of each pass.
    groups: Vec<BindGroup>,
}

impl Pyramid {
    /// A pyramid without levels, which hides nothing.
    ///
    /// # Errors
    /// [`CullError::Gpu`].
    pub fn new(gpu: Gpu<'_>) -> Result<Self, CullError> {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        let (texels, mut uniform) = guarded(gpu.device, "the depth pyramid", || {
            let texels = Growable::new(gpu.device, "gpu_culling depth pyramid", usage);
            let label = "gpu_culling shape of the depth pyramid";
            (texels, Table::new(gpu.device, label, BufferUsages::UNIFORM))
        })?;
        let shape = DepthPyramid::default();
        uniform.write(gpu, &[shape])?;
        Ok(Self {
            shape,
            texels,
            version: Version::new(),
            uniform,
            bound: None,
        })
    }

    /// Prepares the pyramid of the viewport from `first` of `size` pixels of a depth texture with
    /// reverse z: a view of one layer, from its largest mip level on, with any number of samples,
    /// which can be bound. What did not change since the last call stays.
    ///
    /// # Errors
    /// [`CullError::ViewportOutside`] if the viewport is empty or not within the texture,
    /// [`CullError::PyramidTooLarge`], [`CullError::Pipeline`] if the adapter reads no samples of
    /// depth, [`CullError::Gpu`]. The pyramid then has no levels, and nothing is hidden.
    pub fn prepare(
        &mut self,
        gpu: Gpu<'_>,
        builder: &PyramidBuilder,
        depth: &TextureView,
        first: UVec2,
        size: UVec2,
    ) -> Result<(), CullError> {
        let result = self.try_prepare(gpu, builder, depth, first, size);
        if result.is_err() {
            self.bound = None;
            self.shape = DepthPyramid::default();
            self.uniform.write(gpu, &[self.shape])?;
        }
        result
    }

    fn try_prepare(
        &mut self,
        gpu: Gpu<'_>,
        builder: &PyramidBuilder,
        depth: &TextureView,
        first: UVec2,
        size: UVec2,
    ) -> Result<(), CullError> {
        let texture = depth.texture();
        let shape = DepthPyramid::new(first, size, texture.sample_count());
        let known = self.bound.as_mut().filter(|_| self.shape == shape);
        if known.as_ref().is_some_and(|bound| bound.depth == *depth) {
            return Ok(());
        }
        let whole = UVec2::new(texture.width(), texture.height());
        let is_within = first.cmple(whole).all() && size.cmple(whole - first.min(whole)).all();
        if !is_within || shape.level_count == 0 {
            return Err(CullError::ViewportOutside {
                first: first.to_array(),
                size: size.to_array(),
                texture: whole.to_array(),
            });
        }
        let program = builder.first(shape.samples)?;
        if let Some(bound) = known {
            // Bevy makes a new view of each cascade in each frame. Only the first pass reads it.
            bound.groups[0] = guarded(gpu.device, "the depth pyramid", || {
                bind(gpu.device, program, depth, &self.texels, &self.uniform)
            })?;
            bound.depth = depth.clone();
            return Ok(());
        }
        let bytes = shape.texel_count().saturating_mul(size_of::<f32>() as u64);
        let limit = binding_limit(&gpu.device.limits());
        if bytes > limit {
            return Err(CullError::PyramidTooLarge {
                size: size.to_array(),
                bytes,
                limit,
            });
        }
        if self.texels.reserve(gpu.device, bytes)? {
            self.version.bump();
        }
        self.uniform.write(gpu, &[shape])?;
        self.shape = shape;
        let programs = [program].into_iter().chain(&builder.others);
        let groups = guarded(gpu.device, "the depth pyramid", || {
            programs
                .map(|program| bind(gpu.device, program, depth, &self.texels, &self.uniform))
                .collect()
        })?;
        self.bound = Some(BoundDepth {
            depth: depth.clone(),
            groups,
        });
        Ok(())
    }

    /// Releases the depth texture. Until the next [`Self::prepare`], no pass is recorded.
    pub fn forget_depth(&mut self) {
        self.bound = None;
    }

    /// Records the passes, after the depth has been drawn. Without levels, there are none.
    pub fn record(&self, builder: &PyramidBuilder, pass: &mut ComputePass<'_>) {
        let (Some(bound), Ok(first)) = (&self.bound, builder.first(self.shape.samples)) else {
            return;
        };
        let programs = [first].into_iter().chain(&builder.others);
        // The pass of number k reads level `k * PASS_LEVELS` and makes the next ones.
        let sources = (0u32..).map(|pass| pass * PASS_LEVELS);
        for ((program, group), source) in programs.zip(&bound.groups).zip(sources) {
            // The last level has one texel, of which nothing more is made.
            if source > 0 && source + 1 >= self.shape.level_count {
                break;
            }
            let level = &self.shape.levels[source as usize];
            pass.set_pipeline(program.pipeline());
            pass.set_bind_group(0, group, &[]);
            let (x, y) = (level.width, level.height);
            pass.dispatch_workgroups(x.div_ceil(PYRAMID_TILE), y.div_ceil(PYRAMID_TILE), 1);
        }
    }

    /// The texels, level after level: `array<f32>` at binding 18 of
    /// `shaders/occlusion/footprint.wesl`. The buffer is another one after the pyramid has grown.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.texels.buffer
    }

    /// The shape as a uniform: `DepthPyramid` (`shaders/shared/layout.wesl`) at binding 19.
    #[must_use]
    pub fn uniform(&self) -> &Buffer {
        &self.uniform.gpu.buffer
    }

    /// What the late lists of a view bind.
    pub(super) fn buffers(&self) -> PyramidBuffers<'_> {
        PyramidBuffers {
            depths: self.buffer(),
            shape: self.uniform(),
            version: self.version,
        }
    }

    /// The shape.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn shape(&self) -> &DepthPyramid {
        &self.shape
    }

    /// Label and size in bytes of each buffer.
    pub fn sizes(&self) -> [(&'static str, u64); 2] {
        [&self.texels, &self.uniform.gpu].map(|one| (one.label, one.buffer.size()))
    }
}

/// What the program of a pass binds.
fn bind(
    device: &Device,
    program: &Program<Resource>,
    depth: &TextureView,
    texels: &Growable,
    shape: &Table,
) -> BindGroup {
    program.bind(device, |resource| match resource {
        Resource::Depths => BindingResource::TextureView(depth),
        Resource::Texels => texels.buffer.as_entire_binding(),
        Resource::Shape => shape.gpu.buffer.as_entire_binding(),
    })
}
