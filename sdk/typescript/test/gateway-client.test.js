// GatewayClient against a hub that misbehaves on purpose. The real one is in hub.test.js.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { afterEach, beforeEach, describe, test } from "node:test";
import { ExecApprovalRequestAction, ExecApprovalResolvedAction, GatewayClient, RpcError } from "@countersign/sdk";
import { fakeHub } from "./fake-hub.js";
import { next } from "./gate.js";

let hub;
const clients = [];
beforeEach(async () => {
  hub = await fakeHub();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await hub.down();
});

const make = (options = {}) => {
  const client = new GatewayClient({ url: hub.url, key: "csk_x", reconnect: { minMs: 5, maxMs: 20 }, ...options });
  clients.push(client);
  return client;
};
const card = (approvalId, more = {}) => ({
  approvalId, agentId: "a", command: "rm -rf x", riskLevel: "dangerous", riskReasons: [], expiresAtMs: Date.now() + 60_000, ...more,
});
const code = (expected, retryable) => (error) => {
  assert.ok(error instanceof RpcError, `${error}`);
  assert.equal(error.code, expected);
  if (retryable !== undefined) assert.equal(error.retryable, retryable);
  return true;
};
const open = (client) => next((callback) => client.onStateChange(callback), (state) => state === "open");
const lost = (client) => next((callback) => client.onStateChange(callback), (state) => state === "waiting");

