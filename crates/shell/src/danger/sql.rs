//! A look at SQL and its cousins for statements that destroy or that start programs. Words only: no grammar.

/// Words in upper case, without comments and quoted text, one list for each statement.
fn statements(text: &str) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut word = String::new();
    let mut quote: Option<char> = None;
    let mut characters = text.chars().peekable();
    let mut comment = false;
    while let Some(c) = characters.next() {
        if comment {
            comment = c != '\n';
            continue;
        }
        if let Some(open) = quote {
            if c == open {
                quote = None;
            }
            continue;
        }
        let end = !(c.is_alphanumeric() || c == '_' || c == '.' || c == '\\' || c == '!');
        if end
            && !word.is_empty()
            && let Some(last) = found.last_mut()
        {
            last.push(std::mem::take(&mut word));
        }
        match c {
            '\'' => quote = Some(c),
            '-' if characters.peek() == Some(&'-') => comment = true,
            ';' => found.push(Vec::new()),
            _ if !end => word.extend(c.to_uppercase()),
            _ => {}
        }
    }
    if let Some(last) = found.last_mut()
        && !word.is_empty()
    {
        last.push(word);
    }
    found
}

pub fn destroys(text: &str) -> bool {
    statements(text).iter().any(|words| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let has = |wanted: &str| words.contains(&wanted);
        match words.as_slice() {
            ["DROP", what, ..] => !matches!(*what, "PREPARE" | "TEMPORARY"),
            ["TRUNCATE", ..] => true,
            ["DELETE", "FROM", ..] => !has("WHERE"),
            ["UPDATE", ..] => has("SET") && !has("WHERE"),
            ["ALTER", "TABLE", ..] => has("DROP") && has("COLUMN"),
            ["ALTER", "SYSTEM", ..] | ["ALTER", "USER" | "ROLE", ..] | ["SHUTDOWN", ..] | ["RESET", "MASTER", ..] => {
                true
            }
            ["GRANT", "ALL", ..] | ["PURGE", "BINARY", ..] => true,
            ["CREATE", "USER" | "ROLE", ..] => has("SUPERUSER"),
            ["BEGIN" | "EXPLAIN" | "WITH" | "START", rest @ ..] => {
                rest.contains(&"DELETE") && !rest.contains(&"WHERE")
                    || rest.contains(&"DROP")
                    || rest.contains(&"TRUNCATE")
            }
            _ => false,
        }
    }) || document_store(text)
}

/// `db.users.drop()`, `FLUSHALL`.
fn document_store(text: &str) -> bool {
    const CALLS: &[&str] = &[
        ".drop(",
        "dropDatabase(",
        "dropCollection(",
        "deleteMany({})",
        "deleteMany( {} )",
        ".remove({})",
        ".remove()",
        "shutdownServer(",
        "dropUser(",
        "dropAllUsers(",
        "dropRole(",
        "dropIndexes(",
    ];
    CALLS.iter().any(|call| text.contains(call))
}

/// Statements and client commands that start a program or touch the server's files.
pub fn runs(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    const ANYWHERE: &[&str] = &[
        "TO PROGRAM",
        "FROM PROGRAM",
        "XP_CMDSHELL",
        "SYS_EXEC",
        "SYS_EVAL",
        "INTO OUTFILE",
        "INTO DUMPFILE",
        "LOAD_EXTENSION",
        "PG_READ_FILE",
        "LO_EXPORT",
        "LO_IMPORT",
        "PG_LS_DIR",
        "LOAD_FILE(",
        "WRITEFILE(",
        "READFILE(",
        "PLPYTHONU",
        "PLPYTHON3U",
        "PLPERLU",
        "DBMS_SCHEDULER",
    ];
    if ANYWHERE.iter().any(|words| upper.contains(words)) {
        return true;
    }
    text.split(['\n', ';']).any(|line| {
        let line = line.trim_start();
        [
            "\\!",
            "system ",
            ".shell",
            ".system",
            "\\copy",
            ".load",
            "\\o |",
            "\\g |",
            "!",
            ".import |",
            ".once |",
            ".output |",
        ]
        .iter()
        .any(|start| line.starts_with(start) && (*start != "\\copy" || line.to_ascii_lowercase().contains("program")))
    })
}
