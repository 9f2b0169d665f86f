//! What the trials of the gate and of the slow suite share. It judges nothing by itself.

pub(crate) mod application;
pub(crate) mod evaluation_faults;
pub(crate) mod evaluation_server;
pub(crate) mod formats;
pub(crate) mod limits;
pub(crate) mod opening_faults;
pub(crate) mod pages;
pub(crate) mod printed;
pub(crate) mod program;
pub(crate) mod reference;
pub(crate) mod result;
pub(crate) mod single_causes;
pub(crate) mod state_faults;
pub(crate) mod trial;

pub(crate) use program::{PROGRAM, ProgramOutput, clean, program, program_command};
pub(crate) use result::describe_error;
pub(crate) use trial::{Trial, trial};
