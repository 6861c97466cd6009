//! Devices that lack things: none ends the app, and all that draw sets draw what Bevy's entities draw there.
//!
//! They are simulated: the device is asked for with fewer features and lower limits than the adapter has.
#![cfg(feature = "bevy")]
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

#[path = "../scene/log.rs"]
mod log;
