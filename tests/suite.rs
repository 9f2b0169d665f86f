//! The one test binary: every trial that is no unit test.
//!
//! `cargo test` runs everything. A part is run by the front of its names: `case/` (every case in both
//! colours), `data/` (what the data promises), `fuzzing/` (fuzzing, end to end), `hidden/` (faults for the
//! fuzzer alone), `hostile/` (what the judge must bear), `house/` (who imports whom), `real/` (real servers).

mod builtin;
mod data;
mod fuzzing;
mod hidden;
mod hostile;
mod house;
mod matrix;
mod real;

use libtest_mimic::{Arguments, Trial};

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = Vec::new();
    trials.extend(matrix::trials());
    trials.extend(data::trials());
    trials.extend(fuzzing::trials());
    trials.extend(hidden::trials());
    trials.extend(hostile::trials());
    trials.extend(house::trials());
    trials.extend(real::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A trial that fails with what its function says.
fn trial(name: impl Into<String>, test: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    Trial::test(name, move || test().map_err(Into::into))
}
