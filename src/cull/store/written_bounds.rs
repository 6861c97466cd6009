//! The bounds of the blocks of sets that the GPU writes: of all of them in each frame, or of what
//! the frame says that it writes.

use super::{
    InstanceStore,
    bounds::{job_of, merged},
    region::{Run, runs},
    residents::Set,
    written_room::BoundsBindings,
};
use crate::cull::{gpu::Gpu, layout::BoundJob, refusal::Missing};
use core::ops::Range;
use std::collections::BTreeMap;
use wgpu::{BindGroup, CommandEncoder};

impl InstanceStore {
    /// Makes the bind groups of written sets whose regions or buffers changed.
    fn bind_written_bounds(&mut self, gpu: Gpu<'_>) {
        let Some(bounds) = &self.bounds else { return };
        let pages = self.pages.version;
        for (id, written) in &mut self.written {
            let is_read = written.is_classified && written.is_tested && written.noted.is_none();
            let Some(set) = self.sets.get(*id).filter(|_| is_read) else {
                continue;
            };
            let wanted = bound_jobs(set);
            let is_bound = written.bounds.as_ref().is_some_and(|bound| {
                let jobs = bound.jobs.iter().map(|(job, _)| *job);
                bound.pages == pages && jobs.eq(wanted.iter().map(|(_, job)| *job))
            });
            if is_bound {
                continue;
            }
            let bind = |(page, job): (usize, BoundJob)| {
                let page = self.pages.page(page)?;
                let scales = page.scales.as_ref().unwrap_or(&self.no_channel);
                let buffers = [&page.instances, scales, &page.bounds];
                let made = bounds.bind(gpu, buffers, &[job]);
                let group = made
                    .map_err(|error| self.refusals.note(error, Missing::Bounds))
                    .ok()?;
                Some((job, group))
            };
            let jobs = wanted.into_iter().filter_map(bind).collect();
            written.bounds = Some(BoundsBindings { pages, jobs });
        }
    }

    /// Binds what computes the bounds of noted writes: the jobs of each page.
    fn bind_noted_bounds(&mut self, gpu: Gpu<'_>) -> Vec<(Vec<BoundJob>, BindGroup)> {
        let Some(bounds) = &self.bounds else {
            return Vec::new();
        };
        let mut bound = Vec::new();
        for (id, written) in &mut self.written {
            let (Some(noted), Some(set)) = (&mut written.noted, self.sets.get(*id)) else {
                continue;
            };
            if !written.is_classified || !written.is_tested || noted.is_empty() {
                continue;
            }
            let ranges = noted.take();
            let mut pages: BTreeMap<usize, Vec<BoundJob>> = BTreeMap::new();
            for range in &ranges {
                for (page, job) in noted_jobs(set, range) {
                    pages.entry(page).or_default().push(job);
                }
            }
            for (page, jobs) in pages {
                let Some(page) = self.pages.page(page) else {
                    continue;
                };
                let jobs = merged(jobs);
                let scales = page.scales.as_ref().unwrap_or(&self.no_channel);
                let buffers = [&page.instances, scales, &page.bounds];
                match bounds.bind(gpu, buffers, &jobs) {
                    Ok(group) => bound.push((jobs, group)),
                    Err(error) => {
                        // Try again in the next frame.
                        ranges.iter().for_each(|range| noted.add(range.clone()));
                        self.refusals.note(error, Missing::Bounds);
                        break;
                    }
                }
            }
        }
        bound
    }

    /// Records the computation of the bounds of written blocks.
    pub(super) fn record_written_bounds(&mut self, gpu: Gpu<'_>, encoder: &mut CommandEncoder) {
        self.bind_written_bounds(gpu);
        let noted = self.bind_noted_bounds(gpu);
        let Some(bounds) = &self.bounds else { return };
        let written = self.written.values().filter(|written| {
            written.is_classified && written.is_tested && written.noted.is_none()
        });
        let jobs: Vec<_> = written
            .filter_map(|written| written.bounds.as_ref())
            .flat_map(|bound| &bound.jobs)
            .map(|(job, group)| (core::slice::from_ref(job), group))
            .chain(noted.iter().map(|(jobs, group)| (&**jobs, group)))
            .collect();
        if !jobs.is_empty() {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some("gpu_culling bound"),
                timestamp_writes: None,
            });
            for (jobs, group) in &jobs {
                bounds.record(&mut pass, group, jobs);
                self.work.bound_jobs += jobs.len() as u64;
            }
        }
    }
}

/// Page and job of each region of a written set with active instances.
fn bound_jobs(set: &Set) -> Vec<(usize, BoundJob)> {
    runs(&set.regions, 0..set.len as usize)
        .map(|Run { region, part, .. }| {
            let len = part.len() as u32;
            let job = job_of(region, 0..len, len, set.channels.scale);
            (region.page, job)
        })
        .collect()
}

/// Page and job of each region of a written set with active instances of `range`.
fn noted_jobs(set: &Set, range: &Range<u32>) -> Vec<(usize, BoundJob)> {
    let len = set.len as usize;
    let mut jobs = Vec::new();
    let active = runs(&set.regions, 0..len).map(|run| run.part);
    let changed = range.start as usize..(range.end as usize).min(len);
    for Run { region, part, .. } in runs(&set.regions, changed) {
        let mut all = active.clone().filter(|all| all.start <= part.start);
        // The last region that starts before it.
        let Some(all) = all.by_ref().last() else {
            continue;
        };
        let at = |index: usize| (index - all.start) as u32;
        let changed = at(part.start)..at(part.end);
        let used = (all.end - all.start) as u32;
        jobs.push((
            region.page,
            job_of(region, changed, used, set.channels.scale),
        ));
    }
    jobs
}
