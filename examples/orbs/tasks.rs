//! Background tasks: a thread that still compiles a pipeline crashes inside the driver if the
//! process ends.

use bevy::tasks::AsyncComputeTaskPool;
use std::{
    sync::{Arc, RwLock, mpsc},
    time::{Duration, Instant},
};

/// Waits until no background task that has begun is still running; false if it takes too long.
pub fn background_tasks_end(patience: Duration) -> bool {
    let Some(pool) = AsyncComputeTaskPool::try_get() else {
        return true;
    };
    // One task per thread, each of which waits at the gate: they are all there only when no thread
    // of the pool runs anything else.
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write();
    let (arrive, arrivals) = mpsc::channel();
    for _ in 0..pool.thread_num() {
        let (gate, arrive) = (Arc::clone(&gate), arrive.clone());
        pool.spawn(async move {
            let _ = arrive.send(());
            drop(gate.read());
        })
        .detach();
    }
    let begin = Instant::now();
    let mut arrived = (0..pool.thread_num())
        .map(|_| arrivals.recv_timeout(patience.saturating_sub(begin.elapsed())));
    let all_there = arrived.all(|arrival| arrival.is_ok());
    drop(closed);
    all_there
}
