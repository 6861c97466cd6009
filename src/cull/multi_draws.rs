//! Multi-draws: the commands of many rows next to each other, so that one call draws them.
//!
//! A batch has its commands chunk after chunk, and of each chunk view after view. The draws of one
//! view lie far apart. This stage copies them, in the order that the caller wants. Commands of late
//! lists come later: it copies them view by view.

use crate::cull::{
    BatchVersion, CullError, Culler, DrawPart, DrawSource, Follower, Gpu, IndirectDraws,
    PassRecorder,
    gpu::{
        binding::{Access, Bind},
        buffer::{Growable, Table},
        guard::guarded,
        kernel::KernelJob,
        limits::dispatch_2d,
        program::Program,
        version::Version,
    },
    layout::DrawCommand,
    shaders::kernels,
};
use core::{num::NonZeroU64, ops::Range};
use wgpu::{
    BindGroup, BindingResource, Buffer, BufferBinding, BufferUsages, CommandEncoder, Device,
};

/// The commands and the draws of a batch begin at a multiple of this number, which keeps bindings
/// aligned.
const ALIGNMENT: usize = 64;

/// The multi-draws of a batch that are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedDraws {
    /// Index of the batch in the frame.
    pub batch: usize,
    /// The multi-draws. Each has the indices of its commands in the batch
    /// ([`Culler::command_of`]), in order.
    pub draws: Vec<Vec<u32>>,
}

/// A buffer that the kernel binds; its number in the shader.
#[derive(Clone, Copy)]
enum Resource {
    Wanted = 0,
    Args = 1,
    Gathered = 2,
    MultiDraws = 3,
    Counts = 4,
}

/// The multi-draws of a frame.
pub struct MultiDraws {
    program: Program<Resource>,
    /// The wanted commands of all batches.
    wanted: Table,
    gathered: Growable,
    /// First command and number of commands of each multi-draw, counted in its batch.
    multi_draws: Table,
    /// Number of commands of each multi-draw that draw something.
    counts: Growable,
    batches: Vec<Batch>,
    /// Largest number of workgroups in one dimension of a dispatch.
    max_width: u32,
    /// Changes with the buffers and with what is wanted.
    version: Version,
}

/// The commands of a batch.
struct Batch {
    /// Index of the batch in the frame.
    index: usize,
    /// Place of its first command in the buffers.
    first: usize,
    len: usize,
    /// Place of its first multi-draw in the buffers.
    first_draw: usize,
    /// First command and number of commands of each multi-draw, counted in the batch.
    draws: Vec<[u32; 2]>,
    bound: Option<(Version, BatchVersion)>,
    bind_group: Option<BindGroup>,
}

impl Batch {
    /// Its commands in a buffer of elements with this size.
    fn commands<'a>(&self, buffer: &'a Buffer, bytes: usize) -> BindingResource<'a> {
        part(buffer, bytes, self.first, self.len)
    }

    /// Its multi-draws in a buffer of elements with this size.
    fn multi_draws<'a>(&self, buffer: &'a Buffer, bytes: usize) -> BindingResource<'a> {
        part(buffer, bytes, self.first_draw, self.draws.len())
    }
}

/// Elements of a buffer. The first one's index is a multiple of [`ALIGNMENT`].
fn part(buffer: &Buffer, bytes: usize, first: usize, len: usize) -> BindingResource<'_> {
    BindingResource::Buffer(BufferBinding {
        buffer,
        offset: (first * bytes) as u64,
        size: NonZeroU64::new((len.next_multiple_of(ALIGNMENT) * bytes) as u64),
    })
}

impl MultiDraws {
    /// Compiles the kernel.
    ///
    /// # Errors
    /// [`CullError`]: the device refuses the kernel or a buffer.
    pub fn new(device: &Device) -> Result<Self, CullError> {
        let bind = |resource: Resource, access| Bind::at(resource as u32, resource, access);
        let job = KernelJob::on_all_tiers("gather_draws", &kernels::GATHER_DRAWS, true);
        let binds = [
            bind(Resource::Wanted, Access::Read),
            bind(Resource::Args, Access::Read),
            bind(Resource::Gathered, Access::Write),
            bind(Resource::MultiDraws, Access::Read),
            bind(Resource::Counts, Access::Write),
        ];
        let program = Program::build(device, &job, binds.into_iter())?;
        guarded(device, "buffers of multi-draws", || {
            let commands = BufferUsages::STORAGE | BufferUsages::INDIRECT | BufferUsages::COPY_SRC;
            Self {
                program,
                wanted: Table::new(device, "gpu_culling wanted draws", BufferUsages::STORAGE),
                gathered: Growable::new(device, "gpu_culling multi-draws", commands),
                multi_draws: Table::new(
                    device,
                    "gpu_culling multi-draw ranges",
                    BufferUsages::STORAGE,
                ),
                counts: Growable::new(device, "gpu_culling multi-draw counts", commands),
                batches: Vec::new(),
                max_width: device.limits().max_compute_workgroups_per_dimension,
                version: Version::new(),
            }
        })
    }

