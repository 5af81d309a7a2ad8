//! Rights of files and of containers, as they are written on a command line.

pub fn octal(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(['=', '+', '-']);
    ((1..=5).contains(&digits.len()) && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte))).then_some(digits)
}

pub fn is_world_mode(text: &str) -> bool {
    if let Some(digits) = octal(text) {
        return digits.len() >= 3 && digits.ends_with(['2', '3', '6', '7']);
    }
    text.split(',').any(|part| {
        part.find(['+', '=']).is_some_and(|at| {
            let (who, what) = part.split_at(at);
            what.contains('w') && (who.contains('o') || who.contains('a'))
        })
    })
}

pub fn is_setuid_mode(text: &str) -> bool {
    if let Some(digits) = octal(text) {
        let digits = digits.trim_start_matches('0');
        return digits.len() == 4 && digits.starts_with(['2', '4', '6', '3', '5', '7']);
    }
    text.split(',')
        .any(|part| part.find(['+', '=']).is_some_and(|at| part.get(at..).is_some_and(|what| what.contains('s'))))
}

pub fn is_zero_mode(text: &str) -> bool {
    octal(text).is_some_and(|digits| digits.bytes().all(|byte| byte == b'0'))
        || matches!(text, "a-rwx" | "a=" | "ugo-rwx" | "-rwx" | "u-rwx" | "=")
}

/// `-v /:/host`, `type=bind,source=/,…`, the container engine's own socket.
pub fn is_whole_mount(text: &str) -> bool {
    let source = if text.contains("source=") || text.contains("src=") {
        text.split(',')
            .find_map(|part| part.strip_prefix("source=").or_else(|| part.strip_prefix("src=")))
            .unwrap_or("")
    } else {
        text.split(':').next().unwrap_or(text)
    };
    let read_only = text.ends_with(":ro");
    let tail = source.trim_end_matches('/');
    source == "/"
        || (!source.is_empty() && tail.is_empty())
        || matches!(
            tail,
            "/etc"
                | "/root"
                | "/home"
                | "/var/run/docker.sock"
                | "/run/docker.sock"
                | "/proc"
                | "/sys"
                | "/dev"
                | "/boot"
                | "/var"
                | "/var/lib"
                | "/run"
                | "/usr"
        )
        || tail.ends_with("docker.sock")
        || (!read_only && matches!(tail, "~" | "$HOME"))
        || tail.ends_with("/.ssh")
}
