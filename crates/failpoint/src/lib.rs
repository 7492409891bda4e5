//! Points before and after each effect on the outside, where a test build can be made to die.
//!
//! `failpoint!(before, "apply", "{what}")` is nothing at all unless the feature `armed` is on. Where it is on, two variables say what happens:
//!
//! - `BLUEPRINT_FAILPOINT=17` ends the process at the 17th point that it reaches, as a kill does: nothing is cleaned up, nothing is flushed.
//! - `BLUEPRINT_FAILPOINT='before apply Namespace redis'` ends it where that point is reached first; `…#2` the second time.
//! - `BLUEPRINT_FAILPOINT=new:FILE` ends it at the first point that FILE does not name, and adds the point to FILE: run again and again, the process dies
//!   at every point of its way once.
//! - `BLUEPRINT_FAILPOINT=few:2:FILE` does the same as long as FILE names fewer than two points of the kind (the moment and the effect).
//! - `BLUEPRINT_FAILPOINT_LOG=FILE` adds every point to FILE as it is reached, one a line.
//!
//! Points are counted in the order in which they are reached; with `--sequential` that order is the same in every run.

#[cfg(feature = "armed")]
mod armed;

#[cfg(feature = "armed")]
pub use armed::reach;

/// When a point is reached: `before` an effect, `under_way` (it goes on without us), `after` it was confirmed.
#[cfg(feature = "armed")]
#[macro_export]
macro_rules! failpoint {
    ($moment:ident, $effect:literal, $($what:tt)+) => {
        $crate::reach(::core::stringify!($moment), $effect, ::core::format_args!($($what)+))
    };
}

/// Nothing: this build has no failpoints. Its words count as used, and nothing of them is compiled.
#[cfg(not(feature = "armed"))]
#[macro_export]
macro_rules! failpoint {
    ($moment:ident, $effect:literal, $($what:tt)+) => {
        if false {
            let _ = ::core::format_args!($($what)+);
        }
    };
}
