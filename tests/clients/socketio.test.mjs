// The npm `socket.io-client`, unchanged, through the hub's published guide step by step.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { io } from "socket.io-client";
import { CountersignClient } from "../../sdk/typescript/dist/index.js";
import { Gate } from "../../sdk/typescript/test/gate.js";

let gate, agentKey, approverKey, agent, ann;
const sockets = [];

before(async () => {
  gate = await Gate.start();
  [agentKey, approverKey] = [await gate.key("agent", "my-agent"), await gate.key("approver", "ann")];
  agent = new CountersignClient({ url: gate.url, key: agentKey });
  ann = new CountersignClient({ url: gate.url, key: approverKey });
});
after(() => gate?.stop());
afterEach(() => sockets.splice(0).forEach((socket) => socket.disconnect()));

let number = 0;
const newId = () => `019444a0-0000-7000-8000-${String(++number).padStart(12, "0")}`;
const within = (promise, what, ms = 10_000) => {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${what} did not come`)), ms)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

/** A device over Socket.IO: long-polling first, then the upgrade, as the client does by itself. */
class Device {
  received = [];
  #waiting = [];

  constructor(query, options = {}) {
    this.id = query.deviceId;
    this.socket = io(gate.url, { path: "/ws", query, forceNew: true, reconnection: false, ...options });
    sockets.push(this.socket);
    this.gone = new Promise((resolve) => {
      this.socket.once("disconnect", (reason) => resolve(reason));
      this.socket.once("connect_error", (error) => resolve(error.message));
    });
    this.registered = within(new Promise((resolve, reject) => {
      this.socket.once("registered", resolve);
      this.gone.then((reason) => reject(new Error(`not registered: ${reason}`)));
    }), "registered");
    this.registered.catch(() => {});
    this.socket.on("receive", (message) => {
      this.received.push(message);
      this.#waiting = this.#waiting.filter(({ wanted, resolve }) => !(wanted(message) && (resolve(message), true)));
    });
  }

  next(wanted, what = "a message") {
    const there = this.received.find(wanted);
    return there ?? within(new Promise((resolve, reject) => {
      this.#waiting.push({ wanted, resolve });
      this.gone.then((reason) => reject(new Error(`${what} did not come: ${reason}`)));
    }), what);
  }

  card(command) {
    return this.next(({ action, payload }) => action === "exec-approval-request" && payload.command === command, `the card for ${command}`);
  }

  over(approvalId) {
    return this.next(({ action, payload }) => action === "exec-approval-resolved" && payload.approvalId === approvalId, "the end");
  }

  event(name) {
    return within(new Promise((resolve) => this.socket.once(name, resolve)), name);
  }

  async hub() {
    const { devices } = await this.socket.timeout(5000).emitWithAck("list-devices");
    return devices.find(({ deviceType }) => deviceType === "hub").deviceId;
  }

  /** The answer's payload. */
  async request(method, params, requestId = `client-req-${newId()}`) {
    const to = await this.hub();
    const answer = this.next(({ action, payload }) => action === "response" && payload.requestId === requestId, `the answer to ${method}`);
    this.socket.emit("send", { id: newId(), uid: null, from: this.id, to, action: "request", payload: { requestId, method, params } });
    return (await answer).payload;
  }

  resolve(approvalId, decision) {
    return this.request("resolveExecApproval", { approvalId, decision });
  }
}

const connect = async (query, options) => {
  const device = new Device({ deviceId: newId(), deviceType: "client", ...query }, options);
  assert.deepEqual(await device.registered, { success: true, deviceId: device.id });
  return device;
};
const approver = async (query) => {
  const device = await connect({ key: approverKey, ...query });
  assert.equal((await device.request("verify", {})).ok, true);
  return device;
};
const agentDevice = (query) => connect({ deviceType: "agent", key: agentKey, ...query });
const ask = (command, more) => agent.requestApproval({ session_id: "s1", command, ...more });
/** Errors may say besides whether trying again can help. */
const error = (answer) => {
  const { retryable: _, ...rest } = answer.error ?? {};
  return { ok: answer.ok, ...rest };
};

test("nobody can be asked: denied at once", async () => {
  const asked = await ask("rm -rf ./nobody", { channel: "hub" });
  assert.deepEqual([asked.status, asked.reason], ["denied", "no_channel"]);
});

describe("transport", () => {
  test("begins with long-polling and goes on over WebSocket", async () => {
    const device = new Device({ deviceId: newId(), deviceType: "client" });
    const { engine } = device.socket.io;
    assert.equal(engine.transport.name, "polling");
    const upgraded = within(new Promise((resolve) => engine.once("upgrade", resolve)), "the upgrade");
    assert.equal((await device.registered).success, true);
    await upgraded;
    assert.equal(device.socket.io.engine.transport.name, "websocket");
  });

  for (const transports of [["polling"], ["websocket"]]) {
    test(`works over ${transports} alone`, async () => {
      const device = await connect({ key: approverKey }, { transports });
      assert.equal((await device.request("verify", {})).ok, true);
      const asked = await ask(`rm -rf ./${transports}`);
      const { payload } = await device.card(`rm -rf ./${transports}`);
      assert.equal(payload.approvalId, asked.approval_id);
      assert.equal((await device.resolve(payload.approvalId, "deny")).ok, true);
    });
  }

  test("the key may come in a header", async () => {
    const device = await connect({}, { extraHeaders: { Authorization: `Bearer ${approverKey}` } });
    assert.equal((await device.request("verify", {})).ok, true);
  });

  test("ping is answered by pong", async () => {
    const device = await connect();
    const pong = device.event("pong");
    device.socket.emit("ping");
    await pong;
  });

  test("a device without an id is disconnected", async () => {
    await within(new Device({}).gone, "the disconnect");
    await within(new Device({ deviceType: "client" }).gone, "the disconnect");
    await within(new Device({ deviceId: newId(), deviceType: "admin" }).gone, "the disconnect");
  });

  test("an id in use is told so and disconnected", async () => {
    const first = await connect();
    const second = new Device({ deviceId: first.id, deviceType: "client" });
    assert.deepEqual(await second.registered, { success: false, deviceId: first.id, error: "Device ID already in use" });
    await within(second.gone, "the disconnect");
    assert.equal(typeof await first.hub(), "string");
    first.socket.disconnect();
    let answer;
    do answer = await new Device({ deviceId: first.id, deviceType: "client" }).registered;
    while (!answer.success);
  });
});

describe("the guide", () => {
  test("step 1 to 3, with its JSON", async () => {
    const client = await approver();
    const hubDeviceId = await client.hub();
    const asked = await ask("rm -rf /tmp/test-data", { cwd: "/Users/alice/projects/my-app", agent_id: "019444a0-5678-7def-8000-123456abcdef" });

    // Step 1: Approval Request (Hub → Client)
    const push = await client.card("rm -rf /tmp/test-data");
    assert.equal(typeof push.id, "string");
    assert.deepEqual([push.from, push.to, push.action], [hubDeviceId, client.id, "exec-approval-request"]);
    const { approvalId, riskReasons, expiresAtMs, ...rest } = push.payload;
    assert.equal(approvalId, asked.approval_id);
    assert.ok(Array.isArray(riskReasons) && riskReasons.length > 0 && riskReasons.every((reason) => typeof reason === "string"));
    assert.ok(Number.isInteger(expiresAtMs) && expiresAtMs > Date.now());
    for (const [field, value] of Object.entries({
      agentId: "019444a0-5678-7def-8000-123456abcdef",
      command: "rm -rf /tmp/test-data",
      cwd: "/Users/alice/projects/my-app",
      riskLevel: "dangerous",
    })) assert.equal(rest[field], value, field);

    // Step 2: User Decision (Client → Hub)
    const request = {
      id: "019444a0-0000-7000-8000-000000000002",
      from: client.id,
      to: hubDeviceId,
      action: "request",
      payload: {
        requestId: "client-req-001",
        method: "resolveExecApproval",
        params: { approvalId, decision: "allow-once" },
      },
    };
    client.socket.emit("send", request);

    // Step 3: RPC Response (Hub → Client)
    const isAnswer = ({ action }) => action === "response";
    client.received = [];
    const answer = await client.next(isAnswer);
    assert.deepEqual([answer.from, answer.to], [hubDeviceId, client.id]);
    assert.deepEqual(answer.payload, { requestId: "client-req-001", ok: true, payload: { ok: true } });
    const ended = await agent.waitForDecision(asked);
    assert.deepEqual([ended.status, ended.decision.by], ["approved", "ann"]);

    // Error: already resolved
    client.received = [];
    client.socket.emit("send", { ...request, id: "019444a0-0000-7000-8000-000000000003" });
    const { payload } = await client.next(isAnswer);
    assert.equal(payload.requestId, "client-req-001");
    assert.deepEqual(error(payload), { ok: false, code: "NOT_FOUND", message: "Approval request not found or already resolved" });
  });

  test("deny", async () => {
    const client = await approver();
    const asked = await ask("rm -rf ./deny");
    const { payload } = await client.card("rm -rf ./deny");
    assert.deepEqual((await client.resolve(payload.approvalId, "deny")).payload, { ok: true });
    assert.equal((await agent.waitForDecision(asked)).status, "denied");
  });

  test("allow-always lets the next one pass", async () => {
    const client = await approver();
    const first = await ask("touch ./always");
    const { payload } = await client.card("touch ./always");
    assert.deepEqual((await client.resolve(payload.approvalId, "allow-always")).payload, { ok: true });
    assert.equal((await agent.waitForDecision(first)).status, "approved");
    const second = await ask("touch ./always");
    assert.deepEqual([second.status, second.auto], ["approved", true]);
  });

  test("a client that goes away before it answers: the time runs on, then no", async () => {
    const client = await approver();
    const asked = await ask("rm -rf ./gone", { expires_in_sec: 1 });
    await client.card("rm -rf ./gone");
    client.socket.disconnect();
    assert.equal((await agent.waitForDecision(asked)).status, "expired");
    const again = await approver();
    assert.equal(error(await again.resolve(asked.approval_id, "allow-once")).code, "NOT_FOUND");
  });
});

describe("who may", () => {
  test("a one-time code pairs a device, once", async () => {
    const { code } = JSON.parse(await gate.cli("pair", "--json"));
    const phone = await connect();
    assert.equal(error(await phone.request("verify", { token: "wrong" })).code, "UNAUTHORIZED");
    const verified = await phone.request("verify", { token: code, meta: { name: "phone" } });
    assert.equal(verified.ok, true);
    assert.equal(verified.payload.hubId, await phone.hub());
    assert.equal(typeof verified.payload.agentId, "string");
    await ask("rm -rf ./paired");
    const { payload } = await phone.card("rm -rf ./paired");
    assert.equal((await phone.resolve(payload.approvalId, "deny")).ok, true);
    const other = await connect();
    assert.equal(error(await other.request("verify", { token: code })).code, "UNAUTHORIZED");
  });

  test("a stranger is shown nothing, resolves nothing, and sees no other device", async () => {
    const [stranger, client] = [await connect(), await approver()];
    assert.equal(error(await stranger.request("verify", {})).code, "UNAUTHORIZED");
    const asked = await ask("rm -rf ./stranger");
    await client.card("rm -rf ./stranger");
    assert.equal(error(await stranger.resolve(asked.approval_id, "allow-once")).code, "UNAUTHORIZED");
    const { devices } = await stranger.socket.timeout(5000).emitWithAck("list-devices");
    assert.deepEqual(devices.map(({ deviceType }) => deviceType), ["hub"]);
    assert.ok(!stranger.received.some(({ action }) => action === "exec-approval-request"));
    assert.equal((await client.resolve(asked.approval_id, "deny")).ok, true);
  });

  test("a wrong key is not let in", async () => {
    const device = new Device({ deviceId: newId(), deviceType: "client", key: "csk_wrong" });
    const answer = await device.registered.catch(() => ({ success: false }));
    assert.equal(answer.success, false);
  });

  test("an agent asks and decides nothing", async () => {
    const [client, device] = [await approver(), await agentDevice()];
    const asked = device.request("requestExecApproval", { command: "rm -rf ./own", cwd: "/srv" });
    const { payload } = await client.card("rm -rf ./own");
    assert.equal(error(await device.resolve(payload.approvalId, "allow-once")).code, "UNAUTHORIZED");
    assert.equal((await client.resolve(payload.approvalId, "allow-once")).ok, true);
    const answer = await asked;
    assert.deepEqual([answer.payload.approvalId, answer.payload.decision], [payload.approvalId, "allow-once"]);
  });
});

describe("asking over the hub", () => {
  test("policy answers what only reads; nobody answers the rest in time", async () => {
    const [, device] = [await approver(), await agentDevice()];
    assert.equal((await device.request("requestExecApproval", { command: "git log -1" })).payload.decision, "allow-once");
    const late = await device.request("requestExecApproval", { command: "rm -rf ./late", timeoutMs: 1000 });
    assert.deepEqual([late.payload.decision, late.payload.reason], ["deny", "expired"]);
  });

  test("an agent that goes away, or says so, is denied what it asked", async () => {
    const [client, one, two] = [await approver(), await agentDevice(), await agentDevice()];
    one.request("requestExecApproval", { command: "rm -rf ./one" }).catch(() => {});
    const { payload } = await client.card("rm -rf ./one");
    one.socket.disconnect();
    assert.equal((await client.over(payload.approvalId)).payload.reason, "agent_closed");

    const asked = two.request("requestExecApproval", { command: "rm -rf ./two" });
    const second = await client.card("rm -rf ./two");
    assert.equal((await two.request("closeAgent", {})).ok, true);
    assert.equal((await asked).payload.decision, "deny");
    assert.equal((await ann.get(second.payload.approvalId)).reason, "agent_closed");
  });

  test("a card decided elsewhere closes, and the list has what is pending", async () => {
    const [one, two] = [await approver(), await approver()];
    const asked = await ask("rm -rf ./elsewhere");
    await one.card("rm -rf ./elsewhere");
    await two.card("rm -rf ./elsewhere");
    const listed = (await two.request("listExecApprovals", {})).payload.approvals;
    assert.ok(listed.some(({ approvalId, command }) => approvalId === asked.approval_id && command === "rm -rf ./elsewhere"));
    await ann.decide(asked.approval_id, { decision: "deny", note: "no" });
    for (const device of [one, two]) {
      const { payload } = await device.over(asked.approval_id);
      assert.deepEqual([payload.decision, payload.resolvedBy], ["deny", "ann"]);
    }
    assert.ok(!(await two.request("listExecApprovals", {})).payload.approvals.some(({ approvalId }) => approvalId === asked.approval_id));
  });
});

describe("what is wrong is said, and changes nothing", () => {
  test("in a decision", async () => {
    const client = await approver();
    const asked = await ask("rm -rf ./wrong");
    assert.deepEqual(error(await client.resolve(asked.approval_id, "maybe")), {
      ok: false, code: "INVALID_PARAMS", message: "Invalid decision: maybe. Must be allow-once, allow-always, or deny",
    });
    assert.deepEqual(error(await client.request("resolveExecApproval", { decision: "deny" })), {
      ok: false, code: "INVALID_PARAMS", message: "approvalId is required",
    });
    assert.deepEqual(error(await client.resolve("019444a0-1234-7abc-8000-abcdef123456", "allow-once")), {
      ok: false, code: "NOT_FOUND", message: "Approval request not found or already resolved",
    });
    assert.equal(error(await client.request("noSuchMethod", {})).code, "METHOD_NOT_FOUND");
    assert.equal((await agent.get(asked.approval_id)).status, "pending");
    await agent.cancel(asked.approval_id);
  });

  test("in a message: wrong from, no such device, not a message", async () => {
    const client = await approver();
    const to = await client.hub();
    const good = { uid: null, from: client.id, to, action: "request", payload: { requestId: "r", method: "getHubInfo" } };
    const cases = [
      [{ ...good, id: newId(), from: "somebody-else" }, "INVALID_MESSAGE"],
      [{ ...good, id: newId(), to: "no-such-device" }, "DEVICE_NOT_FOUND"],
    ];
    for (const [message, code] of cases) {
      const failed = client.event("send_error");
      client.socket.emit("send", message);
      const { messageId, error, code: said } = await failed;
      assert.deepEqual([messageId, said, typeof error], [message.id, code, "string"]);
    }
    for (const message of [null, 7, "x", [], {}, { ...good, id: "" }, { ...good, id: 7 }]) {
      const failed = client.event("send_error");
      client.socket.emit("send", message);
      assert.equal((await failed).code, "INVALID_MESSAGE");
    }
    assert.equal((await client.request("getHubInfo", {})).ok, true);
  });

  test("messages go between devices, and not in another's name", async () => {
    const [one, two] = [await approver(), await approver()];
    const { devices } = await one.socket.timeout(5000).emitWithAck("list-devices", {});
    assert.ok(devices.some(({ deviceId, deviceType }) => deviceId === two.id && deviceType === "client"));
    const message = { id: newId(), uid: null, from: one.id, to: two.id, action: "hello", payload: { a: [1, null, "é"] } };
    one.socket.emit("send", message);
    assert.deepEqual(await two.next(({ action }) => action === "hello"), message);
  });
});