describe("connecting", () => {
  test("registers, finds the hub, verifies, and is open", async () => {
    const client = make();
    const states = [];
    client.onStateChange((state) => states.push(state));
    await client.connect();
    assert.deepEqual(states, ["connecting", "open"]);
    assert.equal(client.hubDeviceId, "hub-1");
    assert.match(client.deviceId, /^[0-9a-f]{64}$/);
    assert.deepEqual(hub.verifies, [{}]);
    assert.deepEqual(hub.keys, [["Bearer csk_x", null]]);
  });

  test("a WebSocket that was given gets the key in the query", { skip: !globalThis.WebSocket && "no WebSocket here" }, async () => {
    await make({ WebSocket: globalThis.WebSocket }).connect();
    assert.deepEqual(hub.keys, [[undefined, "csk_x"]]);
  });

  test("where there is no Node, the platform's WebSocket is used, and no module of Node's", { skip: !globalThis.WebSocket && "no WebSocket here" }, async () => {
    // As in a browser: no `process`, and nothing that is Node's may be loaded from here on.
    const program = `
      import { registerHooks } from "node:module";
      const { exit } = process;
      const { GatewayClient, CountersignClient } = await import(${JSON.stringify(import.meta.resolve("@countersign/sdk"))});
      registerHooks({ resolve(name, context, next) { console.log("loaded " + name); return next(name, context); } });
      delete globalThis.process;
      delete crypto.randomUUID;
      const client = new GatewayClient({ url: "${hub.url}", key: "csk_x" });
      await client.connect();
      new CountersignClient({ url: "${hub.url}" });
      console.log(client.state);
      exit(0);`;
    const said = await new Promise((resolve) => execFile(process.execPath, ["--input-type=module", "-e", program],
      (error, stdout, stderr) => resolve(stdout + stderr)));
    assert.equal(said, "open\n");
    assert.deepEqual(hub.keys, [[undefined, "csk_x"]]);
  });

  test("a one-time token is used once", async () => {
    const client = make({ key: undefined, token: "code-1" });
    await client.connect();
    hub.server.drop();
    await open(client);
    assert.deepEqual(hub.verifies, [{ token: "code-1" }, {}]);
  });

  test("an agent does not verify", async () => {
    await make({ deviceType: "agent" }).connect();
    assert.deepEqual(hub.verifies, []);
  });

  test("what goes wrong rejects, and the client is closed and can be used again", async () => {
    await make({ deviceId: "taken" }).connect();
    const second = make({ deviceId: "taken" });
    await assert.rejects(second.connect(), code("REGISTRATION_FAILED"));
    assert.equal(second.state, "closed");

    hub.refuse = 401;
    await assert.rejects(second.connect(), code("DISCONNECTED"));
    hub.refuse = undefined;
    hub.methods.verify = () => {
      throw Object.assign(new Error("not paired"), { code: "UNAUTHORIZED" });
    };
    const third = make();
    await assert.rejects(third.connect(), code("UNAUTHORIZED", false));
    delete hub.methods.verify;
    while (hub.devices.has(third.deviceId)) await new Promise(setImmediate);
    await third.connect();
    assert.equal(third.state, "open");
    await assert.rejects(third.connect(), code("INVALID_STATE"));

    hub.mute = true;
    await assert.rejects(make({ requestTimeoutMs: 50 }).connect(), code("TIMEOUT", true));
    await assert.rejects(make().connect({ signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  });

  test("an address that is none is refused at once", () => {
    assert.throws(() => make({ url: "ftp://x" }), TypeError);
  });
});

describe("requests", () => {
  test("answers, errors, time limits, signals", async () => {
    const client = make({ requestTimeoutMs: 60 });
    await client.connect();
    hub.methods.echo = (params) => ({ params });
    hub.methods.never = () => undefined;
    assert.deepEqual(await client.request(client.hubDeviceId, "echo", { a: 1 }), { params: { a: 1 } });
    await assert.rejects(client.request(client.hubDeviceId, "nothing"), code("METHOD_NOT_FOUND", false));
    await assert.rejects(client.request(client.hubDeviceId, "never"), code("TIMEOUT", true));
    await assert.rejects(client.request(client.hubDeviceId, "never", {}, { signal: AbortSignal.abort() }), { name: "AbortError" });
    await assert.rejects(client.request("nobody", "echo", {}), code("DEVICE_NOT_FOUND"));
  });

  test("an answer from a device that was not asked is nothing", async () => {
    const client = make();
    await client.connect();
    hub.methods.resolveExecApproval = (_, { deviceId, requestId }) => {
      hub.push(deviceId, "response", { requestId, ok: true, payload: { ok: true } }, "liar");
      throw Object.assign(new Error("not found"), { code: "NOT_FOUND" });
    };
    await assert.rejects(client.request(client.hubDeviceId, "resolveExecApproval", { approvalId: "x", decision: "deny" }), code("NOT_FOUND"));
  });

  test("a lost connection rejects what waits for an answer, and sends nothing twice", async () => {
    const client = make();
    await client.connect();
    let calls = 0;
    hub.methods.act = () => {
      calls += 1;
      hub.server.drop();
    };
    await assert.rejects(client.request(client.hubDeviceId, "act"), code("DISCONNECTED", true));
    hub.methods.act = () => ({ calls });
    // This one waits for the next connection.
    assert.deepEqual(await client.request(client.hubDeviceId, "act"), { calls: 1 });
  });

  test("close rejects everything", async () => {
    const client = make();
    await client.connect();
    hub.methods.never = () => undefined;
    const waiting = [client.request(client.hubDeviceId, "never"), client.request(client.hubDeviceId, "never")];
    client.close();
    for (const one of waiting) await assert.rejects(one, code("CLOSED"));
    await assert.rejects(client.request("x", "y"), code("NOT_CONNECTED"));
    assert.throws(() => client.send("x", "y", {}), code("NOT_CONNECTED"));
  });

  test("messages between devices, and those that cannot be delivered", async () => {
    const [ann, bob] = [make({ deviceId: "ann" }), make({ deviceId: "bob" })];
    await ann.connect();
    await bob.connect();
    const heard = next((callback) => bob.onMessage(callback));
    ann.send("bob", "hello", { a: 1 });
    const message = await heard;
    assert.deepEqual([message.from, message.to, message.action, message.payload], ["ann", "bob", "hello", { a: 1 }]);
    const failed = next((callback) => ann.onSendError(callback));
    const id = ann.send("nobody", "hello", {});
    assert.deepEqual(await failed, { messageId: id, error: "Device not found", code: "DEVICE_NOT_FOUND" });
    assert.deepEqual((await ann.listDevices()).map(({ deviceId }) => deviceId), ["hub-1", "ann", "bob"]);
  });

  test("frames that are no messages change nothing", async () => {
    const client = make({ deviceId: "ann" });
    await client.connect();
    const heard = [];
    client.onMessage((message) => heard.push(message.action));
    const connection = hub.devices.get("ann");
    for (const text of ["", "{", "null", "[]", '"x"', '{"event":1}', '{"event":"receive"}', '{"event":"receive","data":{"id":1}}',
      '{"event":"receive","data":{"id":"1","from":"hub-1","to":"ann","action":"response","payload":null}}', '{"event":"list-devices"}']) {
      connection.send(text);
    }
    hub.push("ann", "last", {});
    await next((callback) => client.onMessage(callback), ({ action }) => action === "last");
    assert.deepEqual(heard, ["last"]);
    assert.equal(client.state, "open");
  });
});

describe("after a break", () => {
  test("what came meanwhile is handed on once, what was there already is not, what ended is told", async () => {
    hub.pending = [card("first")];
    const client = make({ deviceId: "ann" });
    const heard = [];
    client.onMessage(({ action, payload, from }) => heard.push([action, payload.approvalId, from]));
    await client.connect();
    assert.deepEqual(heard.splice(0), [[ExecApprovalRequestAction, "first", "hub-1"]]);
    hub.push("ann", ExecApprovalRequestAction, card("second"));
    hub.push("ann", ExecApprovalRequestAction, card("second"));
    hub.push("ann", ExecApprovalRequestAction, card("third"));
    await next((callback) => client.onMessage(callback), ({ payload }) => payload.approvalId === "third");
    assert.deepEqual(heard.splice(0).map(([, id]) => id), ["second", "third"]);

    hub.pending = [card("second"), card("fourth")];
    const ready = open(client);
    hub.server.drop();
    await ready;
    assert.deepEqual(heard, [
      [ExecApprovalRequestAction, "fourth", "hub-1"],
      [ExecApprovalResolvedAction, "first", "hub-1"],
      [ExecApprovalResolvedAction, "third", "hub-1"],
    ]);
  });

  test("what is pushed while it catches up did not end", async () => {
    const client = make({ deviceId: "ann" });
    const heard = [];
    client.onMessage(({ action, payload }) => heard.push([action, payload.approvalId]));
    hub.methods.listExecApprovals = () => {
      hub.push("ann", ExecApprovalRequestAction, card("new"));
      return { approvals: [] };
    };
    await client.connect();
    assert.deepEqual(heard, [[ExecApprovalRequestAction, "new"]]);
  });

  test("it comes back after the hub was away, and while its id is still held", async () => {
    const client = make();
    await client.connect();
    const gone = lost(client);
    const port = hub.port;
    await hub.down();
    await gone;
    hub.full = true;
    await hub.up(port);
    await next((callback) => client.onStateChange((state, error) => callback([state, error])),
      ([state, error]) => state === "waiting" && error.code === "REGISTRATION_FAILED");
    hub.full = false;
    await open(client);
    assert.deepEqual(hub.verifies, [{}, {}]);
  });

  test("a key that is refused ends it", async () => {
    const client = make();
    await client.connect();
    hub.refuse = 401;
    const closed = next((callback) => client.onStateChange((state, error) => callback([state, error])), ([state]) => state === "closed");
    hub.server.drop();
    const [, error] = await closed;
    assert.equal(error.cause.status, 401);
  });

  test("a device that was revoked ends it", async () => {
    const client = make();
    await client.connect();
    hub.methods.verify = () => {
      throw Object.assign(new Error("revoked"), { code: "UNAUTHORIZED" });
    };
    const closed = next((callback) => client.onStateChange((state, error) => callback([state, error])), ([state]) => state === "closed");
    hub.server.drop();
    assert.equal((await closed)[1].code, "UNAUTHORIZED");
  });

  test("a hub that falls silent is left", async () => {
    const client = make({ pingIntervalMs: 20 });
    await client.connect();
    hub.silent = true;
    await lost(client);
    hub.silent = false;
    await open(client);
  });

  test("without reconnect it stays closed", async () => {
    const client = make({ reconnect: false });
    await client.connect();
    const closed = next((callback) => client.onStateChange(callback), (state) => state === "closed");
    hub.server.drop();
    await closed;
  });

  test("close while it waits is final", async () => {
    const client = make({ reconnect: { minMs: 60_000, maxMs: 60_000 } });
    await client.connect();
    hub.server.drop();
    await lost(client);
    client.close();
    assert.equal(client.state, "closed");
  });
});
