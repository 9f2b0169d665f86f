//! Rebuilds the package when a case is added or taken away: embedding alone notices only changes to
//! the files that it already knows.

fn main() {
    println!("cargo:rerun-if-changed=cases");
}
