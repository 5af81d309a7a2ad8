//! The keys that can be pressed about a request. What the gate would refuse is not among them.

use crate::record::Record;
use crate::width;

/// In the order in which they are shown.
const WORDS: [(char, &str); 7] = [
    ('a', "allow once"),
    ('s', "just this, for this session"),
    ('A', "just this, for 30 days"),
    ('r', "allow and remember"),
    ('w', "wider"),
    ('e', "edit"),
    ('d', "deny"),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Menu {
    /// The gate takes no yes from here any more.
    pub locked: bool,
}

impl Menu {
    pub fn has(self, key: char, record: &Record) -> bool {
        let offered = |key: &str| record.longer().iter().any(|longer| longer.key == key);
        match key {
            'd' => true,
            _ if self.locked => false,
            'a' | 'e' => true,
            's' => offered("s"),
            'A' => offered("A"),
            'r' => record.can_be_remembered(),
            'w' => !record.longer().is_empty(),
            _ => false,
        }
    }

    /// One after the other, none of them cut in two.
    pub fn text(self, record: &Record, columns: usize) -> String {
        let keys = WORDS.iter().filter(|(key, _)| self.has(*key, record)).map(|(key, words)| match key {
            'a' if record.is_dangerous() => format!("[{key}] {words}, with its number"),
            _ => format!("[{key}] {words}"),
        });
        let mut text = String::new();
        let mut used = 0;
        for part in keys.chain(["(or answer elsewhere)".to_owned()]) {
            let fits = used + 2 + width::of(&part) < columns;
            let between = if text.is_empty() {
                ""
            } else if fits {
                "  "
            } else {
                "\n"
            };
            used = width::of(&part) + if fits { used + between.len() } else { 0 };
            text.push_str(between);
            text.push_str(&part);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::sample;
    use serde_json::json;

    fn line(menu: Menu, change: impl FnOnce(&mut serde_json::Value)) -> String {
        let mut value = sample("appr_1");
        change(&mut value);
        menu.text(&Record::read(&value).unwrap(), 200)
    }

    #[test]
    fn only_what_works_is_listed() {
        let open = Menu::default();
        assert_eq!(line(open, |_| ()), "[a] allow once  [e] edit  [d] deny  (or answer elsewhere)");
        let dangerous = line(open, |value| {
            value["risk"] = json!("dangerous");
            value["answers"] = json!([{"decision": "allow-once", "words": "this, once"}, {"code": "2", "words": "x"}]);
            value["terminal"] = json!({"may_remember": true});
            value["offer"] = json!({"refused": "it is dangerous"});
        });
        assert_eq!(dangerous, "[a] allow once, with its number  [w] wider  [e] edit  [d] deny  (or answer elsewhere)");
        let narrow = open.text(&Record::read(&sample("appr_1")).unwrap(), 30);
        assert_eq!(narrow, "[a] allow once  [e] edit\n[d] deny\n(or answer elsewhere)");
        assert_eq!(line(Menu { locked: true }, |_| ()), "[d] deny  (or answer elsewhere)");
    }
}
