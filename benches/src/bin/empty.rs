//! Does nothing: what starting any Rust program costs, for `bench run` to compare with.

fn main() {}
