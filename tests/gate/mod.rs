//! The gate: trials that need only Rust. They start nothing but the program, read no clock, open no port, and do not depend
//! on how fast or how busy the machine is.
//!
//! `house/the-gate-keeps-to-its-means` checks that.

mod config;
mod data;
mod docs;
mod formats;
mod gating;
mod hints;
mod house;
mod matrix;
mod mistakes;
mod order;
mod stability;
mod starts;
mod vacuous;
mod variants;

use crate::support::Trial;

/// The trials, those that take longest first.
pub(crate) fn trials() -> Vec<Trial> {
    let parts = [
        matrix::trials,
        variants::trials,
        order::trials,
        starts::trials,
        gating::trials,
        hints::trials,
        formats::trials,
        config::trials,
        docs::trials,
        data::trials,
        stability::trials,
        vacuous::trials,
        house::trials,
        mistakes::trials,
    ];
    parts.iter().flat_map(|trials| trials()).collect()
}
