//! The configuration file, and how flags lie over it: defaults, then the file, then flags (which clap also
//! takes from the environment).

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use countersign_channels::Upstream;
use countersign_doors::http::{Access, HttpConfig};
use countersign_gate::GateConfig;
use countersign_model::KeySecret;
use serde::Deserialize;

use crate::client::{Gate, Place};
use crate::serve::Args;

const DAY_MS: u64 = 24 * 3600 * 1000;
pub const DEFAULT_LISTEN: &str = "127.0.0.1:7391";

/// The file as it is written. A field nobody knows is refused by name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    server: Server,
    limits: Limits,
    retention: Retention,
    metrics: MetricsSection,
    shell: Shell,
    forward: Option<ForwardSection>,
    witness: WitnessSection,
}

/// Another gate whose people are asked too.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForwardSection {
    url: String,
    /// Holds an agent's key of that gate.
    key_file: PathBuf,
    /// What its people are called here: `bob@name`.
    name: Option<String>,
    ca: Option<PathBuf>,
    #[serde(default)]
    insecure: bool,
}

/// Where signed checkpoints of the record go.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WitnessSection {
    file: Option<PathBuf>,
}

/// Rules for commands, beside the built-in ones.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Shell {
    rules: Vec<PathBuf>,
    /// Folders where work is kept, beside the usual ones.
    roots: Vec<PathBuf>,
    /// Action types that mean a command here, beside the built-in ones.
    action_types: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Server {
    listen: Option<SocketAddr>,
    hosts: Vec<String>,
    origins: Vec<String>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    insecure_listen: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    requests_per_key: Option<u32>,
    requests_per_address: Option<u32>,
    max_pending: Option<u64>,
    max_pending_bytes: Option<u64>,
    max_pending_bytes_total: Option<u64>,
    max_connections: Option<usize>,
    max_wait_sec: Option<u64>,
    header_timeout_ms: Option<u64>,
    body_timeout_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Retention {
    days: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MetricsSection {
    access: MetricsAccess,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MetricsAccess {
    #[default]
    Open,
    Admin,
    Off,
}

/// What `serve` runs by.
#[derive(Debug)]
pub struct Config {
    pub listen: SocketAddr,
    pub tls: Option<(PathBuf, PathBuf)>,
    pub http: HttpConfig,
    pub gate: GateConfig,
    /// Files of the user's own rules for commands.
    pub rules: Vec<PathBuf>,
    /// Folders where work is kept on this machine, absolute.
    pub roots: Vec<String>,
    /// Action types that mean a command, beside the built-in ones.
    pub action_types: Vec<String>,
    pub forward: Option<Upstream>,
    pub witness: Option<PathBuf>,
}

impl Config {
    pub fn load(args: &Args) -> anyhow::Result<Self> {
        let file = args.config.as_deref().map(read).transpose()?.unwrap_or_default();
        let default_listen: SocketAddr = DEFAULT_LISTEN.parse().context("the built-in address")?;
        let listen = args.listen.or(file.server.listen).unwrap_or(default_listen);
        let certificate = args.tls_cert.clone().or(file.server.tls_cert);
        let key = args.tls_key.clone().or(file.server.tls_key);
        let tls = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                bail!("TLS needs both a certificate and its key; give `--tls-cert` and `--tls-key`")
            }
        };
        if !may_listen(listen.ip(), tls.is_some(), args.insecure_listen || file.server.insecure_listen) {
            bail!(
                "`{listen}` can be reached from other machines, and without TLS keys would cross the network in the clear; \
                 give `--tls-cert` and `--tls-key`, listen on 127.0.0.1, or say `--insecure-listen` behind a proxy that does TLS"
            );
        }
        let defaults = HttpConfig::default();
        let http = HttpConfig {
            hosts: [file.server.hosts, args.host.clone()].concat(),
            addresses: vec![listen.ip()],
            origins: [file.server.origins, args.origin.clone()].concat(),
            requests_per_key: file.limits.requests_per_key.unwrap_or(defaults.requests_per_key),
            requests_per_address: file.limits.requests_per_address.unwrap_or(defaults.requests_per_address),
            max_connections: file.limits.max_connections.unwrap_or(defaults.max_connections),
            max_wait_secs: file.limits.max_wait_sec.unwrap_or(defaults.max_wait_secs),
            header_timeout_ms: file.limits.header_timeout_ms.unwrap_or(defaults.header_timeout_ms),
            body_timeout_ms: file.limits.body_timeout_ms.unwrap_or(defaults.body_timeout_ms),
            metrics: match file.metrics.access {
                MetricsAccess::Open => Access::Open,
                MetricsAccess::Admin => Access::Admin,
                MetricsAccess::Off => Access::Off,
            },
            url: None,
        };
        if file.retention.days == Some(0) {
            bail!("`retention.days` is at least 1; leave it out to keep everything");
        }
        let gate = GateConfig {
            max_pending: file.limits.max_pending.unwrap_or(GateConfig::default().max_pending),
            max_pending_bytes: file.limits.max_pending_bytes.unwrap_or(GateConfig::default().max_pending_bytes),
            max_pending_bytes_total: file
                .limits
                .max_pending_bytes_total
                .unwrap_or(GateConfig::default().max_pending_bytes_total),
            retention_ms: args.retention_days.or(file.retention.days).map(|days| days.saturating_mul(DAY_MS)),
        };
        // As written in the file: from the file's own folder.
        let beside = args.config.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let rules = file.shell.rules.iter().map(|rules| beside.join(rules)).collect();
        let forward = file.forward.map(|section| section.upstream(beside)).transpose()?;
        let witness = args.witness.clone().or(file.witness.file.map(|file| beside.join(file)));
        let roots = file.shell.roots.iter().map(|root| work_root(root)).collect::<anyhow::Result<_>>()?;
        let action_types = file.shell.action_types;
        Ok(Self { listen, tls, http, gate, rules, roots, action_types, forward, witness })
    }
}

impl ForwardSection {
    fn upstream(self, beside: &Path) -> anyhow::Result<Upstream> {
        let place = Place::parse_url(&self.url)
            .map_err(|why| anyhow!("`forward.url` cannot be used: {why}; write it as `https://HOST:PORT`"))?;
        if place.is_exposed() && !self.insecure {
            bail!(
                "`forward.url` is {place}: the key and every command would cross the network in the clear; \
                 use `https`, or say `insecure = true` where something else protects the way"
            );
        }
        let path = beside.join(&self.key_file);
        let key = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let Place::Url { host, .. } = &place else { bail!("`forward.url` is no address") };
        let name = self.name.unwrap_or_else(|| host.clone());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            bail!("`forward.name` is 1 to 64 letters, digits, `-`, `_`, `.` and `:`");
        }
        let (dial, url) = Gate::new(place, self.ca.map(|ca| beside.join(ca)).as_deref())?.dialer("/gateway");
        Ok(Upstream { name, url, key: KeySecret::presented(key.trim()), dial })
    }
}

