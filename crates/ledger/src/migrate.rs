//! Numbered migrations inside the binary. Each runs once, in order, in its own transaction.

use rusqlite::Connection;

use crate::sqlite::OpenError;

const MIGRATIONS: [&str; 5] = [
    include_str!("../migrations/0001_first.sql"),
    include_str!("../migrations/0002_terminal.sql"),
    include_str!("../migrations/0003_doors.sql"),
    include_str!("../migrations/0004_names.sql"),
    include_str!("../migrations/0005_numbers.sql"),
];

pub(crate) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let done: usize = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if done > MIGRATIONS.len() {
        return Err(OpenError::TooNew { found: done, known: MIGRATIONS.len() });
    }
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(done) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", number + 1)?;
        transaction.commit()?;
    }
    Ok(())
}
