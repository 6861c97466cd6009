//! Draws the small examples without a window, each into a picture. CI compares the pictures with
//! stored ones, and reports time the frames. `cargo xtask web` builds the same for a browser, with
//! a page per example.
//!
//! ```sh
//! cargo run --example gallery --features animation,meshlets,picking,testing                  # lists the examples
//! cargo run --example gallery --features animation,meshlets,picking,testing -- tint --out tint.png
//! ```
//!
//! * `list`, `still`: the examples, what their pictures need, and versions to compare with.
//! * `stage`: redirects an example to a picture, and tells when everything is there.
//! * `cli`, `draw`: the command line; waits until everything is there, draws frames and saves the
//!   picture.
//! * `page`: the same in a browser, and with the demo.
//! * `end`, `offscreen`: a clean end, and an app without a window; shared with the demo.
#![allow(
    dead_code,
    clippy::print_stdout,
    reason = "files that are shared have more than one user needs; a list and times are printed"
)]

#[cfg_attr(target_arch = "wasm32", path = "page.rs")]
mod cli;
#[cfg(not(target_arch = "wasm32"))]
mod draw;
#[cfg(not(target_arch = "wasm32"))]
#[path = "../orbs/end.rs"]
mod end;
mod list;
#[cfg(not(target_arch = "wasm32"))]
#[path = "../orbs/offscreen.rs"]
mod offscreen;
/// The demo's page. Nobody opens it here, but it must compile where everybody compiles.
#[cfg(all(not(target_arch = "wasm32"), feature = "gizmos", feature = "overlay"))]
mod page {
    #[path = "demo.rs"]
    mod demo;
    #[path = "query.rs"]
    mod query;
}
mod stage;

use bevy::prelude::*;

fn main() -> AppExit {
    cli::run()
}
