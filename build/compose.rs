//! Composes kernels from the files of `shaders/`, which say what they need of each other.
//!
//! The files are WGSL with two extensions, both as in [WESL](https://wesl-lang.dev):
//! `import package::cull::lists::lists;`, and `@if(subgroup)` or `@if(!subgroup)` in front of an
//! import or a declaration. A kernel is an entry point of a file, with a set of features. It is
//! made of the declarations that the entry point reaches through imports, verbatim and with their
//! comments, so names and lines stay as they are. Above each run of lines the text names its place:
//!
//! ```text
//! // shaders/cull/vote.wesl:12
//! ```
//!
//! A file may call what the kernel declares: its header lists such names as `// Hooks: a, b.`. They
//! are looked up in the kernel's file, then in all files that it reaches.
//!
//! A line that begins with `// ----` may split a file: the host's constants end or begin there.
//! The build script, the tests `shaders` and `wesl`, and `cargo xtask wgsl` use this file.

#![allow(
    dead_code,
    unused_imports,
    reason = "no user of this file needs all of it"
)]

#[path = "compose/composer.rs"]
mod composer;
#[path = "compose/file.rs"]
mod file;
#[path = "compose/kernels.rs"]
mod kernels;

pub use composer::{Composed, compose};
pub use file::{File, Files, Part, parse, read};
pub use kernels::{KERNELS, Kernel, features, kernels};
