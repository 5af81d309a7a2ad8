// The published `@openclaw/gateway-client`, unchanged, at both of the gateway's addresses. Needs Node ≥ 22.19.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { GatewayClient } from "@openclaw/gateway-client";
import { validateApprovalGetResult, validateApprovalHistoryResult, validateApprovalResolveResult } from "@openclaw/gateway-protocol";
import { ExecApprovalsSnapshotSchema, HelloOkSchema } from "@openclaw/gateway-protocol/schema";
import { Errors } from "typebox/value";
import { CountersignClient } from "../../sdk/typescript/dist/index.js";
import { Gate, next } from "../../sdk/typescript/test/gate.js";

let gate, keys, http;
const clients = [];

before(async () => {
  gate = await Gate.start();
  keys = {
    agent: await gate.key("agent", "my-agent"),
    other: await gate.key("agent", "other-agent"),
    approver: await gate.key("approver", "ann"),
    admin: await gate.key("admin", "root"),
  };
  http = new CountersignClient({ url: gate.url, key: keys.agent });
});
after(() => gate?.stop());
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.stopAndWait().catch(() => {})));
});

const address = (path = "/gateway") => gate.url.replace(/^http/, "ws") + path;

/** A client of the package and what it heard; `hello` rejects when the connection is refused. */
function open(token, options = {}) {
  const listeners = new Set();
  const heard = { events: [], paused: [] };
  heard.onEvent = (callback) => {
    listeners.add(callback);
    return () => listeners.delete(callback);
  };
  heard.hello = new Promise((resolve, reject) => {
    heard.client = new GatewayClient({
      url: address(),
      token,
      deviceIdentity: null,
      onHelloOk: resolve,
      onConnectError: reject,
      onReconnectPaused: (info) => heard.paused.push(info),
      onEvent: (event) => {
        heard.events.push(event);
        for (const listener of [...listeners]) listener(event);
      },
      ...options,
    });
  });
  heard.hello.catch(() => {});
  heard.request = (method, params, more) => heard.client.request(method, params, more);
  heard.next = (name, wanted = () => true) => {
    const there = heard.events.find(({ event, payload }) => event === name && wanted(payload));
    return there ? there.payload : next(heard.onEvent, ({ event, payload }) => event === name && wanted(payload)).then(({ payload }) => payload);
  };
  heard.card = (command) => heard.next("exec.approval.requested", ({ request }) => request.command === command);
  clients.push(heard.client);
  heard.client.start();
  return heard;
}

async function connect(role, options) {
  const heard = open(keys[role], options);
  heard.said = await heard.hello;
  return heard;
}

/** Two-phase: the first answer, and the promise of the last. */
function ask(heard, params) {
  let accepted;
  const first = new Promise((resolve) => (accepted = resolve));
  const final = heard.request("exec.approval.request", { twoPhase: true, ...params }, { expectFinal: true, onAccepted: accepted });
  final.catch(() => {});
  return { first, final };
}

const fails = (code, reason) => (error) => {
  assert.equal(error.name, "GatewayClientRequestError", `${error}`);
  assert.equal(error.gatewayCode, code);
  if (reason) assert.ok([error.details?.reason, error.details?.code].includes(reason), JSON.stringify(error.details));
  return true;
};
const valid = (validate, value) => assert.ok(validate(value), JSON.stringify([validate.errors, value]));
// Reasons are the gate's own words on every door; the schema's word for a person is another, and nothing goes by it.
const inItsWords = (approval) => {
  assert.equal(approval.reason, "person");
  return { ...approval, reason: "user" };
};
const fits = (schema, value) => assert.deepEqual([...Errors(schema, value)].map(({ instancePath, message }) => `${instancePath}: ${message}`), []);

