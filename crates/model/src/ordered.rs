//! The canonical form of what is plain: names and numbers that JSON has one writing for. Only the order of an object's
//! members is left to settle then, which is done on the written bytes; whatever is not plain is left to the canonicalizer.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// Integers up to here are the same in JSON as in the canonical form, which knows only doubles.
const MAX_EXACT: u64 = 9_007_199_254_740_991;
/// As deep as the parser reads.
const MAX_DEPTH: usize = 128;
/// Most of what is hashed is shorter.
const ROOM: usize = 512;

/// The canonical bytes, or nothing where it takes the canonicalizer to know them.
pub(crate) fn plain_bytes<T: Serialize>(value: &T) -> Option<Vec<u8>> {
    let mut written = Vec::with_capacity(ROOM);
    value.serialize(&mut Serializer::with_formatter(&mut written, Plain)).ok()?;
    let mut out = Vec::with_capacity(written.len());
    let end = put_value(&written, 0, &mut out, 0)?;
    (end == written.len()).then_some(out)
}

/// Writes as everybody does and gives up where the canonical form is written differently: on fractions and large numbers,
/// and on `null`, which also stands for numbers that have no form at all.
struct Plain;

fn not_plain() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Formatter for Plain {
    fn write_null<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        not_plain()
    }

    fn write_i64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        if value.unsigned_abs() > MAX_EXACT { not_plain() } else { CompactFormatter.write_i64(writer, value) }
    }

    fn write_u64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        if value > MAX_EXACT { not_plain() } else { CompactFormatter.write_u64(writer, value) }
    }

    fn write_i128<W: ?Sized + io::Write>(&mut self, _: &mut W, _: i128) -> io::Result<()> {
        not_plain()
    }

    fn write_u128<W: ?Sized + io::Write>(&mut self, _: &mut W, _: u128) -> io::Result<()> {
        not_plain()
    }

    fn write_f32<W: ?Sized + io::Write>(&mut self, _: &mut W, _: f32) -> io::Result<()> {
        not_plain()
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, _: &mut W, _: f64) -> io::Result<()> {
        not_plain()
    }

    fn write_number_str<W: ?Sized + io::Write>(&mut self, _: &mut W, _: &str) -> io::Result<()> {
        not_plain()
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(&mut self, _: &mut W, _: &str) -> io::Result<()> {
        not_plain()
    }
}

/// Copies the value at `at` with its members in order, and answers where it ends.
fn put_value(text: &[u8], at: usize, out: &mut Vec<u8>, depth: usize) -> Option<usize> {
    let end = match text.get(at)? {
        b'{' if depth < MAX_DEPTH => return put_object(text, at, out, depth),
        b'[' if depth < MAX_DEPTH => return put_array(text, at, out, depth),
        b'{' | b'[' => return None,
        b'"' => string_end(text, at)?,
        _ => at + text.get(at..)?.iter().take_while(|byte| !matches!(byte, b',' | b'}' | b']')).count(),
    };
    out.extend_from_slice(text.get(at..end)?);
    Some(end)
}

fn put_array(text: &[u8], at: usize, out: &mut Vec<u8>, depth: usize) -> Option<usize> {
    out.push(b'[');
    let mut at = at + 1;
    while *text.get(at)? != b']' {
        if *text.get(at)? == b',' {
            out.push(b',');
            at += 1;
        }
        at = put_value(text, at, out, depth + 1)?;
    }
    out.push(b']');
    Some(at + 1)
}

/// One member: its name in the text, and where it stands in what was copied.
struct Member<'a> {
    name: &'a [u8],
    start: usize,
    end: usize,
}

fn put_object(text: &[u8], at: usize, out: &mut Vec<u8>, depth: usize) -> Option<usize> {
    out.push(b'{');
    let (first, mut at, mut members) = (out.len(), at + 1, Vec::<Member<'_>>::new());
    while *text.get(at)? != b'}' {
        if *text.get(at)? == b',' {
            out.push(b',');
            at += 1;
        }
        let name_end = string_end(text, at)?;
        let name = text.get(at + 1..name_end.checked_sub(1)?)?;
        // Names are ordered by UTF-16 units of what they mean: the same as their bytes only where those are plain ASCII.
        if !name.is_ascii() || name.contains(&b'\\') {
            return None;
        }
        let start = out.len();
        out.extend_from_slice(text.get(at..=name_end)?);
        at = put_value(text, name_end + 1, out, depth + 1)?;
        members.push(Member { name, start, end: out.len() });
    }
    put_in_order(out, first, &mut members)?;
    out.push(b'}');
    Some(at + 1)
}

/// Orders the members that were copied from `first` on. Of two with one name the canonicalizer has to choose.
fn put_in_order(out: &mut Vec<u8>, first: usize, members: &mut [Member<'_>]) -> Option<()> {
    if members.is_sorted_by(|one, next| one.name < next.name) {
        return Some(());
    }
    members.sort_unstable_by_key(|member| member.name);
    if !members.is_sorted_by(|one, next| one.name < next.name) {
        return None;
    }
    let copied = out.get(first..)?.to_vec();
    out.truncate(first);
    for member in members {
        if out.len() > first {
            out.push(b',');
        }
        out.extend_from_slice(copied.get(member.start - first..member.end - first)?);
    }
    Some(())
}

/// Past the closing quote of the text that opens at `at`.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1000i64..1000).prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[a-c\"\\\\\n,{}\\[\\]:]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec(("[a-c_]{0,3}|[a-cé\"\\\\]{0,2}", inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// A struct's members come in the order they are written in, unlike a map's.
    #[derive(Serialize)]
    struct Unordered<'a> {
        z: &'a Value,
        #[serde(rename = "type")]
        kind: &'a Value,
        a_b: &'a Value,
        a: &'a Value,
    }

    #[test]
    fn what_is_plain_is_ordered_at_every_depth() {
        let value = json!({"x": [true, {"p": "a,b\"}", "o": 7}], "w": -5});
        let text = Unordered { z: &value, kind: &json!("k"), a_b: &json!([]), a: &json!({}) };
        assert_eq!(
            String::from_utf8(plain_bytes(&text).unwrap()).unwrap(),
            r#"{"a":{},"a_b":[],"type":"k","z":{"w":-5,"x":[true,{"o":7,"p":"a,b\"}"}]}}"#
        );
    }

    #[test]
    fn what_is_written_differently_is_left_to_the_canonicalizer() {
        for value in [json!(null), json!(1.5), json!(1.0), json!(u64::MAX), json!(i64::MIN), json!({"é": 1})] {
            assert_eq!(plain_bytes(&value), None, "{value}");
            assert_eq!(plain_bytes(&json!({"a": [value]})), None);
        }
        assert_eq!(plain_bytes(&f64::NAN), None);
        assert!(plain_bytes(&json!({"a": 9_007_199_254_740_991u64})).is_some());
    }

    proptest! {
        #[test]
        fn the_bytes_are_the_canonicalizers(z in any_json(), kind in any_json(), a_b in any_json(), a in any_json()) {
            let value = Unordered { z: &z, kind: &kind, a_b: &a_b, a: &a };
            if let Some(bytes) = plain_bytes(&value) {
                prop_assert_eq!(bytes, serde_json_canonicalizer::to_vec(&value).unwrap());
            }
            if let Some(bytes) = plain_bytes(&a) {
                prop_assert_eq!(bytes, serde_json_canonicalizer::to_vec(&a).unwrap());
            }
        }
    }
}