fn read(path: &Path) -> anyhow::Result<File> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    toml::from_str(&text).with_context(|| format!("`{}` is not a configuration", path.display()))
}

/// Beyond loopback only with TLS, or when the operator says that something else takes care of it.
fn work_root(root: &Path) -> anyhow::Result<String> {
    let text = root.to_str().filter(|_| root.is_absolute());
    text.map(str::to_owned)
        .ok_or_else(|| anyhow!("`{}` in `[shell] roots` is not absolute; write it from `/`", root.display()))
}

fn may_listen(address: IpAddr, tls: bool, insecure: bool) -> bool {
    address.is_loopback() || tls || insecure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_loopback_needs_tls_or_a_word() {
        let (near, far): (IpAddr, IpAddr) = ("127.0.0.1".parse().unwrap(), "0.0.0.0".parse().unwrap());
        assert!(may_listen(near, false, false));
        assert!(!may_listen(far, false, false));
        assert!(may_listen(far, true, false) && may_listen(far, false, true));
    }

    #[test]
    fn an_unknown_field_is_refused_by_name_and_place() {
        let error =
            toml::from_str::<File>("[server]\nlisten = \"127.0.0.1:1\"\nhost = \"x\"\n").unwrap_err().to_string();
        assert!(error.contains("host") && error.contains("line 3"), "{error}");
    }
}