describe("connecting", () => {
  for (const path of ["/gateway", "/", ""]) {
    test(`hello at \`${path}\` is what the published schema says`, async () => {
      const { said } = await connect("approver", { url: address(path) });
      fits(HelloOkSchema, said);
      assert.equal(said.protocol, 4);
      assert.deepEqual(said.auth.scopes, ["operator.approvals"]);
      assert.equal(said.auth.role, "operator");
      for (const method of ["exec.approval.request", "exec.approval.resolve", "exec.approval.list"]) {
        assert.ok(said.features.methods.includes(method), method);
      }
    });
  }

  test("scopes are the key's, whatever was asked for", async () => {
    for (const [role, scopes] of [["agent", []], ["approver", ["operator.approvals"]]]) {
      const { said } = await connect(role, { scopes: ["operator.admin", "operator.approvals"] });
      assert.deepEqual(said.auth.scopes, scopes);
    }
    const { said } = await connect("admin");
    assert.deepEqual([...said.auth.scopes].sort(), ["operator.admin", "operator.approvals"]);
  });

  test("protocol 3 is spoken with who speaks only that", async () => {
    const { said } = await connect("approver", { minProtocol: 3, maxProtocol: 3 });
    assert.equal(said.protocol, 3);
  });

  test("a bad key, no key and an unknown protocol end it for good", async () => {
    for (const [token, options, code] of [
      ["csk_wrong", {}, "AUTH_TOKEN_MISMATCH"],
      [undefined, {}, "AUTH_TOKEN_MISSING"],
      [keys.approver, { minProtocol: 90, maxProtocol: 99 }, "PROTOCOL_MISMATCH"],
    ]) {
      const heard = open(token, options);
      await assert.rejects(heard.hello, (error) => {
        assert.equal(error.details?.code, code);
        return true;
      });
      while (heard.paused.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
      assert.equal(heard.paused[0].detailCode, code);
    }
  });

  test("ticks keep a waiting client alive", { timeout: 60_000 }, async () => {
    const heard = await connect("approver");
    assert.ok(heard.said.policy.tickIntervalMs <= 30_000);
    await next(heard.onEvent, ({ event }) => event === "tick", heard.said.policy.tickIntervalMs + 5000);
  });
});

describe("request, event, resolve, final", () => {
  for (const path of ["/gateway", "/"]) {
    test(`two-phase over \`${path}\``, async () => {
      const url = address(path);
      const [agent, ann] = [await connect("agent", { url }), await connect("approver", { url })];
      const command = `rm -rf ./two-phase${path}`;
      const { first, final } = ask(agent, { command, cwd: "/srv/app", agentId: "main", sessionKey: "k", timeoutMs: 60_000 });
      const accepted = await first;
      assert.equal(accepted.status, "accepted");
      assert.equal(accepted.expiresAtMs - accepted.createdAtMs, 60_000);

      const requested = await ann.card(command);
      assert.equal(requested.id, accepted.id);
      assert.equal(requested.request.cwd, "/srv/app");
      assert.equal(requested.request.agentId, "main");
      assert.deepEqual([requested.createdAtMs, requested.expiresAtMs], [accepted.createdAtMs, accepted.expiresAtMs]);

      assert.deepEqual(await ann.request("exec.approval.resolve", { id: requested.id, decision: "allow-once" }), { ok: true });
      const answer = await final;
      assert.deepEqual([answer.id, answer.decision], [accepted.id, "allow-once"]);
      const resolved = await ann.next("exec.approval.resolved", ({ id }) => id === requested.id);
      assert.deepEqual([resolved.decision, resolved.resolvedBy], ["allow-once", "ann"]);
      assert.ok(Math.abs(resolved.ts - Date.now()) < 60_000);
    });
  }

  test("one phase: the answer is the end", async () => {
    const [agent, ann] = [await connect("agent"), await connect("approver")];
    const final = agent.request("exec.approval.request", { command: "rm -rf ./one-phase" });
    const { id } = await ann.card("rm -rf ./one-phase");
    await ann.request("exec.approval.resolve", { id, decision: "deny" });
    assert.equal((await final).decision, "deny");
  });

  test("nobody answers: null", async () => {
    const agent = await connect("agent");
    const { final } = ask(agent, { command: "rm -rf ./late", timeoutMs: 500 });
    assert.equal((await final).decision, null);
  });

  test("ruled without asking: at once, and no event", async () => {
    const [agent, ann] = [await connect("agent"), await connect("approver")];
    assert.equal((await ask(agent, { command: "git log -1" }).final).decision, "allow-once");
    const { first } = ask(agent, { command: "rm -rf ./marker" });
    await first;
    await ann.card("rm -rf ./marker");
    assert.ok(!ann.events.some(({ payload }) => payload?.request?.command === "git log -1"));
  });

  test("without a time limit given it is two minutes", async () => {
    const agent = await connect("agent");
    const { createdAtMs, expiresAtMs } = await ask(agent, { command: "rm -rf ./default" }).first;
    assert.equal(expiresAtMs - createdAtMs, 120_000);
  });

  test("an id of the client's own is its name for it, and not twice", async () => {
    const [agent, ann] = [await connect("agent"), await connect("approver")];
    const { first, final } = ask(agent, { id: "mine-1", command: "rm -rf ./mine" });
    assert.equal((await first).id, "mine-1");
    await assert.rejects(ask(agent, { id: "mine-1", command: "rm -rf ./mine" }).final, (error) => {
      fails("INVALID_REQUEST")(error);
      assert.equal(error.message, "approval id already pending");
      return true;
    });
    const requested = await ann.card("rm -rf ./mine");
    assert.equal(requested.id, "mine-1");
    assert.match(requested.approvalId, /^appr_[0-9a-f]{32}$/);
    await ann.request("exec.approval.resolve", { id: requested.approvalId, decision: "deny" });
    assert.equal((await final).decision, "deny");
  });

  test("what comes by HTTP is shown and decided here, and the other way round", async () => {
    const [agent, ann] = [await connect("agent"), await connect("approver")];
    const asked = await http.requestApproval({ session_id: "s", command: "rm -rf ./http" });
    assert.equal((await ann.card("rm -rf ./http")).id, asked.approval_id);
    await ann.request("exec.approval.resolve", { id: asked.approval_id, decision: "allow-once" });
    assert.equal((await http.waitForDecision(asked)).decision.by, "ann");

    const { first, final } = ask(agent, { command: "rm -rf ./gateway" });
    const { id } = await first;
    await new CountersignClient({ url: gate.url, key: keys.approver }).decide(id, { decision: "deny" });
    assert.equal((await final).decision, "deny");
    assert.equal((await ann.next("exec.approval.resolved", (payload) => payload.id === id)).decision, "deny");
  });

  test("a client that lost its connection waits again by the id", async () => {
    const [agent, ann] = [await connect("agent"), await connect("approver")];
    const { id } = await ask(agent, { command: "rm -rf ./again" }).first;
    await agent.client.stopAndWait();
    const again = await connect("agent");
    const waiting = again.request("exec.approval.waitDecision", { id });
    await ann.request("exec.approval.resolve", { id, decision: "allow-once" });
    assert.equal((await waiting).decision, "allow-once");
  });
});

describe("list, get, resolve", () => {
  test("what is pending, each, and by its whole id alone", async () => {
    const [agent, ann] = [await connect("agent"), await connect("approver")];
    const { id } = await ask(agent, { command: "rm -rf ./listed", host: "box" }).first;
    const row = (await ann.request("exec.approval.list", {})).find((one) => one.id === id);
    assert.equal(row.request.command, "rm -rf ./listed");
    const one = await ann.request("exec.approval.get", { id });
    assert.equal(one.commandText, "rm -rf ./listed");
    assert.ok(one.allowedDecisions.includes("allow-once") && one.allowedDecisions.includes("deny"));
    const snapshot = await ann.request("approval.get", { id });
    valid(validateApprovalGetResult, snapshot);
    assert.equal(snapshot.approval.status, "pending");

    const part = ann.request("exec.approval.resolve", { id: id.slice(0, 30), decision: "deny" });
    await assert.rejects(part, fails("INVALID_REQUEST", "APPROVAL_ID_INCOMPLETE"));
    assert.deepEqual(await ann.request("exec.approval.resolve", { id, decision: "deny" }), { ok: true });
    assert.ok(!(await ann.request("exec.approval.list", {})).some((other) => other.id === id));
    const ended = await ann.request("approval.get", { id });
    valid(validateApprovalGetResult, { approval: inItsWords(ended.approval) });
    assert.equal(ended.approval.status, "denied");
    const history = await ann.request("approval.history", { limit: 10 });
    // The schema has no words for what policy ruled by itself: this one a person decided.
    valid(validateApprovalHistoryResult, { ...history, items: history.items.filter((one) => one.id === id).map(inItsWords) });
    assert.equal(history.items[0].id, id);
  });

  test("the same decision again is ok, another is not, an unknown id is neither", async () => {
    const [agent, ann] = [await connect("agent"), await connect("approver")];
    const { id } = await ask(agent, { command: "rm -rf ./again-and-again" }).first;
    const resolve = (decision, which = id) => ann.request("exec.approval.resolve", { id: which, decision });
    await assert.rejects(resolve("maybe"), fails("INVALID_REQUEST"));
    assert.deepEqual(await resolve("deny"), { ok: true });
    assert.deepEqual(await resolve("deny"), { ok: true });
    await assert.rejects(resolve("allow-once"), fails("INVALID_REQUEST", "APPROVAL_ALREADY_RESOLVED"));
    await assert.rejects(resolve("deny", "appr_00000000000000000000000000000000"), (error) => {
      fails("INVALID_REQUEST", "APPROVAL_NOT_FOUND")(error);
      assert.equal(error.message, "unknown or expired approval id");
      return true;
    });
    await assert.rejects(resolve("deny", "appr_"), fails("INVALID_REQUEST"));
  });

  test("approval.resolve says whether it was this one that decided", async () => {
    const [agent, ann] = [await connect("agent"), await connect("approver")];
    const { id } = await ask(agent, { command: "rm -rf ./applied" }).first;
    const done = await ann.request("approval.resolve", { id, kind: "exec", decision: "allow-once" });
    valid(validateApprovalResolveResult, { ...done, approval: inItsWords(done.approval) });
    assert.deepEqual([done.applied, done.approval.status], [true, "allowed"]);
  });

  test("what the reference command line asks for besides is there", async () => {
    const ann = await connect("approver");
    assert.deepEqual(await ann.request("plugin.approval.list", {}), []);
    assert.deepEqual(await ann.request("openclaw.approval.list", {}), []);
    assert.ok(Array.isArray((await ann.request("exec.approval.grants.list", {})).grants));
  });
});

describe("who may", () => {
  test("an agent asks and sees its own, and nothing else", async () => {
    const [agent, other, ann] = [await connect("agent"), await connect("other"), await connect("approver")];
    const { id } = await ask(agent, { command: "rm -rf ./private" }).first;
    await ann.card("rm -rf ./private");
    for (const [method, params] of [
      ["exec.approval.resolve", { id, decision: "allow-once" }], ["exec.approval.list", {}],
      ["approval.resolve", { id, kind: "exec", decision: "allow-once" }], ["exec.approvals.get", {}],
    ]) await assert.rejects(agent.request(method, params), fails("FORBIDDEN", "MISSING_SCOPE"), method);
    assert.equal((await agent.request("exec.approval.get", { id })).commandText, "rm -rf ./private");
    await assert.rejects(other.request("exec.approval.get", { id }), fails("INVALID_REQUEST", "APPROVAL_NOT_FOUND"));
    await assert.rejects(other.request("exec.approval.waitDecision", { id }), fails("INVALID_REQUEST", "APPROVAL_NOT_FOUND"));
    assert.ok(!other.events.some(({ payload }) => payload?.id === id));
    await ann.request("exec.approval.resolve", { id, decision: "deny" });
  });

  test("an approver changes no policy; an unknown method is said to be one", async () => {
    const ann = await connect("approver");
    await assert.rejects(ann.request("exec.approvals.get", {}), fails("FORBIDDEN", "MISSING_SCOPE"));
    await assert.rejects(ann.request("no.such.method", {}), fails("INVALID_REQUEST"));
  });

  test("a key that was revoked is thrown out", async () => {
    const key = await gate.key("approver", "gone");
    const heard = open(key);
    await heard.hello;
    const admin = { Authorization: `Bearer ${keys.admin}` };
    const { keys: all } = await (await fetch(`${gate.url}/v1/keys`, { headers: admin })).json();
    const { key_id } = all.find(({ name }) => name === "gone");
    await fetch(`${gate.url}/v1/keys/${key_id}`, { method: "DELETE", headers: admin });
    while (heard.paused.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(heard.paused[0].detailCode, "AUTH_TOKEN_MISMATCH");
  });
});

test("the policy document, with its hash", async () => {
  const root = await connect("admin");
  const read = await root.request("exec.approvals.get", {});
  fits(ExecApprovalsSnapshotSchema, read);
  const file = { ...read.file, defaults: { ...read.file.defaults, security: "allowlist", ask: "always" } };
  await assert.rejects(root.request("exec.approvals.set", { file }), fails("INVALID_REQUEST"));
  await assert.rejects(root.request("exec.approvals.set", { file, baseHash: "0".repeat(64) }), fails("INVALID_REQUEST"));
  const written = await root.request("exec.approvals.set", { file, baseHash: read.hash });
  fits(ExecApprovalsSnapshotSchema, written);
  assert.notEqual(written.hash, read.hash);
  assert.equal(written.file.defaults.ask, "always");
});
