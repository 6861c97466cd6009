//! Devices that lack features or have low limits. None of them ends the app, and sets that are
//! drawn look like Bevy's entities on the same device.
//!
//! The devices are simulated: the test requests fewer features and lower limits than the adapter
//! has. Each has a separate process, which runs this program.
#![cfg(all(feature = "bevy", feature = "study"))]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and says what it draws"
)]

mod devices;
mod memory;
#[path = "../scene/mod.rs"]
mod scene;
mod table;

#[path = "../common/generated.rs"]
mod generated;
#[path = "../scene/log.rs"]
mod log;
