//! Words that name a shell, a command to run, or a setting by which git runs one.

use super::facts::base_name;

pub fn first_word(text: &str) -> &str {
    base_name(text.split([' ', '\t']).find(|word| !word.is_empty()).unwrap_or(text))
}

pub fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash"
            | "zsh"
            | "dash"
            | "ash"
            | "ksh"
            | "mksh"
            | "fish"
            | "csh"
            | "tcsh"
            | "rbash"
            | "pwsh"
            | "powershell"
            | "cmd"
            | "sh.exe"
    )
}

/// Text in which a program would find a shell to start: `/bin/sh`, `;/bin/sh`, `exec sh -i`, `%(/bin/sh)`.
pub fn starts_shell(text: &str) -> bool {
    const PATHS: &[&str] =
        &["/bin/sh", "/bin/bash", "/bin/zsh", "/bin/dash", "/bin/ash", "/bin/ksh", "/usr/bin/env sh", "/bin/busybox"];
    // Nearly every word is out here: a shell is named by a path, or has an option after it.
    let (mut slash, mut blank) = (false, false);
    for byte in text.bytes() {
        slash |= byte == b'/';
        blank |= byte.is_ascii_whitespace() || !byte.is_ascii();
    }
    if !slash && !blank {
        return false;
    }
    let paths: &[&str] = if slash && text.contains("bin/") { PATHS } else { &[] };
    for path in paths {
        for (at, _) in text.match_indices(path) {
            let before = text.get(..at).unwrap_or("");
            let before = before.strip_suffix("/usr").or_else(|| before.strip_suffix("/usr/local")).unwrap_or(before);
            let after = text.get(at + path.len()..).and_then(|rest| rest.chars().next());
            let ends = after.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')));
            if ends && leads_to_program(before) {
                return true;
            }
        }
    }
    let bare = text.trim_start_matches(['!', ':', ';', '|', ' ']);
    let mut words = bare.split_whitespace();
    let shell = words.next().is_some_and(|word| is_shell(base_name(word)));
    shell
        && words.next().is_some_and(|word| {
            matches!(word, "-c" | "-i" | "-s" | "-p" | "-l" | "#" | "1>&0" | "0<&2" | "<&3")
                || word.starts_with("0<")
                || word.starts_with("1<")
        })
}

pub fn leads_to_program(before: &str) -> bool {
    // The line of a recipe: after a tab, and after the marks that say how `make` runs it.
    if before.trim_end_matches(['-', '@', '+']).ends_with('\t') {
        return true;
    }
    let trimmed = before.trim_end();
    let Some(last) = trimmed.chars().last() else { return true };
    if trimmed.len() == before.len() {
        return !(last.is_alphanumeric() || matches!(last, '.' | '/' | '_' | '-' | '~'));
    }
    matches!(last, '!' | ';' | '|' | '(' | '=' | '{' | '&')
        || ["exec", "spawn", "shell", "system", "run", "call", "cmd", "command", "Command", "env"]
            .iter()
            .any(|word| trimmed.ends_with(word))
}

/// A value that names a command to run, other than the few harmless ones that people give.
pub fn is_command(value: &str) -> bool {
    let mut words = value.split([' ', '\t']).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    if first.starts_with('$') {
        return false;
    }
    let harmless = HARMLESS_COMMANDS.contains(&base_name(first))
        && (!first.contains('/') || first.starts_with("/usr/") || first.starts_with("/bin/"));
    !harmless || value.contains(['|', ';', '&', '`', '!', '\n']) || value.contains("$(")
}

/// What editors, pagers and clients take as "run this in a shell".
pub fn is_escape(text: &str) -> bool {
    text.split(['\n', ';', '|']).any(|line| {
        let line = line.trim_start_matches([' ', '\t', ':', '+']);
        let line = line.strip_prefix("silent ").or_else(|| line.strip_prefix("sil ")).unwrap_or(line);
        let bang = line
            .strip_prefix("%!")
            .or_else(|| line.strip_prefix("r !"))
            .or_else(|| line.strip_prefix('!'))
            .or_else(|| line.strip_prefix("\\!"));
        bang.is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | ' ' | '~' | '.' | '$'))
                || rest.is_empty()
        }) || [
            "shell ",
            "python ",
            "py3 ",
            "python3 ",
            "pythonx ",
            "lua ",
            "perl ",
            "ruby ",
            "py ",
            "system ",
            ".shell ",
            ".system ",
            "term ",
            "terminal ",
            "call system(",
            "exe",
            "set shell=",
            "make",
            "pipe ",
            "\\! ",
        ]
        .iter()
        .any(|start| {
            line.starts_with(start) && (*start != "exe" || line.contains('!')) && (*start != "make" || line == "make")
        }) || line == "shell"
            || line == "sh"
            || line.starts_with("sh ")
            || ["system(", "jobstart(", "os.execute", "os.system", "libcall(", "io.popen"]
                .iter()
                .any(|call| line.contains(call))
    })
}