    /// Takes the commands that are wanted of a frame, and of those after it with the same
    /// [plan](Culler::plan_version). Returns the number of bytes uploaded.
    ///
    /// # Errors
    /// [`CullError::Gpu`]: the device refuses a buffer. There are then no multi-draws.
    pub fn plan(&mut self, gpu: Gpu<'_>, wanted: &[WantedDraws]) -> Result<u64, CullError> {
        self.batches.clear();
        self.version.bump();
        let (mut commands, mut multi_draws) = (Vec::new(), Vec::new());
        let mut batches = Vec::with_capacity(wanted.len());
        for wanted in wanted.iter().filter(|wanted| !wanted.draws.is_empty()) {
            let (first, first_draw) = (commands.len(), multi_draws.len());
            let mut draws = Vec::with_capacity(wanted.draws.len());
            for draw in &wanted.draws {
                draws.push([(commands.len() - first) as u32, draw.len() as u32]);
                commands.extend_from_slice(draw);
            }
            multi_draws.extend_from_slice(&draws);
            batches.push(Batch {
                index: wanted.batch,
                first,
                len: commands.len() - first,
                first_draw,
                draws,
                bound: None,
                bind_group: None,
            });
            commands.resize(commands.len().next_multiple_of(ALIGNMENT), 0);
            multi_draws.resize(multi_draws.len().next_multiple_of(ALIGNMENT), [0; 2]);
        }
        if commands.is_empty() {
            return Ok(0);
        }
        let bytes = self.wanted.write(gpu, &commands)?.bytes
            + self.multi_draws.write(gpu, &multi_draws)?.bytes;
        let size = (commands.len() * size_of::<DrawCommand>()) as u64;
        self.gathered.reserve(gpu.device, size)?;
        self.counts
            .reserve(gpu.device, (multi_draws.len() * size_of::<u32>()) as u64)?;
        self.batches = batches;
        Ok(bytes)
    }

    /// Binds what the kernel copies. Call it in each frame, after [`Culler::prepare`].
    ///
    /// # Errors
    /// [`CullError::Gpu`]: the device refuses a bind group. The draws of its batch are then wrong.
    pub fn prepare(&mut self, device: &Device, culler: &Culler) -> Result<(), CullError> {
        for batch in &mut self.batches {
            let version = culler.batch_version(batch.index);
            let bound = version.map(|version| (self.version, version));
            if batch.bound == bound && batch.bind_group.is_some() {
                continue;
            }
            (batch.bound, batch.bind_group) = (None, None);
            let first = DrawPart {
                batch: batch.index,
                ..DrawPart::default()
            };
            let Some(DrawSource::Indirect(IndirectDraws { buffer: args, .. })) =
                culler.draw_source(&first)
            else {
                continue;
            };
            let bind_group = guarded(device, "bind groups of multi-draws", || {
                self.program.bind(device, |resource| match resource {
                    Resource::Wanted => batch.commands(&self.wanted.gpu.buffer, size_of::<u32>()),
                    Resource::Args => args.as_entire_binding(),
                    Resource::Gathered => {
                        batch.commands(&self.gathered.buffer, size_of::<DrawCommand>())
                    }
                    Resource::MultiDraws => {
                        batch.multi_draws(&self.multi_draws.gpu.buffer, size_of::<[u32; 2]>())
                    }
                    Resource::Counts => batch.multi_draws(&self.counts.buffer, size_of::<u32>()),
                })
            })?;
            (batch.bound, batch.bind_group) = (bound, Some(bind_group));
        }
        Ok(())
    }

    /// A multi-draw of a batch, by its index in [`WantedDraws::draws`]; `None` if there is none, or
    /// if it has no commands.
    #[must_use]
    pub fn source(&self, batch: usize, draw: usize) -> Option<IndirectDraws<'_>> {
        let batch = self.batches.iter().find(|known| known.index == batch)?;
        batch.bind_group.as_ref()?;
        let [first, max] = *batch.draws.get(draw)?;
        let first = batch.first as u64 + u64::from(first);
        let count = (batch.first_draw + draw) * size_of::<u32>();
        (max > 0).then(|| IndirectDraws {
            buffer: &self.gathered.buffer,
            offset: first * size_of::<DrawCommand>() as u64,
            count: (&self.counts.buffer, count as u64),
            max,
        })
    }

    /// Gathers the commands of a view's late lists. Call it after [`Culler::record_late`].
    pub fn record_late(
        &self,
        culler: &Culler,
        encoder: &mut CommandEncoder,
        view: u32,
        passes: &mut dyn PassRecorder,
    ) {
        self.gather(culler.late_batches(view), encoder, passes);
    }

    /// Gathers the commands of some batches of the frame, in a pass.
    fn gather(
        &self,
        batches: Range<usize>,
        encoder: &mut CommandEncoder,
        passes: &mut dyn PassRecorder,
    ) {
        let gathered = self.batches.iter().filter_map(|batch| {
            let bind_group = batch.bind_group.as_ref()?;
            let is_asked = batches.contains(&batch.index);
            is_asked.then_some((batch.draws.len() as u32, bind_group))
        });
        let mut gathered = gathered.peekable();
        if gathered.peek().is_none() {
            return;
        }
        passes.pass(encoder, "gpu_culling/gather_draws", &mut |pass| {
            pass.set_pipeline(self.program.pipeline());
            for (draws, bind_group) in &mut gathered {
                pass.set_bind_group(0, bind_group, &[]);
                let (x, y) = dispatch_2d(draws, self.max_width);
                pass.dispatch_workgroups(x, y, 1);
            }
        });
    }

    /// Bytes that it holds on the GPU.
    #[must_use]
    pub fn gpu_bytes(&self) -> u64 {
        let tables = [
            &self.wanted.gpu,
            &self.multi_draws.gpu,
            &self.counts,
            &self.gathered,
        ];
        tables.iter().map(|table| table.buffer.size()).sum()
    }
}

impl Follower for &MultiDraws {
    fn has_work(&self) -> bool {
        self.batches.iter().any(|batch| batch.bind_group.is_some())
    }

    fn record(
        &mut self,
        culler: &Culler,
        _: &Device,
        encoder: &mut CommandEncoder,
        passes: &mut dyn PassRecorder,
    ) {
        self.gather(0..culler.early_batch_count(), encoder, passes);
    }
}
