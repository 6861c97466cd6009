//! CPU time of the plugin's systems, per stage of the frame.

use bevy::{platform::time::Instant, prelude::*};
use core::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use std::sync::Arc;

/// A stage of the plugin's CPU work, in the order of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CpuStage {
    /// Main world: meshes of meshlets, bounds of changed sets, frozen frusta, reports that have
    /// arrived.
    Main,
    /// `ExtractSchedule`: entities with sets are collected, changed instances are uploaded.
    Extract,
    /// `Render`: materials get our vertex stage and draw functions, so that Bevy queues the sets.
    Materials,
    /// `Render`: views and sets become the frame's tables and bind groups.
    Prepare,
    /// `RenderGraph`: the compute passes are recorded.
    Record,
    /// Bevy's passes: our draw functions record indirect draws.
    Draw,
    /// After the submit: counters are asked for and taken.
    Finish,
}

impl CpuStage {
    /// All stages, in order.
    pub const ALL: [Self; 7] = [
        Self::Main,
        Self::Extract,
        Self::Materials,
        Self::Prepare,
        Self::Record,
        Self::Draw,
        Self::Finish,
    ];

    /// Name in diagnostics and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Extract => "extract",
            Self::Materials => "materials",
            Self::Prepare => "prepare",
            Self::Record => "record",
            Self::Draw => "draw",
            Self::Finish => "finish",
        }
    }
}

/// CPU time of the plugin's systems in one frame, between their first and last line. Bevy's
/// scheduling around them is not included.
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Clone, Debug, Default, PartialEq)]
pub struct CpuTimes([Duration; CpuStage::ALL.len()]);

impl CpuTimes {
    /// Time of a stage.
    #[must_use]
    pub fn of(&self, stage: CpuStage) -> Duration {
        self.0[stage as usize]
    }

    /// Time of all stages.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.0.iter().sum()
    }
}

/// Sums of nanoseconds per stage, shared by both worlds.
#[derive(Resource, Clone, Default)]
pub(super) struct CpuClock(Arc<[AtomicU64; CpuStage::ALL.len()]>);

impl CpuClock {
    /// Starts a timer that adds to a stage when it is dropped.
    pub fn start(&self, stage: CpuStage) -> StageTimer<'_> {
        StageTimer {
            total: &self.0[stage as usize],
            since: Instant::now(),
            #[cfg(feature = "testing")]
            outer: RUNNING.replace(Some(stage)),
        }
    }

    /// The times since the last call.
    pub fn take(&self) -> CpuTimes {
        let times = CpuStage::ALL.map(|stage| self.0[stage as usize].swap(0, Ordering::Relaxed));
        CpuTimes(times.map(Duration::from_nanos))
    }
}

/// Measures from its creation to its drop.
#[must_use]
pub(super) struct StageTimer<'a> {
    total: &'a AtomicU64,
    since: Instant,
    /// The stage that runs again after this one.
    #[cfg(feature = "testing")]
    outer: Option<CpuStage>,
}

#[cfg(feature = "testing")]
thread_local! {
    /// The stage of the plugin's system that runs on this thread.
    static RUNNING: core::cell::Cell<Option<CpuStage>> = const { core::cell::Cell::new(None) };
}

/// The stage of the plugin's system that runs on this thread; `None` if none does.
#[cfg(feature = "testing")]
#[must_use]
pub fn running_stage() -> Option<CpuStage> {
    RUNNING.get()
}

impl Drop for StageTimer<'_> {
    fn drop(&mut self) {
        let nanoseconds = self.since.elapsed().as_nanos() as u64;
        self.total.fetch_add(nanoseconds, Ordering::Relaxed);
        #[cfg(feature = "testing")]
        RUNNING.set(self.outer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_in_order_and_counted_apart() {
        for (index, stage) in CpuStage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, index);
        }
        let clock = CpuClock::default();
        for _ in 0..2 {
            let _timer = clock.start(CpuStage::Prepare);
            std::thread::sleep(Duration::from_millis(2));
        }
        let times = clock.take();
        assert!(times.of(CpuStage::Prepare) >= Duration::from_millis(4));
        assert_eq!(times.total(), times.of(CpuStage::Prepare));
        assert_eq!(clock.take(), CpuTimes::default());
    }
}
