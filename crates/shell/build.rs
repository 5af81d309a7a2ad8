//! Compiles the knowledge in `rules/` into tables. A list of calls: each layer has its own module in `build/`.

#[path = "build/dangers.rs"]
mod dangers;
#[path = "src/effect.rs"]
#[expect(dead_code, reason = "the build script writes rows and judges nothing")]
mod effect;
#[path = "build/effects.rs"]
mod effects;
#[path = "src/pool.rs"]
#[allow(dead_code, reason = "the build script makes tables and looks nothing up")]
mod pool;
#[path = "build/programs.rs"]
mod programs;
#[path = "src/project.rs"]
#[allow(dead_code, reason = "the build script names projects and looks nothing up")]
mod project;
#[path = "build/projects.rs"]
mod projects;
#[path = "src/rule_error.rs"]
mod rule_error;
#[path = "build/wrappers.rs"]
mod wrappers;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=rules");
    println!("cargo::rerun-if-changed=src/pool.rs");
    println!("cargo::rerun-if-changed=src/project.rs");
    dangers::generate()?;
    effects::generate()?;
    programs::generate()?;
    projects::generate()?;
    wrappers::generate()?;
    Ok(())
}
