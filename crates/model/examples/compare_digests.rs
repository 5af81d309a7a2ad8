//! Compares two digests a thousand times: run under an instruction counter, it shows whether the work depends
//! on where they differ. `tests/e2e/threats.rs` runs it that way.

use countersign_model::Digest;

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|hex| Digest::from_hex(&hex));
    let (Some(one), Some(two)) = (args.next(), args.next()) else {
        eprintln!("usage: compare_digests HEX HEX");
        std::process::exit(64);
    };
    let equal = (0..1000).filter(|_| std::hint::black_box(&one).ct_eq(std::hint::black_box(&two))).count();
    println!("{equal}");
}
