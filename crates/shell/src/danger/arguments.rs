//! A command's words as options with their values and operands, as far as somebody knows which options take one.

use super::facts::Piece;
use super::rule::Program;
use super::table::Of;
use super::words::Dialect;
use crate::word::Span;

#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Without dashes.
    pub name: &'a str,
    pub short: bool,
    pub value: Option<Piece<'a>>,
    pub span: Span,
}

/// What has to be known of a program to read its arguments.
pub trait Grammar {
    fn dialect(&self) -> Dialect;
    /// Whether the option with this name and so many dashes takes a value.
    fn takes(&self, name: &str, dashes: usize) -> bool;
    /// `--arg name value`.
    fn takes_two(&self, name: &str) -> bool;
}

impl Grammar for Option<Of<'_, Program>> {
    fn dialect(&self) -> Dialect {
        self.map_or(Dialect::Gnu, |program| program.dialect)
    }

    fn takes(&self, name: &str, dashes: usize) -> bool {
        self.is_some_and(|program| program.takes(name, dashes))
    }

    fn takes_two(&self, name: &str) -> bool {
        self.is_some_and(|program| program.dialect != Dialect::Keys && program.takes_two(name))
    }
}

#[derive(Debug, Default)]
pub struct Arguments<'a> {
    pub options: Vec<Given<'a>>,
    pub operands: Vec<Piece<'a>>,
}

/// `words` begin with the program. From the operand at `limit` on nothing is an option.
pub fn read<'a>(words: &'a [Piece<'a>], grammar: &impl Grammar, limit: usize) -> Arguments<'a> {
    let mut reader = Reader { words, grammar, found: Arguments::default() };
    reader.read(limit);
    reader.found
}

struct Reader<'a, 'g, G> {
    words: &'a [Piece<'a>],
    grammar: &'g G,
    found: Arguments<'a>,
}

impl<'a, G: Grammar> Reader<'a, '_, G> {
    fn read(&mut self, limit: usize) {
        let dialect = self.grammar.dialect();
        let mut position = 1;
        while let Some(piece) = self.words.get(position).copied() {
            position += 1;
            let next = self.words.get(position).copied();
            if self.found.operands.len() >= limit {
                self.found.operands.push(piece);
                continue;
            }
            let took = match dialect {
                Dialect::Keys => self.read_key(piece),
                Dialect::Single => self.read_single(piece, next),
                Dialect::Tar if position == 2 && !piece.text.starts_with('-') => {
                    self.read_cluster(piece.text, piece, next)
                }
                Dialect::Gnu | Dialect::Tar if piece.text == "--" => {
                    self.found.operands.extend(self.words.iter().skip(position));
                    return;
                }
                Dialect::Gnu | Dialect::Tar => match piece.text.strip_prefix("--") {
                    Some(long) if self.grammar.takes_two(long) => {
                        self.read_two(long, piece, self.words.get(position + 1).copied());
                        position += 1;
                        true
                    }
                    Some(long) => self.read_long(long, piece, next),
                    None => match piece.text.strip_prefix('-') {
                        Some(cluster) if !cluster.is_empty() => self.read_cluster(cluster, piece, next),
                        _ => {
                            self.found.operands.push(piece);
                            false
                        }
                    },
                },
            };
            if took {
                position += 1;
            }
        }
    }

    fn read_key(&mut self, piece: Piece<'a>) -> bool {
        match piece.text.split_once('=') {
            Some((name, value)) => {
                let value = Some(Piece { text: value, word: None, span: piece.span, seen: None });
                self.found.options.push(Given { name, short: false, value, span: piece.span });
            }
            None => self.found.operands.push(piece),
        }
        false
    }

    fn read_single(&mut self, piece: Piece<'a>, next: Option<Piece<'a>>) -> bool {
        let name = piece.text.trim_start_matches('-');
        if name.len() == piece.text.len() || name.is_empty() {
            self.found.operands.push(piece);
            return false;
        }
        if let Some((name, value)) = name.split_once('=') {
            let value = Some(Piece { text: value, word: None, span: piece.span, seen: None });
            self.found.options.push(Given { name, short: false, value, span: piece.span });
            return false;
        }
        let takes = self.grammar.takes(name, 1) || self.grammar.takes(name, 2);
        let value = if takes { next } else { None };
        self.found.options.push(Given { name, short: false, value, span: piece.span });
        value.is_some()
    }

    fn read_long(&mut self, long: &'a str, piece: Piece<'a>, next: Option<Piece<'a>>) -> bool {
        if let Some((name, value)) = long.split_once('=') {
            let value = Some(Piece { text: value, word: None, span: piece.span, seen: None });
            self.found.options.push(Given { name, short: false, value, span: piece.span });
            return false;
        }
        let value = if self.grammar.takes(long, 2) { next } else { None };
        self.found.options.push(Given { name: long, short: false, value, span: piece.span });
        value.is_some()
    }

    /// The second value of an option that takes two; the first is only a name.
    fn read_two(&mut self, long: &'a str, piece: Piece<'a>, value: Option<Piece<'a>>) {
        self.found.options.push(Given { name: long, short: false, value, span: piece.span });
    }

    fn read_cluster(&mut self, cluster: &'a str, piece: Piece<'a>, next: Option<Piece<'a>>) -> bool {
        let mut rest = cluster;
        while let Some(letter) = rest.chars().next() {
            let (name, after) = rest.split_at(letter.len_utf8());
            if self.grammar.takes(name, 1) {
                let inside =
                    (!after.is_empty()).then_some(Piece { text: after, word: None, span: piece.span, seen: None });
                let value = inside.or(next);
                self.found.options.push(Given { name, short: true, value, span: piece.span });
                return inside.is_none() && next.is_some();
            }
            self.found.options.push(Given { name, short: true, value: None, span: piece.span });
            rest = after;
        }
        false
    }
}
