//! Builds from meshes in the background: entities with the same mesh and settings share one.

use crate::meshlet::MeshletError;
use bevy::{
    platform::collections::{HashMap, HashSet},
    prelude::*,
    tasks::{AsyncComputeTaskPool, Task, futures::check_ready},
};
use core::{
    hash::Hash,
    sync::atomic::{AtomicU32, Ordering},
};
use std::sync::Arc;

/// What a build is made from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BuildKey<Settings> {
    pub mesh: AssetId<Mesh>,
    pub settings: Settings,
}

/// The running builds and the results of those that have ended. A task makes `Made`; entities share
/// a `Product` of it.
pub(super) struct Builds<Settings, Made, Product> {
    running: Vec<RunningBuild<Settings, Made>>,
    built: HashMap<BuildKey<Settings>, Product>,
    /// The builds that failed since the last [`Self::poll`].
    failed: HashMap<BuildKey<Settings>, MeshletError>,
}

/// A build that has not ended.
struct RunningBuild<Settings, Made> {
    key: BuildKey<Settings>,
    task: Task<Result<Made, MeshletError>>,
    /// The share that is done, from 0 to 1, as the bits of an `f32`.
    done: Arc<AtomicU32>,
}

impl<Settings, Made, Product> Default for Builds<Settings, Made, Product> {
    fn default() -> Self {
        Self {
            running: Vec::new(),
            built: HashMap::default(),
            failed: HashMap::default(),
        }
    }
}

impl<Settings, Made, Product> Builds<Settings, Made, Product>
where
    Settings: Copy + Eq + Hash,
    Made: Send + 'static,
    Product: Clone,
{
    /// Number of running builds.
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// The share of a mesh's build that is done, from 0 to 1; `None` if none is running.
    pub fn progress(&self, mesh: AssetId<Mesh>) -> Option<f32> {
        let running = self
            .running
            .iter()
            .find(|running| running.key.mesh == mesh)?;
        Some(f32::from_bits(running.done.load(Ordering::Relaxed)))
    }

    /// Forgets what was built from meshes that have changed, or is being built from them.
    pub fn forget_changed<'a>(&mut self, events: impl Iterator<Item = &'a AssetEvent<Mesh>>) {
        let changed: HashSet<_> = events
            .filter_map(|event| match event {
                AssetEvent::Modified { id } | AssetEvent::Removed { id } => Some(*id),
                _ => None,
            })
            .collect();
        if !changed.is_empty() {
            self.built.retain(|key, _| !changed.contains(&key.mesh));
            self.running
                .retain(|running| !changed.contains(&running.key.mesh));
        }
    }

    /// Takes the results of the builds that have ended since the last call.
    pub fn poll(&mut self, mut share: impl FnMut(Made) -> Product) {
        self.failed.clear();
        let (built, failed) = (&mut self.built, &mut self.failed);
        self.running
            .retain_mut(|running| match check_ready(&mut running.task) {
                Some(Ok(made)) => {
                    built.insert(running.key, share(made));
                    false
                }
                Some(Err(error)) => {
                    failed.insert(running.key, error);
                    false
                }
                None => true,
            });
    }

    /// The result of a build; `None` if it has not ended.
    pub fn result(&self, key: &BuildKey<Settings>) -> Option<Result<Product, MeshletError>> {
        let built = self.built.get(key).cloned().map(Ok);
        built.or_else(|| self.failed.get(key).cloned().map(Err))
    }

    /// Whether a build is running.
    pub fn is_running(&self, key: &BuildKey<Settings>) -> bool {
        self.running.iter().any(|running| running.key == *key)
    }

    /// Starts a build. It tells the function that it is given the share that is done.
    pub fn start<Build>(&mut self, key: BuildKey<Settings>, build: Build)
    where
        Build: FnOnce(&mut dyn FnMut(f32)) -> Result<Made, MeshletError> + Send + 'static,
    {
        let done = Arc::new(AtomicU32::new(0));
        let report = done.clone();
        let task = AsyncComputeTaskPool::get().spawn(async move {
            build(&mut |share| report.store(share.to_bits(), Ordering::Relaxed))
        });
        self.running.push(RunningBuild { key, task, done });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::tasks::TaskPool;

    /// Waits until no build is running.
    fn finish(builds: &mut Builds<u32, u32, u32>) {
        for _ in 0..2000 {
            builds.poll(|made| made * 10);
            if builds.len() == 0 {
                return;
            }
            std::thread::sleep(core::time::Duration::from_millis(1));
        }
        panic!("a build does not end");
    }

    fn key(settings: u32) -> BuildKey<u32> {
        let mesh = AssetId::Uuid {
            uuid: bevy::asset::uuid::Uuid::from_u128(7),
        };
        BuildKey { mesh, settings }
    }

    #[test]
    fn what_was_built_is_kept_and_a_failure_is_told_once() {
        AsyncComputeTaskPool::get_or_init(TaskPool::new);
        let mut builds = Builds::default();
        builds.start(key(1), |progress| {
            progress(0.5);
            Ok(4)
        });
        builds.start(key(2), |_| Err(MeshletError::Extracted));
        assert!(builds.is_running(&key(1)) && builds.progress(key(1).mesh).is_some());
        while builds.is_running(&key(2)) {
            builds.poll(|made| made * 10);
        }
        assert_eq!(builds.result(&key(2)), Some(Err(MeshletError::Extracted)));
        finish(&mut builds);
        builds.poll(|made| made * 10);
        assert_eq!(builds.result(&key(1)), Some(Ok(40)));
        assert_eq!(builds.result(&key(2)), None);
        assert_eq!(builds.progress(key(1).mesh), None);
    }

    #[test]
    fn a_mesh_that_changes_is_built_again() {
        AsyncComputeTaskPool::get_or_init(TaskPool::new);
        let mut builds = Builds::default();
        let id = key(1).mesh;
        builds.start(key(1), |_| Ok(1));
        finish(&mut builds);
        let forget = |builds: &mut Builds<u32, u32, u32>, event| {
            builds.forget_changed([event].iter());
            (builds.result(&key(1)).is_some(), builds.len())
        };
        assert_eq!(forget(&mut builds, AssetEvent::Added { id }), (true, 0));
        assert_eq!(forget(&mut builds, AssetEvent::Modified { id }), (false, 0));
        // What a running build would make is as old.
        builds.start(key(1), |_| Ok(2));
        assert_eq!(forget(&mut builds, AssetEvent::Removed { id }), (false, 0));
    }
}
