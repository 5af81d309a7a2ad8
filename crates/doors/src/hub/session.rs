//! One device's connection, from registration to its end, the same over either transport.

use std::sync::Arc;

use countersign_gate::{Caller, Standing};
use serde_json::{Value, json};

use super::Hub;
use super::asks::Asks;
use super::devices::{Device, Who};
use super::handshake::{Handshake, IN_USE, Refusal, UNAVAILABLE};
use super::rpc;
use super::sink::Sink;
use super::wire::{
    Envelope, LIST_DEVICES, Message, PING, PONG, RECEIVE, REQUEST, RESPONSE, RpcError, RpcRequest, RpcResponse, SEND,
    SEND_ERROR, SendError, is_the_hubs_own, message_id,
};

/// Dropping it ends the registration, however the connection came to its end.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) hub: Hub,
    pub(super) hub_id: Arc<str>,
    pub(super) device: Arc<Device>,
    pub(super) asks: Arc<Asks>,
}

/// What a device is told in return for an event, where its transport has a way to do so.
pub(super) type Acknowledgement = Option<Value>;

impl Session {
    /// Lets a device in, and says so to it.
    pub(super) async fn open(hub: &Hub, handshake: Handshake, sink: Sink) -> Result<Self, Refusal> {
        let hub_id = hub.id().await.map_err(|error| {
            tracing::warn!(%error, "the hub's id cannot be read");
            handshake.refused(UNAVAILABLE)
        })?;
        let (kind, who) = handshake.authenticate(&hub.0.gate).map_err(|error| handshake.refused(error))?;
        let address = handshake.address();
        let device = Arc::new(Device::new(handshake.device_id.clone(), address, kind, who, sink));
        if !hub.0.devices.add(device.clone()) {
            return Err(handshake.refused(IN_USE));
        }
        Ok(Self { hub: hub.clone(), hub_id, device, asks: Arc::default() })
    }

