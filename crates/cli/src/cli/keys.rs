//! `countersign keys`: making, listing and revoking keys. A key is printed once, alone on stdout.

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use countersign_model::{Role, escape_line};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{self, Request, encode};
use crate::locate::{Caller, Locator, Offline};
use crate::output::{self, Style};
use crate::table::{Column, Table};
use crate::when;

const DAY_SECS: u64 = 86_400;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign keys create --role agent --name ci > ci.key\n  countersign keys list\n  countersign keys revoke key_0123456789abcdef0123456789abcdef"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a key and print it, alone, on stdout
    #[command(after_help = "Example:\n  countersign keys create --role agent --name ci --expires 90 > ci.key")]
    Create {
        /// What it may do
        #[arg(long, value_parser = PossibleValuesParser::new(Role::ALL.map(Role::as_str)))]
        role: String,
        /// Whose it is; stands on the record
        #[arg(long)]
        name: String,
        /// The policy that rules its requests
        #[arg(long)]
        profile: Option<String>,
        /// After how many days it stops working [default: never]
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36_500))]
        expires: Option<u64>,
    },
    /// List the keys, never the secrets
    #[command(after_help = "Example:\n  countersign keys list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a key useless
    #[command(after_help = "Example:\n  countersign keys revoke key_0123456789abcdef0123456789abcdef")]
    Revoke {
        /// The key's id, as `keys list` shows it
        id: String,
    },
}

#[derive(Deserialize)]
struct Made {
    key_id: String,
    key: String,
}

#[derive(Debug, Deserialize)]
struct Listed {
    key_id: String,
    client_id: String,
    name: String,
    role: String,
    profile: String,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
}

const COLUMNS: [Column; 6] = [
    Column { title: "ID", least: 12, spare: 0 },
    Column { title: "NAME", least: 8, spare: 0 },
    Column { title: "ROLE", least: 8, spare: 4 },
    Column { title: "PROFILE", least: 7, spare: 2 },
    Column { title: "CLIENT", least: 12, spare: 1 },
    Column { title: "STATE", least: 7, spare: 3 },
];

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person_or(Offline::NewStore)?;
    match &args.verb {
        Verb::Create { role, name, profile, expires } => {
            let mut body = json!({"name": name, "role": role});
            if let Some(fields) = body.as_object_mut() {
                fields.extend(profile.as_ref().map(|profile| ("profile".to_owned(), json!(profile))));
                fields.extend(expires.map(|days| ("expires_in_sec".to_owned(), json!(days * DAY_SECS))));
            }
            create(&caller, body)
        }
        Verb::List { json } => {
            let value: Value = caller.call(Request::get("/v1/keys"))?;
            if *json { output::line(&output::json(&value)) } else { print(&value) }
        }
        Verb::Revoke { id } => {
            let _: Value = caller.call(Request::delete(format!("/v1/keys/{}", encode(id))))?;
            output::note(&format!("revoked: {}", escape_line(id)));
            Ok(())
        }
    }
}

fn create(caller: &Caller, body: Value) -> anyhow::Result<()> {
    let made: Made = caller.call(Request::post("/v1/keys", body))?;
    if let Err(error) = output::line(&made.key) {
        // Nobody can have it any more: it should not work either.
        let revoked: Result<Value, _> = caller.call(Request::delete(format!("/v1/keys/{}", encode(&made.key_id))));
        let what = if revoked.is_ok() { "was revoked again" } else { "still works; revoke it" };
        anyhow::bail!("the key could not be printed and {what} ({}): {error:#}", escape_line(&made.key_id));
    }
    let id = escape_line(&made.key_id);
    output::note("this is the only time the key is shown; give it to its holder in COUNTERSIGN_KEY");
    output::note(&format!("take it back with `countersign keys revoke {id}`"));
    Ok(())
}

fn print(value: &Value) -> anyhow::Result<()> {
    let keys: Option<Vec<Listed>> = value.get("keys").and_then(|keys| Vec::deserialize(keys).ok());
    let keys = keys.ok_or_else(|| client::Error::Malformed("the gate's keys are not as documented".to_owned()))?;
    let mut table = Table::new(&COLUMNS);
    let now = when::now();
    for key in &keys {
        let state = match (key.revoked_at, key.expires_at) {
            (Some(_), _) => "revoked".to_owned(),
            (None, Some(at)) if at <= now => "expired".to_owned(),
            (None, Some(at)) => format!("{} left", when::span(at - now)),
            (None, None) => "good".to_owned(),
        };
        let texts = [&key.key_id, &key.name, &key.role, &key.profile, &key.client_id];
        table.row(texts.into_iter().map(|text| escape_line(text)).chain([state]).collect());
    }
    let fitted = table.fit(output::columns(), Style::of_stdout());
    output::write(&fitted.text)?;
    if fitted.cut {
        output::note("some is cut (…): see it whole with `countersign keys list --json`");
    }
    Ok(())
}
