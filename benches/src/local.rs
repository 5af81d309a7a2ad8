//! A gate inside this process on the embedded store, with the callers a benchmark needs.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use countersign_gate::{AdminHandle, AgentHandle, Caller, Gate, GateConfig, NewRequest, SystemClock};
use countersign_ledger::{SqliteLedger, Store};
use countersign_model::{
    Action, ActionType, AgentWords, ChannelChoice, Door, Policy, Role, Security, Target, TermsAsked,
};
use tokio::task::JoinSet;

const DAY_MS: u64 = 86_400_000;
/// The profile under which everything is allowed at once.
const FULL: &str = "full";

#[derive(Debug)]
pub struct LocalGate {
    pub gate: Gate,
    /// Its requests wait for a person.
    pub asking: Arc<AgentHandle>,
    /// Its requests are allowed by policy, so they are finished when they are made.
    pub finishing: Arc<AgentHandle>,
}

impl LocalGate {
    pub async fn open(store: &Path) -> anyhow::Result<Self> {
        let store = Store::open(store)?;
        let clock = Arc::new(SystemClock::starting_after(store.last_event_at()));
        let ledger = SqliteLedger::start(store, clock.clone())?;
        let config = GateConfig {
            max_pending: u64::MAX,
            max_pending_bytes: u64::MAX,
            max_pending_bytes_total: u64::MAX,
            retention_ms: None,
        };
        let gate = Gate::start(Arc::new(ledger), clock, Vec::new(), config).await?;
        let secret = gate.first_admin_key("bench").await?;
        let Caller::Admin(admin) = gate.authenticate(&secret, Door::Http)? else { bail!("no admin") };
        let base = admin.policy(FULL).await?.stored.hash;
        let policy = Policy { security: Security::Full, ..Policy::default() };
        admin.put_policy(FULL, policy, base, Vec::new()).await?;
        let asking = agent(&gate, &admin, "default").await?;
        let finishing = agent(&gate, &admin, FULL).await?;
        Ok(Self { gate, asking, finishing })
    }

    /// Lets go of the store once the tasks that follow it have ended.
    pub async fn close(self) {
        self.gate.close();
        drop(self);
        tokio::task::yield_now().await;
    }
}

async fn agent(gate: &Gate, admin: &AdminHandle, profile: &str) -> anyhow::Result<Arc<AgentHandle>> {
    let (_, secret) = admin.create_key("bench-agent", Role::Agent, profile, None).await?;
    match gate.authenticate(&secret, Door::Http)? {
        Caller::Agent(agent) => Ok(Arc::new(agent)),
        other => bail!("an agent's key is for {:?}", other.role()),
    }
}

/// The same request as `bench load` sends.
pub fn request(lane: usize, number: u64) -> anyhow::Result<NewRequest> {
    let action_type = ActionType::new("http_request").context("the action type")?;
    Ok(NewRequest {
        engine: None,
        session_id: format!("sess_{lane}"),
        context_id: None,
        alias: None,
        action: Action::Custom {
            action_type: action_type.clone(),
            title: "POST request".to_owned(),
            preview: format!("POST https://api.example.com/pay?order={lane}-{number}"),
            options: Vec::new(),
        },
        action_type,
        words: AgentWords::default(),
        channel: ChannelChoice::Any,
        target: Target::default(),
        terms: TermsAsked::default(),
        expires_in_ms: Some(DAY_MS),
        default_ms: DAY_MS,
        idempotency: None,
        terminal: None,
        take: countersign_gate::Take::No,
    })
}

/// `count` requests from `lanes` concurrent callers.
pub async fn fill(agent: &Arc<AgentHandle>, count: u64, lanes: usize) -> anyhow::Result<()> {
    let mut callers = JoinSet::new();
    for lane in 0..lanes {
        let (agent, share) = (agent.clone(), count / lanes as u64);
        callers.spawn(async move {
            for number in 0..share {
                agent.request(request(lane, number)?).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    Ok(())
}
