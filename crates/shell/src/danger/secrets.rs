//! Which paths hold what gives rights to whoever has it.

use super::facts::Piece;
use super::paths::{Path, fits};
use super::test::is_path;

/// Keys, passwords, tokens: reading them is a danger by itself.
pub fn is_secret(piece: &Piece<'_>) -> bool {
    if !is_path(piece.text) || piece.text.ends_with(".pub") {
        return false;
    }
    let path = Path::read(piece);
    let name = path.name();
    SECRET_NAMES.iter().any(|entry| fits(entry, name) && !is_vague(name))
        || (!path.parts.is_empty() && SECRETS.iter().any(|entry| path.is_under(entry)))
}

/// A pattern such as `*.json` that names no file in particular.
pub fn is_vague(name: &str) -> bool {
    name.find(['*', '?', '[']).is_some_and(|at| at < 2)
}

/// What has no business on another machine: secrets, a home folder, the system's own files.
pub fn is_private(piece: &Piece<'_>) -> bool {
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

/// Anywhere, by their names.
const SECRET_NAMES: &[&str] = &[
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    "privkey.pem",
    "private_key.pem",
    "private.pem",
    "*.kdbx",
    "*.p12",
    "*.pfx",
    "*.keytab",
    "*.ppk",
    "key4.db",
    "logins.json",
    "wallet.dat",
    "credentials.tfrc.json",
    ".git-credentials",
    ".pgpass",
    ".netrc",
    "_netrc",
    ".vault-token",
    ".my.cnf",
    ".htpasswd",
    "secring.gpg",
    "application_default_credentials.json",
    "service-account.json",
    "service_account.json",
    ".pypirc",
    "*.kubeconfig",
];

const SECRETS: &[&str] = &[
    "~/.ssh/id_*",
    "~/.ssh/identity",
    "~/.ssh/*.pem",
    "~/.ssh/*_key",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/master.passwd",
    "/etc/ssh/ssh_host_*_key",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/kubernetes/admin.conf",
    "/etc/letsencrypt/live/*/privkey.pem",
    "/etc/letsencrypt/archive",
    "/var/run/secrets",
    "/run/secrets",
    "/proc/*/environ",
    "/proc/*/mem",
    "/proc/kcore",
    "/dev/mem",
    "/dev/kmem",
    "/var/backups/shadow.bak",
    "/var/lib/docker/volumes",
    "/etc/security/opasswd",
    "/etc/rancher/k3s/k3s.yaml",
    ".ssh/id_*",
    ".aws/credentials",
    ".aws/sso/cache",
    ".aws/cli/cache",
    ".kube/config",
    ".docker/config.json",
    ".config/gh/hosts.yml",
    ".config/gcloud/credentials.db",
    ".config/gcloud/access_tokens.db",
    ".config/gcloud/legacy_credentials",
    ".config/gcloud/application_default_credentials.json",
    ".azure/accessTokens.json",
    ".azure/msal_token_cache.json",
    ".azure/msal_token_cache.bin",
    ".gnupg/private-keys-v1.d",
    ".password-store",
    ".local/share/keyrings",
    "Library/Keychains",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".config/hub",
    ".composer/auth.json",
    ".config/git/credentials",
    ".config/op",
    ".bitcoin",
    ".ethereum/keystore",
    ".electrum/wallets",
    ".config/solana/id.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".config/rclone/rclone.conf",
    ".config/doctl/config.yaml",
    ".config/heroku",
    ".terraform.d/credentials.tfrc.json",
    ".fly/config.yml",
    ".config/google-chrome/*/Cookies",
    ".config/google-chrome/*/Login Data",
    ".mozilla/firefox/*/cookies.sqlite",
    ".mozilla/firefox/*/logins.json",
    ".config/chromium/*/Cookies",
    "Chrome/Default/Cookies",
    "Chrome/Default/Login Data",
    ".config/Slack/Cookies",
    ".openclaw/credentials",
    ".m2/settings-security.xml",
    ".npmrc/_authToken",
    ".local/share/countersign",
    ".config/sops/age/keys.txt",
    ".config/containers/auth.json",
    ".s3cfg",
    ".boto",
    ".oci/oci_api_key.pem",
    ".ansible/vault_pass",
    ".minikube/profiles/*/client.key",
];
