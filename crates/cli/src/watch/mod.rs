//! The live list: `state` decides what happens, `view` what is seen, `feed` brings the news, and `terminal` is
//! the thin layer that owns the screen.

mod feed;
mod news;
mod state;
mod terminal;
mod view;

pub use feed::print;
pub use terminal::run;
