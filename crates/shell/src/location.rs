//! Where a text would run, as far as the caller knows: each fact is known, or not.

#[derive(Clone, Copy, Debug, Default)]
pub struct Location<'l> {
    /// The folder it starts in, absolute and without links where somebody looked.
    pub folder: Option<&'l str>,
    /// The folder that belongs to the agent's work, absolute.
    pub workspace: Option<&'l str>,
    /// Folders of which nothing may be read: the gate's own data.
    pub secrets: &'l [String],
    /// Folders where work is kept on this machine, beside the usual ones.
    pub roots: &'l [String],
}

impl<'l> Location<'l> {
    /// Where reading is part of the work.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &'l str> {
        self.workspace.into_iter().chain(self.roots.iter().map(String::as_str))
    }

    /// Whether an absolute path lies in one of the folders of which nothing may be read, or, where it is read with all
    /// below it, around one. Read from its text: a pattern counts as whatever it may stand for.
    pub(crate) fn holds_secrets(&self, path: &str, tree: bool) -> bool {
        if self.secrets.is_empty() || !path.starts_with('/') {
            return false;
        }
        let steps = steps(path);
        self.secrets.iter().any(|secret| {
            let secret = self::steps(secret);
            let alike = steps.iter().zip(&secret).all(|(step, name)| crate::safe::glob(step, name));
            alike && (steps.len() >= secret.len() || tree)
        })
    }
}

fn steps(path: &str) -> Vec<&str> {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/').filter(|step| !step.is_empty() && *step != ".") {
        match step {
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gates_own_folder_is_secret_with_all_below_it() {
        let secrets = ["/var/gate/data".to_owned()];
        let location = Location { secrets: &secrets, ..Location::default() };
        for path in [
            "/var/gate/data",
            "/var/gate/data/admin.key",
            "/var/gate/x/../data/a",
            "/var/g*/data/*",
            "/var/gate/data/a/b",
        ] {
            assert!(location.holds_secrets(path, false), "{path}");
        }
        for path in ["/var/gate/database", "/var/gate", "/var", "data", "/etc"] {
            assert!(!location.holds_secrets(path, false), "{path}");
        }
        assert!(location.holds_secrets("/var", true) && location.holds_secrets("/", true));
        assert!(!location.holds_secrets("/etc", true));
    }
}
