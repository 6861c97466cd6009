//! Faults on purpose, for tests: something that the device does not do, or does wrongly.

use core::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the device does not do, or does wrongly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It refuses to create something, as if it were out of memory.
    Refused,
    /// Its driver does not build a kernel.
    NotBuilt,
    /// The kernels of a tier that is tested at the start keep too much.
    CullsWrongly,
    /// It answers with an error that a buffer cannot be mapped.
    MapFailed,
    /// It never answers whether a buffer can be mapped.
    MapUnanswered,
}

struct Injection {
    number: u64,
    fault: Fault,
    /// Calls for anything else are not counted.
    only: Option<&'static str>,
    failing: Range<u64>,
    calls: u64,
    refused: Vec<&'static str>,
}

static INJECTIONS: Mutex<Vec<Injection>> = Mutex::new(Vec::new());
static NUMBER: AtomicU64 = AtomicU64::new(0);

fn injections() -> MutexGuard<'static, Vec<Injection>> {
    INJECTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Faults until it is dropped.
#[derive(Debug)]
#[must_use = "faults end when it is dropped"]
pub struct Faults {
    number: u64,
}

impl Faults {
    /// Has the calls that could have the fault fail, on all threads, by their numbers from now on.
    /// The range `0..0` only counts calls.
    pub fn inject(fault: Fault, failing: Range<u64>) -> Self {
        Self::start(fault, None, failing)
    }

    /// The same for the calls that create what errors call `what`: their numbers count no others.
    pub fn inject_into(what: &'static str, fault: Fault, failing: Range<u64>) -> Self {
        Self::start(fault, Some(what), failing)
    }

    fn start(fault: Fault, only: Option<&'static str>, failing: Range<u64>) -> Self {
        let number = NUMBER.fetch_add(1, Relaxed);
        injections().push(Injection {
            number,
            fault,
            only,
            failing,
            calls: 0,
            refused: Vec::new(),
        });
        Self { number }
    }

    /// Number of calls so far that could have the fault.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.read(|injection| injection.calls)
    }

    /// What the calls with the fault were for.
    #[must_use]
    pub fn refused(&self) -> Vec<&'static str> {
        self.read(|injection| injection.refused.clone())
    }

    fn read<T: Default>(&self, read: impl FnOnce(&Injection) -> T) -> T {
        let all = injections();
        let own = all.iter().find(|other| other.number == self.number);
        own.map(read).unwrap_or_default()
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        injections().retain(|other| other.number != self.number);
    }
}

/// Whether the current call, for `what`, has the fault.
pub(in crate::cull) fn has(fault: Fault, what: &'static str) -> bool {
    let mut has = false;
    for injection in injections().iter_mut() {
        let is_other = injection.only.is_some_and(|only| only != what);
        if injection.fault != fault || is_other {
            continue;
        }
        if injection.failing.contains(&injection.calls) {
            injection.refused.push(what);
            has = true;
        }
        injection.calls += 1;
    }
    has
}
