//! Compiles the knowledge in `rules/` into tables. A list of calls: each layer has its own module in `build/`.

#[path = "build/dangers.rs"]
mod dangers;
#[path = "src/pool.rs"]
#[allow(dead_code, reason = "the build script makes tables and looks nothing up")]
mod pool;
#[path = "build/programs.rs"]
mod programs;
#[path = "src/rule_error.rs"]
mod rule_error;
#[path = "build/wrappers.rs"]
mod wrappers;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=rules");
    println!("cargo::rerun-if-changed=src/pool.rs");
    dangers::generate()?;
    programs::generate()?;
    wrappers::generate()?;
    Ok(())
}