/// `core.pager=…` and the other settings by which git runs what they say.
pub fn is_git_setting(text: &str) -> bool {
    let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
    if key.contains([' ', '/']) || !key.contains('.') {
        return false;
    }
    let key = key.to_ascii_lowercase();
    let (section, rest) = key.split_once('.').unwrap_or((&key, ""));
    let last = rest.rsplit('.').next().unwrap_or(rest);
    let off = value.is_some_and(|value| {
        matches!(
            value,
            "" | "true"
                | "false"
                | "0"
                | "1"
                | "no"
                | "yes"
                | "cat"
                | "less"
                | "vim"
                | "vi"
                | "nano"
                | "delta"
                | ":"
                | "/dev/null"
                | "code --wait"
                | "less -R"
                | "less -FRX"
                | "emacs"
                | "store"
                | "cache"
                | "osxkeychain"
                | "manager"
                | "libsecret"
        )
    });
    if off {
        return false;
    }
    match section {
        "core" => matches!(
            last,
            "pager"
                | "editor"
                | "sshcommand"
                | "fsmonitor"
                | "hookspath"
                | "gitproxy"
                | "askpass"
                | "alternaterefscommand"
                | "worktree"
                | "attributesfile"
        ),
        "alias" => value.is_some_and(|value| value.starts_with('!')),
        "pager" | "man" | "browser" | "guitool" => !matches!(last, "branch" | "tag") || value.is_some_and(is_command),
        "diff" => matches!(last, "external" | "command" | "textconv"),
        "difftool" | "mergetool" => matches!(last, "cmd" | "path"),
        "merge" => last == "driver",
        "filter" => matches!(last, "clean" | "smudge" | "process"),
        "credential" => last == "helper",
        "gpg" => last == "program",
        "sequence" => last == "editor",
        "uploadpack" => last == "packobjectshook",
        "remote" => matches!(last, "uploadpack" | "receivepack" | "vcs"),
        "receive" => last == "procreceiverefs",
        "submodule" => last == "update" && value.is_none_or(|value| value.starts_with('!')),
        "protocol" => last == "allow" && value.is_none_or(|value| value == "always"),
        "include" | "includeif" => last == "path",
        "init" => last == "templatedir",
        "web" => last == "browser",
        "interactive" => last == "difffilter",
        "trailer" => matches!(last, "command" | "cmd"),
        "sendemail" => matches!(last, "sendmailcmd" | "smtpserver" | "tocmd" | "cccmd"),
        "ssh" => last == "variant",
        "instaweb" => last == "httpd",
        "url" => matches!(last, "insteadof" | "pushinsteadof"),
        "http" => last == "sslverify" && value.is_none_or(|value| value == "false"),
        _ => false,
    }
}

const HARMLESS_COMMANDS: &[&str] = &[
    "cat",
    "less",
    "more",
    "most",
    "bat",
    "batcat",
    "delta",
    "diff-so-fancy",
    "vim",
    "vi",
    "nvim",
    "nano",
    "pico",
    "micro",
    "hx",
    "helix",
    "emacs",
    "emacsclient",
    "code",
    "subl",
    "ed",
    "true",
    "false",
    ":",
    "echo",
    "head",
    "tail",
    "col",
    "most",
    "kak",
    "zed",
    "firefox",
    "open",
    "xdg-open",
    "google-chrome",
    "chromium",
    "none",
    "ssh",
    "sccache",
    "ccache",
    "cachepot",
    "clippy-driver",
    "gvim",
    "mate",
    "code-insiders",
    "cursor",
    "never",
    "auto",
    "store",
    "cache",
    "osxkeychain",
    "manager",
    "manager-core",
    "libsecret",
    "wslview",
    "w3m",
    "lynx",
    "links",
    "tee",
    "none",
];