    /// Whether the gate knows who this is.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self.device.who(), Who::Unverified)
    }

    /// Returns once the device must go: its key no longer holds, another took its place, the gate closes.
    pub(super) async fn over(&self) {
        while !self.device.is_over() {
            let standing = self.standing();
            tokio::select! {
                () = standing.lost() => self.device.end(),
                () = self.device.stirred.notified() => {}
            }
        }
    }

    fn standing(&self) -> Standing {
        let gate = &self.hub.0.gate;
        gate.standing(&match self.device.who() {
            Who::Approver(approver) => Caller::Approver(approver),
            Who::Agent(agent) => Caller::Agent(agent),
            // Nothing to lose but the gate itself.
            Who::Unverified => Caller::Agent(gate.local_agent()),
        })
    }

    /// One event of the device's. They are taken one after the other, as they came.
    pub(super) async fn hear(&self, event: &str, data: Value) -> Acknowledgement {
        if self.device.is_over() {
            self.refuse(SendError::not_registered(String::new())).await;
            return None;
        }
        match event {
            SEND => match Message::read(data) {
                Ok(message) => self.send(message).await,
                Err(error) => self.refuse(error).await,
            },
            LIST_DEVICES => return Some(self.list_devices()),
            PING => self.answer(PONG, &json!({})).await,
            unknown => {
                let known = "events are `send`, `list-devices` and `ping`";
                let shown: String = unknown.chars().take(64).collect();
                self.refuse(SendError::invalid(String::new(), format!("there is no event `{shown}`; {known}"))).await;
            }
        }
        None
    }

    /// Something that is no event at all.
    pub(super) async fn garbled(&self) {
        let error = "not understood; send `{\"event\": …, \"data\": …}` as JSON text";
        self.refuse(SendError::invalid(String::new(), error)).await;
    }

    async fn send(&self, message: Message) {
        if message.from != self.device.id {
            let error = "`from` is another device than this connection's";
            return self.refuse(SendError::invalid(message.id, error)).await;
        }
        if message.to != *self.hub_id {
            return self.route(message).await;
        }
        if message.action != REQUEST {
            let error = format!("the hub takes the action `{REQUEST}` and no other");
            return self.refuse(SendError::invalid(message.id, error)).await;
        }
        match serde_json::from_value::<RpcRequest>(message.payload) {
            Ok(request) if !request.request_id.is_empty() => self.request(request).await,
            Ok(_) | Err(_) => {
                let error = "the payload of a request is `{requestId, method, params?}`";
                self.refuse(SendError::invalid(message.id, error)).await;
            }
        }
    }

    /// From a person's device to any other, and from nobody else: what an agent writes must not look like a card.
    async fn route(&self, message: Message) {
        let to = match self.device.who() {
            Who::Approver(_) => self.hub.0.devices.at(&message.to),
            Who::Agent(_) | Who::Unverified => None,
        };
        let Some(to) = to else {
            let error = SendError::not_found(message.id, &message.to);
            return self.refuse(error).await;
        };
        if is_the_hubs_own(&message.action) {
            let error = format!("`{}` is between a device and the hub", message.action);
            return self.refuse(SendError::invalid(message.id, error)).await;
        }
        let Ok(payload) = serde_json::value::to_raw_value(&message.payload) else { return };
        let envelope = Envelope {
            id: &message.id,
            uid: None,
            from: &self.device.address,
            to: &to.id,
            action: &message.action,
            payload: &payload,
        };
        if !to.sink.tell(RECEIVE, &envelope) {
            self.refuse(SendError::not_found(message.id.clone(), &message.to)).await;
        }
    }

    async fn request(&self, request: RpcRequest) {
        let answer = match self.within_rate() {
            Ok(()) => rpc::call(self, &request).await,
            Err(error) => Some(Err(error)),
        };
        if let Some(answer) = answer {
            respond(&self.hub_id, &self.device, &request.request_id, &answer).await;
        }
    }

    fn within_rate(&self) -> Result<(), RpcError> {
        let key = match self.device.who() {
            Who::Approver(approver) => approver.key_id(),
            Who::Agent(agent) => agent.key_id(),
            Who::Unverified => return Ok(()),
        };
        let late = |seconds| RpcError::unavailable(format!("too many requests; try again in {seconds} s"));
        self.hub.0.rate.check(key).map_err(late)
    }

    fn list_devices(&self) -> Value {
        let mut devices = vec![json!({"deviceId": &*self.hub_id, "deviceType": "hub"})];
        if self.device.approver().is_some() {
            devices.extend(self.hub.0.devices.all().iter().map(|device| {
                // Its own id is no secret to itself.
                let own = Arc::ptr_eq(device, &self.device);
                let id = if own { &device.id } else { &device.address };
                json!({"deviceId": id, "deviceType": device.kind.as_str()})
            }));
        }
        json!({"devices": devices})
    }

    async fn refuse(&self, error: SendError) {
        self.answer(SEND_ERROR, &error).await;
    }

    async fn answer<T: serde::Serialize + Sync>(&self, event: &str, data: &T) {
        if !self.device.sink.answer(event, data).await {
            // It does not read its answers: it is as good as gone.
            self.device.end();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.device.end();
        self.hub.0.devices.remove(&self.device);
        // When the gate goes, its agents are still there: what they asked is open after a restart.
        if let Who::Agent(agent) = self.device.who()
            && !self.hub.0.gate.is_closing()
        {
            self.asks.leave(agent);
        }
    }
}

/// Answers a request, now or when what it waited for has come.
pub(super) async fn respond(hub_id: &str, device: &Device, request_id: &str, answer: &Result<Value, RpcError>) {
    let Ok(payload) = serde_json::value::to_raw_value(&RpcResponse::of(request_id, answer)) else { return };
    let id = message_id();
    let envelope = Envelope { id: &id, uid: None, from: hub_id, to: &device.id, action: RESPONSE, payload: &payload };
    if !device.sink.answer(RECEIVE, &envelope).await {
        device.end();
    }
}
