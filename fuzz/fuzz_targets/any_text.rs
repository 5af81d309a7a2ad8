//! Any bytes: the engine answers, soon (`-timeout`), with spans inside the text, and nothing it cannot read is kind.
#![no_main]

use countersign_shell::{MAX_TEXT, Options, Risk, Verdict, assess, verdict_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let assessment = assess(&text, &Options::default());
    for reason in &assessment.reasons {
        let span = reason.span;
        assert!(span.start <= span.end && span.end <= text.len(), "{reason:?}");
        assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{reason:?}");
    }
    if assessment.risk == Risk::Safe {
        assert!(assessment.reasons.iter().all(|reason| reason.risk == Risk::Safe));
        assert!(text.len() <= MAX_TEXT && !text.contains('\0'));
    }
    if text.trim().is_empty() || text.contains('\0') {
        assert_ne!(verdict_of(&text, &["*", "**"], &Options::default()), Verdict::Allow);
    }
    // An allowlist never makes a line stricter, and none at all allows only what is safe.
    let alone = verdict_of(&text, &[], &Options::default());
    assert!((alone == Verdict::Allow) <= (assessment.risk == Risk::Safe));
});
