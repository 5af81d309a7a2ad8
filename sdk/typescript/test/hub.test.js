// GatewayClient, and the published client guide, against the hub door of the real binary.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { CountersignClient, ExecApprovalRequestAction, ExecApprovalResolvedAction, GatewayClient, RpcError } from "@countersign/sdk";
import { Gate, next } from "./gate.js";
import { Stage } from "./stage.js";

let gate, agentKey, approverKey, http, ann;
const clients = [];

before(async () => {
  gate = await Gate.start();
  [agentKey, approverKey] = [await gate.key("agent", "my-agent"), await gate.key("approver", "ann")];
  http = new CountersignClient({ url: gate.url, key: agentKey });
  ann = new CountersignClient({ url: gate.url, key: approverKey });
});
after(() => gate?.stop());
afterEach(() => clients.splice(0).forEach((client) => client.close()));

const device = (options = {}) => {
  const client = new GatewayClient({ url: gate.url, reconnect: { minMs: 20, maxMs: 100 }, ...options });
  clients.push(client);
  return client;
};
const connected = async (options) => {
  const client = device(options);
  await client.connect();
  return client;
};
const approver = (options = {}) => connected({ key: approverKey, ...options });
const agentDevice = (options = {}) => connected({ key: agentKey, deviceType: "agent", ...options });
const resolve = (client, approvalId, decision) =>
  client.request(client.hubDeviceId, "resolveExecApproval", { approvalId, decision });
const card = (client, command) =>
  next((callback) => client.onMessage(callback), ({ action, payload }) => action === ExecApprovalRequestAction && payload.command === command);
const over = (client, approvalId) =>
  next((callback) => client.onMessage(callback), ({ action, payload }) => action === ExecApprovalResolvedAction && payload.approvalId === approvalId);
const code = (expected, message) => (error) => {
  assert.ok(error instanceof RpcError, `${error}`);
  assert.equal(error.code, expected);
  if (message) assert.equal(error.message, message);
  return true;
};

describe("the guide as published", () => {
  test("shows a request and resolves it", async () => {
    const guide = await import("../build/guide.js");
    let shown;
    const showing = new Promise((resolve) => (shown = resolve));
    const { client, respondToApproval } = await guide.start({ url: gate.url, key: approverKey, show: shown });
    clients.push(client);
    const asked = await http.requestApproval({ session_id: "s1", command: "rm -rf /tmp/test-data", cwd: "/srv/app" });
    const payload = await showing;
    assert.equal(payload.command, "rm -rf /tmp/test-data");
    assert.equal(payload.cwd, "/srv/app");
    assert.equal(payload.riskLevel, "dangerous");
    assert.ok(payload.riskReasons.length > 0 && payload.riskReasons.every((reason) => typeof reason === "string"));
    assert.ok(payload.expiresAtMs > Date.now());
    assert.equal(typeof payload.agentId, "string");
    assert.deepEqual(await respondToApproval(payload.approvalId, "allow-once"), { ok: true });
    const ended = await http.waitForDecision(asked);
    assert.equal(ended.status, "approved");
    assert.equal(ended.decision.by, "ann");
    await assert.rejects(respondToApproval(payload.approvalId, "deny"),
      code("NOT_FOUND", "Approval request not found or already resolved"));
  });
});

describe("who may", () => {
  test("a wrong key does not connect", async () => {
    await assert.rejects(device({ key: "csk_wrong" }).connect(), RpcError);
  });

  test("a device without key or code sees the hub, and nothing else", async () => {
    const stranger = await connected();
    assert.deepEqual((await stranger.listDevices()).map(({ deviceType }) => deviceType), ["hub"]);
    await assert.rejects(stranger.verify({}), code("UNAUTHORIZED"));
    await assert.rejects(stranger.verify({ token: "wrong" }), code("UNAUTHORIZED"));
    await assert.rejects(resolve(stranger, "appr_00000000000000000000000000000000", "allow-once"), code("UNAUTHORIZED"));
  });

  test("an agent decides nothing, its own least", async () => {
    const [ann, agent] = [await approver(), await agentDevice()];
    const shown = card(ann, "rm -rf ./own");
    const asked = agent.request(agent.hubDeviceId, "requestExecApproval", { command: "rm -rf ./own" });
    const { payload } = await shown;
    await assert.rejects(resolve(agent, payload.approvalId, "allow-once"), code("UNAUTHORIZED"));
    await assert.rejects(agent.verify({}), code("UNAUTHORIZED"));
    await resolve(ann, payload.approvalId, "deny");
    assert.equal((await asked).decision, "deny");
  });

  test("a code pairs once, and the device comes back by its id", async () => {
    const { code: token } = JSON.parse(await gate.cli("pair", "--json"));
    const phone = await connected({ token });
    const shown = card(phone, "rm -rf ./paired");
    await http.requestApproval({ session_id: "s", command: "rm -rf ./paired" });
    const { payload } = await shown;
    phone.close();
    const again = device({ deviceId: phone.deviceId });
    const shownAgain = card(again, "rm -rf ./paired");
    // The hub may hold the old connection for a moment.
    while (again.state === "closed") await again.connect().catch((error) => code("REGISTRATION_FAILED")(error));
    await again.verify({});
    assert.equal((await shownAgain).payload.approvalId, payload.approvalId);
    assert.deepEqual(await resolve(again, payload.approvalId, "deny"), { ok: true });
    await assert.rejects(device({ token }).connect(), code("UNAUTHORIZED"));
  });

  test("a pairing that is taken back ends the connection for good", async () => {
    const { code: token } = JSON.parse(await gate.cli("pair", "--json", "--name", "bob"));
    const phone = await connected({ token });
    const closed = next((callback) => phone.onStateChange((state, error) => callback([state, error])), ([state]) => state === "closed");
    const { devices } = JSON.parse(await gate.cli("pair", "--list", "--json"));
    await gate.cli("pair", "--revoke", devices.find(({ name }) => name === "bob").key_id);
    assert.equal((await closed)[1].code, "UNAUTHORIZED");
  });

  test("an id in use is refused", async () => {
    const first = await approver();
    await assert.rejects(device({ key: approverKey, deviceId: first.deviceId }).connect(),
      code("REGISTRATION_FAILED", "Device ID already in use"));
  });
});

