//! Which paths hold what gives rights to whoever has it. The paths themselves are in `rules/paths.toml`.

use super::facts::{Piece, Question};
use super::paths::Path;
use super::table::{BUILT_IN, SECRET_NAMES, SECRET_PLACES};
use super::test::is_path;

/// Keys, passwords, tokens: reading them is a danger by itself.
pub fn is_secret(piece: &Piece<'_>) -> bool {
    piece.once(Question::Secret, || holds_secrets(piece))
}

fn holds_secrets(piece: &Piece<'_>) -> bool {
    if !is_path(piece.text) || piece.text.ends_with(".pub") {
        return false;
    }
    let path = Path::read(piece);
    path.is_named(BUILT_IN.of(&SECRET_NAMES))
        || (!path.parts.is_empty() && path.is_under_one(BUILT_IN.of(&SECRET_PLACES)))
}

/// What has no business on another machine: secrets, a home folder, the system's own files.
pub fn is_private(piece: &Piece<'_>) -> bool {
    piece.once(Question::Private, || holds_private(piece))
}

fn holds_private(piece: &Piece<'_>) -> bool {
    if is_secret(piece) || crate::safe::sensitive(piece.text).is_some() {
        return true;
    }
    if !is_path(piece.text) {
        return false;
    }
    let path = Path::read(piece);
    path.is_root_or_home() || path.is_under("/etc") || path.is_under("~/.ssh") || path.is_under("~/.aws") || {
        let name = path.name();
        name == ".env" || (name.starts_with(".env.") && !name.ends_with("example") && !name.ends_with("sample"))
    }
}
