//! Tables that fit the terminal. What does not fit is cut with a `…`, and the caller learns that it was.

use crate::output::{Style, Tone};
use crate::width;

const GAP: usize = 2;

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    /// Never narrower than this; one that needs more is cut.
    pub least: usize,
    /// Left out altogether when even the least widths do not fit; the lowest goes first, 0 stays.
    pub spare: u8,
}

#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug)]
pub struct Fitted {
    pub text: String,
    /// Something was cut or left out.
    pub cut: bool,
}

impl Table {
    pub fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// The cells are shown as they are: they must be safe to print. Line ends become ` / `.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.into_iter().map(|cell| cell.replace('\n', " / ")).collect());
    }

    /// In so many columns of a terminal; `None`: nothing is cut.
    pub fn fit(&self, columns: Option<usize>, style: Style) -> Fitted {
        let natural: Vec<usize> =
            self.columns.iter().enumerate().map(|(at, column)| self.natural(at, column)).collect();
        let (widths, mut cut) = match columns {
            Some(columns) => self.squeeze(&natural, columns),
            None => (natural.iter().copied().map(Some).collect(), false),
        };
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.to_owned()).collect();
        let mut text = style.paint(&line(&titles, &widths, &mut false), Tone::Faint);
        text.push('\n');
        for row in &self.rows {
            text.push_str(&line(row, &widths, &mut cut));
            text.push('\n');
        }
        Fitted { text, cut }
    }

    fn natural(&self, at: usize, column: &Column) -> usize {
        let widest = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| width::of(cell)).max();
        widest.unwrap_or(0).max(width::of(column.title))
    }

    /// The width of each column, `None` for one left out.
    fn squeeze(&self, natural: &[usize], columns: usize) -> (Vec<Option<usize>>, bool) {
        let mut widths: Vec<Option<usize>> = natural.iter().copied().map(Some).collect();
        let mut dropped = false;
        loop {
            let shown: Vec<usize> = widths.iter().flatten().copied().collect();
            let over = (shown.iter().sum::<usize>() + GAP * shown.len().saturating_sub(1)).saturating_sub(columns);
            if over == 0 {
                return (widths, dropped);
            }
            match self.widest(&widths) {
                Some((at, width)) => set(&mut widths, at, Some(width - 1)),
                None => match self.least_needed(&widths) {
                    Some(at) => {
                        dropped = true;
                        // The room that is free now goes back to the others.
                        for (other, width) in widths.iter_mut().enumerate() {
                            *width = width.and(natural.get(other).copied());
                        }
                        set(&mut widths, at, None);
                    }
                    None => return (widths, dropped),
                },
            }
        }
    }

    /// The column that gives up room next. One that always stays keeps twice as much as one that could go.
    fn widest(&self, widths: &[Option<usize>]) -> Option<(usize, usize)> {
        let shown = self.columns.iter().zip(widths).enumerate().filter_map(|(at, (c, width))| Some((at, c, (*width)?)));
        let weight = |column: &Column, width: usize| if column.spare == 0 { width } else { width * 2 };
        shown
            .filter(|(_, column, width)| *width > column.least)
            .max_by_key(|(_, column, width)| weight(column, *width))
            .map(|(at, _, width)| (at, width))
    }

    fn least_needed(&self, widths: &[Option<usize>]) -> Option<usize> {
        let shown = self.columns.iter().zip(widths).enumerate().filter(|(_, (_, width))| width.is_some());
        shown.filter(|(_, (column, _))| column.spare > 0).min_by_key(|(_, (column, _))| column.spare).map(|(at, _)| at)
    }
}

fn set(widths: &mut [Option<usize>], at: usize, width: Option<usize>) {
    if let Some(slot) = widths.get_mut(at) {
        *slot = width;
    }
}

fn line(cells: &[String], widths: &[Option<usize>], was_cut: &mut bool) -> String {
    let mut out = String::new();
    let mut pending = 0;
    for (cell, columns) in cells.iter().zip(widths).filter_map(|(cell, width)| width.map(|width| (cell, width))) {
        let shown = width::cut(cell, columns);
        *was_cut |= shown != *cell;
        out.push_str(&" ".repeat(pending));
        out.push_str(&shown);
        pending = columns.saturating_sub(width::of(&shown)) + GAP;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column { title: "ID", least: 8, spare: 0 },
        Column { title: "LEFT", least: 5, spare: 2 },
        Column { title: "CLIENT", least: 6, spare: 1 },
        Column { title: "WHAT", least: 12, spare: 0 },
    ];

    fn table() -> Table {
        let mut table = Table::new(&COLUMNS);
        table.row(vec![
            "12ab34cd".into(),
            "9:05".into(),
            "deploy-bot-of-the-web-team".into(),
            "run `".to_owned() + &"x".repeat(120),
        ]);
        table.row(vec!["99aa34cd".into(), "0:05".into(), "ci".into(), "日本語を\n送る".into()]);
        table
    }

    #[test]
    fn it_fits_at_40_80_and_200_columns() {
        for columns in [40, 80, 200] {
            let fitted = table().fit(Some(columns), Style::PLAIN);
            for line in fitted.text.lines() {
                assert!(width::of(line) <= columns, "{columns}: {line}");
            }
            assert_eq!(fitted.cut, columns < 200, "{columns}");
            assert_eq!(fitted.text.contains('…'), fitted.cut);
            assert!(fitted.text.contains("12ab34cd") && fitted.text.contains("日本語を /"), "{}", fitted.text);
        }
    }

    #[test]
    fn what_is_spared_goes_by_rank_and_is_told() {
        let fitted = table().fit(Some(30), Style::PLAIN);
        let title = fitted.text.lines().next().unwrap();
        assert!(fitted.cut && title.contains("LEFT") && !title.contains("CLIENT"), "{title}");
        let fitted = table().fit(Some(24), Style::PLAIN);
        assert_eq!(fitted.text.lines().next().unwrap(), "ID        WHAT");
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let fitted = table().fit(None, Style::PLAIN);
        assert!(!fitted.cut && !fitted.text.contains('…'));
        assert!(fitted.text.lines().all(|line| !line.ends_with(' ')));
    }
}
