//! `countersign pair`: a one-time code, as text and to be scanned, with which a device becomes an approver; and the
//! devices that did.

use std::io::IsTerminal as _;

use countersign_model::escape_line;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{self, Request, encode};
use crate::locate::{Locator, Offline};
use crate::output::{self, Style};
use crate::table::{Column, Table};
use crate::when;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign pair --name ann\n  countersign pair --list\n  countersign pair --revoke key_0123456789abcdef0123456789abcdef"
)]
pub struct Args {
    /// Whose device it will be; stands on the record [default: whose key this is]
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    name: Option<String>,
    /// List the paired devices
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Take a device's pairing back, by the id that `--list` shows
    #[arg(long, value_name = "ID")]
    revoke: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct Made {
    code: String,
    name: String,
    expires_at_ms: i64,
    hub_id: String,
    gateway: String,
}

/// What a device reads out of the picture.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Scanned<'a> {
    gateway: &'a str,
    hub_id: &'a str,
    token: &'a str,
    expires: i64,
}

#[derive(Debug, Deserialize)]
struct Listed {
    key_id: String,
    name: String,
    created_at: i64,
    revoked_at: Option<i64>,
}

const COLUMNS: [Column; 4] = [
    Column { title: "ID", least: 12, spare: 0 },
    Column { title: "NAME", least: 8, spare: 0 },
    Column { title: "PAIRED", least: 8, spare: 2 },
    Column { title: "STATE", least: 7, spare: 3 },
];

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    if let Some(id) = &args.revoke {
        return revoke(locator, id, args.json);
    }
    if args.list {
        return list(locator, args.json);
    }
    let body = args.name.as_ref().map_or_else(|| json!({}), |name| json!({"name": name}));
    // A code lives in the gate that runs: without one there is nothing to pair with.
    let value: Value = locator.person()?.call(Request::post("/v1/pairings", body))?;
    if args.json {
        return output::line(&output::json(&value));
    }
    let made = Made::deserialize(&value)
        .map_err(|_| client::Error::Malformed("the gate's pairing code is not as documented".to_owned()))?;
    show(&made)
}

fn show(made: &Made) -> anyhow::Result<()> {
    let scanned =
        Scanned { gateway: &made.gateway, hub_id: &made.hub_id, token: &made.code, expires: made.expires_at_ms };
    let picture = picture(&serde_json::to_string(&scanned)?, std::io::stdout().is_terminal())?;
    output::write(&picture)?;
    output::line(&made.code)?;
    let left = made.expires_at_ms.div_euclid(1000) - when::now();
    output::note(&format!(
        "scan it, or type the code, within {}; it pairs one device, whose answers will be {}'s",
        when::span(left.max(0)),
        escape_line(&made.name)
    ));
    output::note(&format!("gate {}, hub {}", escape_line(&made.gateway), escape_line(&made.hub_id)));
    output::note("see the devices with `countersign pair --list`, take one back with `countersign pair --revoke ID`");
    Ok(())
}

/// Two modules a character, with the quiet zone a reader needs. On a terminal it is black on white whatever the colours
/// are there: many readers do not see it the other way round.
fn picture(text: &str, on_terminal: bool) -> anyhow::Result<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L)?;
    let drawn = code.render::<Dense1x2>().build();
    let (before, after) = if on_terminal { ("\x1b[30;107m", "\x1b[0m") } else { ("", "") };
    Ok(drawn.lines().map(|line| format!("{before}{line}{after}\n")).collect())
}

fn list(locator: &Locator, as_json: bool) -> anyhow::Result<()> {
    let value: Value = locator.person_or(Offline::Store)?.call(Request::get("/v1/keys"))?;
    let keys = value.get("keys").and_then(Value::as_array).cloned().unwrap_or_default();
    let devices: Vec<Value> = keys.into_iter().filter(|key| key["paired"] == true).collect();
    if as_json {
        return output::line(&output::json(&json!({"devices": devices})));
    }
    let mut table = Table::new(&COLUMNS);
    for device in &devices {
        let device = Listed::deserialize(device)
            .map_err(|_| client::Error::Malformed("the gate's keys are not as documented".to_owned()))?;
        let state = if device.revoked_at.is_some() { "revoked" } else { "good" };
        let ago = format!("{} ago", when::span((when::now() - device.created_at).max(0)));
        table.row(vec![escape_line(&device.key_id), escape_line(&device.name), ago, state.to_owned()]);
    }
    let fitted = table.fit(output::columns(), Style::of_stdout());
    output::write(&fitted.text)?;
    if fitted.cut {
        output::note("some is cut (…): see it whole with `countersign pair --list --json`");
    }
    Ok(())
}

fn revoke(locator: &Locator, id: &str, as_json: bool) -> anyhow::Result<()> {
    let caller = locator.person_or(Offline::Store)?;
    let value: Value = caller.call(Request::delete(format!("/v1/keys/{}", encode(id))))?;
    if as_json {
        return output::line(&output::json(&value));
    }
    output::note(&format!("revoked: {}; if it was connected, it no longer is", escape_line(id)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_fits_a_terminal_and_is_square() {
        let scanned = Scanned {
            gateway: "https://gate.example.org:8443",
            hub_id: "hub_0123456789abcdef0123456789abcdef",
            token: "ABCD-EFGH-JKLM-NPQR",
            expires: 1_738_700_060_000,
        };
        let picture = picture(&serde_json::to_string(&scanned).unwrap(), false).unwrap();
        let widths: Vec<usize> = picture.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0] && *width < 80), "{widths:?}");
        assert_eq!(widths.len(), widths[0].div_ceil(2));
    }
}
