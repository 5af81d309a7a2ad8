//! The Punycode encoder of RFC 3492: how a host label that is not ASCII goes over the wire.
//!
//! Encodes the label as it stands. Which characters a registry would map or refuse is not decided here.

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const INITIAL_BIAS: u32 = 72;
const INITIAL_N: u32 = 128;
/// A DNS label is far shorter; the encoder's work grows with the square of its input.
const MAX_LABEL_CHARS: usize = 256;

/// A host with each label that is not ASCII in its `xn--` form.
pub(super) fn host(host: &str) -> Option<String> {
    let label = |label: &str| {
        if label.is_ascii() {
            return Some(label.to_owned());
        }
        let lower: String = label.chars().flat_map(char::to_lowercase).collect();
        Some(format!("xn--{}", encode(&lower)?))
    };
    let labels: Option<Vec<String>> = host.split('.').map(label).collect();
    Some(labels?.join("."))
}

fn encode(label: &str) -> Option<String> {
    let points: Vec<u32> = label.chars().map(u32::from).collect();
    if points.len() > MAX_LABEL_CHARS {
        return None;
    }
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(out.len()).ok()?;
    if basic > 0 {
        out.push('-');
    }
    let (mut n, mut delta, mut bias, mut handled) = (INITIAL_N, 0u32, INITIAL_BIAS, basic);
    while let Some(next) = points.iter().copied().filter(|point| *point >= n).min() {
        delta = delta.checked_add((next - n).checked_mul(handled.checked_add(1)?)?)?;
        n = next;
        for point in &points {
            if *point < n {
                delta = delta.checked_add(1)?;
            }
            if *point == n {
                push_variable(&mut out, delta, bias)?;
                bias = adapt(delta, handled + 1, handled == basic);
                delta = 0;
                handled += 1;
            }
        }
        delta = delta.checked_add(1)?;
        n += 1;
    }
    Some(out)
}

fn push_variable(out: &mut String, delta: u32, bias: u32) -> Option<()> {
    let mut rest = delta;
    let mut k = BASE;
    loop {
        let threshold = k.saturating_sub(bias).clamp(T_MIN, T_MAX);
        if rest < threshold {
            out.push(digit(rest)?);
            return Some(());
        }
        let span = BASE - threshold;
        out.push(digit(threshold + (rest - threshold) % span)?);
        rest = (rest - threshold) / span;
        k += BASE;
    }
}

/// 0 to 25 are `a` to `z`, 26 to 35 are `0` to `9`.
fn digit(value: u32) -> Option<char> {
    let turned = if value < 26 { value + 10 } else { value - 26 };
    char::from_digit(turned, BASE)
}

fn adapt(delta: u32, points: u32, first: bool) -> u32 {
    let mut delta = if first { delta / DAMP } else { delta / 2 };
    delta += delta / points;
    let mut k = 0;
    while delta > ((BASE - T_MIN) * T_MAX) / 2 {
        delta /= BASE - T_MIN;
        k += BASE;
    }
    k + (BASE - T_MIN + 1) * delta / (delta + SKEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 7.1 of the RFC, without its case annotations.
    #[test]
    fn the_samples_of_the_rfc() {
        for (text, encoded) in [
            ("ليهمابتكلموشعربي؟", "egbpdaj6bu4bxfgehfvwxn"),
            ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
            ("他們爲什麽不說中文", "ihqwctvzc91f659drss3x8bo0yb"),
            ("Pročprostěnemluvíčesky", "Proprostnemluvesky-uyb24dma41a"),
            ("למההםפשוטלאמדבריםעברית", "4dbcagdahymbxekheh6e0a7fei0b"),
            ("なぜみんな日本語を話してくれないのか", "n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa"),
            ("почемужеонинеговорятпорусски", "b1abfaaepdrnnbgefbadotcwatmq2g4l"),
            ("PorquénopuedensimplementehablarenEspañol", "PorqunopuedensimplementehablarenEspaol-fmd56a"),
            ("TạisaohọkhôngthểchỉnóitiếngViệt", "TisaohkhngthchnitingVit-kjcr8268qyxafd2f1b9g"),
            ("3年B組金八先生", "3B-ww4c5e180e575a65lsy2b"),
            ("安室奈美恵-with-SUPER-MONKEYS", "-with-SUPER-MONKEYS-pc58ag80a8qai00g7n9n"),
            ("Hello-Another-Way-それぞれの場所", "Hello-Another-Way--fc4qua05auwb3674vfr0b"),
            ("ひとつ屋根の下2", "2-u9tlzr9756bt3uc0v"),
            ("MajiでKoiする5秒前", "MajiKoi5-783gue6qz075azm5e"),
            ("パフィーdeルンバ", "de-jg4avhby1noc0d"),
            ("そのスピードで", "d9juau41awczczp"),
            ("-> $1.00 <-", "-> $1.00 <--"),
        ] {
            assert_eq!(encode(text).as_deref(), Some(encoded), "{text}");
        }
    }

    #[test]
    fn hosts_are_encoded_label_by_label() {
        assert_eq!(host("bücher.example").as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(host("аррӏе.com").as_deref(), Some("xn--80ak6aa92e.com"));
        assert_eq!(host(&"ä".repeat(5000)), None);
    }
}