describe("asking and deciding", () => {
  test("an agent asks over the hub; policy answers what only reads", async () => {
    const agent = await agentDevice();
    const answer = await agent.request(agent.hubDeviceId, "requestExecApproval", { command: "git log -1" });
    assert.equal(answer.decision, "allow-once");
    assert.match(answer.approvalId, /^appr_[0-9a-f]{32}$/);
  });

  test("a person answers; a card decided elsewhere closes", async () => {
    const [ann1, ann2, agent] = [await approver(), await approver(), await agentDevice()];
    const [shown1, shown2] = [card(ann1, "rm -rf ./two"), card(ann2, "rm -rf ./two")];
    const asked = agent.request(agent.hubDeviceId, "requestExecApproval", { command: "rm -rf ./two", cwd: "/srv" });
    const { payload } = await shown1;
    await shown2;
    const closed = over(ann2, payload.approvalId);
    await resolve(ann1, payload.approvalId, "allow-once");
    assert.equal((await closed).payload.decision, "allow-once");
    assert.equal((await closed).payload.resolvedBy, "ann");
    const { approvalId, decision } = await asked;
    assert.deepEqual([approvalId, decision], [payload.approvalId, "allow-once"]);
  });

  test("nobody answers: a no", async () => {
    const [, agent] = [await approver(), await agentDevice()];
    const answer = await agent.request(agent.hubDeviceId, "requestExecApproval", { command: "rm -rf ./late", timeoutMs: 1000 });
    assert.deepEqual([answer.decision, answer.reason], ["deny", "expired"]);
  });

  test("what is wrong in a decision is said, and the request stays open", async () => {
    const client = await approver();
    const shown = card(client, "rm -rf ./open");
    await http.requestApproval({ session_id: "s", command: "rm -rf ./open" });
    const { payload } = await shown;
    await assert.rejects(resolve(client, payload.approvalId, "maybe"),
      code("INVALID_PARAMS", "Invalid decision: maybe. Must be allow-once, allow-always, or deny"));
    await assert.rejects(client.request(client.hubDeviceId, "resolveExecApproval", { decision: "deny" }),
      code("INVALID_PARAMS", "approvalId is required"));
    await assert.rejects(client.request(client.hubDeviceId, "noSuchMethod", {}), code("METHOD_NOT_FOUND"));
    await assert.rejects(client.request("nobody", "x", {}), code("DEVICE_NOT_FOUND"));
    assert.deepEqual(await resolve(client, payload.approvalId, "deny"), { ok: true });
  });

  test("an agent that goes away is denied what it asked", async () => {
    const [client, agent] = [await approver(), await agentDevice()];
    const shown = card(client, "rm -rf ./gone");
    const asked = agent.request(agent.hubDeviceId, "requestExecApproval", { command: "rm -rf ./gone" });
    const { payload } = await shown;
    const closed = over(client, payload.approvalId);
    agent.close();
    await assert.rejects(asked, code("CLOSED"));
    assert.equal((await closed).payload.reason, "agent_closed");
    assert.equal((await ann.get(payload.approvalId)).status, "denied");
  });
});

describe("over breaks", () => {
  test("what was asked before anybody connected is shown at once", async () => {
    const asked = await http.requestApproval({ session_id: "s", command: "rm -rf ./before" });
    const client = device({ key: approverKey });
    const shown = card(client, "rm -rf ./before");
    await client.connect();
    assert.equal((await shown).payload.approvalId, asked.approval_id);
    await resolve(client, asked.approval_id, "deny");
  });

  test("a restart of the gate loses nothing, and what ended meanwhile closes", async () => {
    const client = await approver();
    const shown = card(client, "rm -rf ./restart-1");
    const first = await http.requestApproval({ session_id: "s", command: "rm -rf ./restart-1" });
    await shown;
    const back = next((callback) => client.onStateChange(callback), (state) => state === "open", 30_000);
    const closed = over(client, first.approval_id);
    const second = card(client, "rm -rf ./restart-2");
    await gate.down("SIGKILL");
    await gate.up();
    await ann.decide(first.approval_id, { decision: "deny" });
    const asked = await http.requestApproval({ session_id: "s", command: "rm -rf ./restart-2" });
    await back;
    await closed;
    assert.equal((await second).payload.approvalId, asked.approval_id);
    assert.deepEqual(await resolve(client, asked.approval_id, "deny"), { ok: true });
  });
});

test("the examples: an agent and an approver", async () => {
  const stage = await Stage.open(gate);
  const deciding = stage.start("hub-approver.js", approverKey);
  await deciding.says(/^open/m);
  const allowed = stage.start("hub-agent.js", agentKey, "touch ./hub");
  assert.equal(await allowed.ended, 0, allowed.text);
  const denied = stage.start("hub-agent.js", agentKey, "rm -rf /srv/everything");
  assert.equal(await denied.ended, 77, denied.text);
  await stage.close();
});
