// CountersignClient against the real binary.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { CountersignClient, CountersignError, isApproved } from "@countersign/sdk";
import { Gate, freePort } from "./gate.js";

let gate, agent, approver, agentKey, approverKey;

before(async () => {
  gate = await Gate.start();
  [agentKey, approverKey] = [await gate.key("agent", "my-agent"), await gate.key("approver", "ann")];
  agent = new CountersignClient({ url: gate.url, key: agentKey });
  approver = new CountersignClient({ url: gate.url, key: approverKey });
});
after(() => gate?.stop());

const failsWith = (status, code) => (error) => {
  assert.ok(error instanceof CountersignError, `${error}`);
  assert.deepEqual([error.status, error.code], [status, code]);
  return true;
};
const ask = (command = "rm -rf ./build", more = {}) => agent.requestApproval({ session_id: "s1", command, ...more });

describe("asking", () => {
  test("policy answers what only reads at once", async () => {
    const approval = await ask("git log -1");
    assert.equal(approval.status, "approved");
    assert.equal(approval.auto, true);
    assert.equal(isApproved(approval), true);
  });

  test("what a person must see waits, and their answer comes with its note", async () => {
    const asked = await ask();
    assert.equal(asked.status, "pending");
    assert.equal(asked.risk, "needs-review");
    assert.equal(isApproved(asked), false);
    const waiting = agent.waitForDecision(asked);
    const record = await approver.decide(asked.approval_id, { decision: "allow-once", note: "only this once" });
    assert.equal(record.status, "approved");
    assert.equal(record.client_name, "my-agent");
    const ended = await waiting;
    assert.equal(ended.status, "approved");
    assert.equal(ended.decision.note, "only this once");
    assert.equal(ended.decision.by, "ann");
  });

  test("a no is an answer and not an error", async () => {
    const asked = await ask();
    await approver.decide(asked.approval_id, { code: "3", text: "not today" });
    const ended = await agent.waitForDecision(asked.approval_id);
    assert.equal(ended.status, "denied");
    assert.equal(isApproved(ended), false);
    assert.equal(ended.decision.note, "not today");
  });

  test("an expired one is not a yes", async () => {
    const asked = await ask("rm -rf ./expires", { expires_in_sec: 1 });
    assert.equal((await agent.waitForDecision(asked)).status, "expired");
  });

  test("tools and questions", async () => {
    const tool = await agent.requestApproval({ session_id: "s1", tool: "Write", args: { file_path: "/etc/hosts" } });
    assert.equal(tool.status, "pending");
    await agent.cancel(tool.approval_id);
    const question = await agent.requestApproval({ session_id: "s1", question: "Which one?", options: ["a", "b"] });
    await approver.decide(question.approval_id, { decision: "allow-once", answer: "b" });
    assert.equal((await agent.waitForDecision(question)).decision.answer, "b");
  });

  test("what the gate refuses is an error with its code", async () => {
    await assert.rejects(agent.requestApproval({ session_id: "s1" }), failsWith(422, "missing_field"));
    await assert.rejects(approver.requestApproval({ session_id: "s1", command: "ls" }), failsWith(403, "forbidden"));
    const nobody = new CountersignClient({ url: gate.url, key: "csk_wrong" });
    await assert.rejects(nobody.requestApproval({ session_id: "s1", command: "ls" }), failsWith(401, "unauthorized"));
    await assert.rejects(agent.get("appr_00000000000000000000000000000000"), failsWith(404, "not_found"));
  });
});

describe("idempotency", () => {
  test("a lost answer is asked for again, and a person is asked once", async () => {
    let lost = 0;
    const keys = new Set();
    const flaky = new CountersignClient({
      url: gate.url,
      key: agentKey,
      backoff: { minMs: 1, maxMs: 5 },
      fetch: async (url, init) => {
        keys.add(JSON.parse(init.body).idempotency_key);
        const response = await fetch(url, init);
        if (lost++ < 2) {
          await response.text();
          throw new TypeError("fetch failed", { cause: new Error("socket hang up") });
        }
        return response;
      },
    });
    const approval = await flaky.requestApproval({ session_id: "lost", command: "rm -rf ./lost" });
    assert.equal(lost, 3);
    assert.equal(keys.size, 1);
    const { approvals } = await approver.list({ status: "pending" });
    const same = approvals.filter((one) => one.session_id === "lost");
    assert.deepEqual(same.map((one) => one.approval_id), [approval.approval_id]);
    await agent.cancel(approval.approval_id);
  });

  test("two calls are two requests, and a key of one's own is one", async () => {
    const [one, two] = [await ask(), await ask()];
    assert.notEqual(one.approval_id, two.approval_id);
    const mine = { idempotency_key: "mine-1" };
    const [three, four] = [await ask("rm -rf x", mine), await ask("rm -rf x", mine)];
    assert.equal(three.approval_id, four.approval_id);
    await assert.rejects(ask("rm -rf y", mine), failsWith(409, "idempotency_conflict"));
    for (const { approval_id } of [one, two, three]) await agent.cancel(approval_id);
  });
});

describe("deciding, cancelling, consuming", () => {
  test("the second decision loses and is told who won", async () => {
    const asked = await ask();
    await approver.decide(asked.approval_id, { decision: "deny" });
    await assert.rejects(approver.decide(asked.approval_id, { decision: "allow-once" }), (error) => {
      failsWith(409, "already_decided")(error);
      assert.equal(error.body.status, "denied");
      assert.equal(error.body.decision.by, "ann");
      assert.equal(error.retryable, false);
      return true;
    });
  });

  test("an agent decides nothing", async () => {
    const asked = await ask();
    await assert.rejects(agent.decide(asked.approval_id, { decision: "allow-once" }), failsWith(403, "forbidden"));
    assert.equal((await agent.cancel(asked.approval_id)).status, "cancelled");
    assert.equal((await agent.waitForDecision(asked)).status, "cancelled");
  });

  test("a permit is taken once", async () => {
    const asked = await ask();
    await assert.rejects(agent.consume(asked.approval_id), failsWith(409, "not_approved"));
    await approver.decide(asked.approval_id, { decision: "allow-once" });
    assert.ok((await agent.consume(asked.approval_id)).consumed_at > 0);
    await assert.rejects(agent.consume(asked.approval_id), failsWith(409, "already_consumed"));
  });

  test("an override is what runs, and a riskier one is confirmed", async () => {
    const asked = await ask("touch a");
    const decision = { decision: "allow-once", override: "rm -rf /srv" };
    const refused = await approver.decide(asked.approval_id, decision).catch((error) => error);
    failsWith(409, "confirm_required")(refused);
    await approver.decide(asked.approval_id, { ...decision, confirm: refused.body.confirm });
    const ended = await agent.waitForDecision(asked);
    assert.equal(ended.decision.override, "rm -rf /srv");
    assert.equal(ended.decision.override_digest, refused.body.confirm);
  });

  test("the list has pages", async () => {
    const made = [await ask("rm -rf p1"), await ask("rm -rf p2"), await ask("rm -rf p3")];
    const seen = [];
    let cursor;
    do {
      const page = await approver.list({ status: "pending", limit: 1, ...(cursor && { cursor }) });
      seen.push(...page.approvals.map((one) => one.approval_id));
      cursor = page.next_cursor;
    } while (cursor);
    for (const { approval_id } of made) {
      assert.ok(seen.includes(approval_id));
      await agent.cancel(approval_id);
    }
  });
});

describe("waiting", () => {
  test("a signal ends it", async () => {
    const asked = await ask();
    const control = new AbortController();
    const waiting = agent.waitForDecision(asked, { signal: control.signal });
    control.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    await assert.rejects(agent.get(asked.approval_id, { signal: AbortSignal.abort() }), { name: "AbortError" });
    await agent.cancel(asked.approval_id);
  });

  test("a limit ends it, and the request goes on", async () => {
    const asked = await ask();
    await assert.rejects(agent.waitForDecision(asked, { timeoutMs: 300 }), failsWith(0, "timeout"));
    assert.equal((await agent.get(asked.approval_id)).status, "pending");
    await agent.cancel(asked.approval_id);
  });

  test("it outlives restarts of the gate", async () => {
    const other = await Gate.start();
    try {
      const [asking, deciding] = [await other.key("agent"), await other.key("approver")];
      const backoff = { minMs: 20, maxMs: 100 };
      const client = new CountersignClient({ url: other.url, key: asking, backoff });
      const asked = await client.requestApproval({ session_id: "s", command: "rm -rf ./build" });
      const waiting = client.waitForDecision(asked);
      await other.down();
      await other.up();
      await other.down("SIGKILL");
      await other.up();
      await new CountersignClient({ url: other.url, key: deciding }).decide(asked.approval_id, { decision: "allow-once" });
      assert.equal((await waiting).status, "approved");
    } finally {
      await other.stop();
    }
  });

  test("a gate that stays away is an error and never a yes", async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const client = new CountersignClient({ url, key: "csk_x", giveUpAfterMs: 100, backoff: { minMs: 10, maxMs: 20 } });
    await assert.rejects(client.waitForDecision("appr_1"), failsWith(0, "network"));
    await assert.rejects(client.requestApproval({ session_id: "s", command: "ls" }), failsWith(0, "network"));
  });
});

describe("answers that are not the gate's", () => {
  const answers = {
    "an empty page": [200, "text/html", ""],
    "another page": [200, "text/html", "<h1>approved</h1>"],
    "a bare word": [200, "application/json", '"approved"'],
    "a yes to something else": [200, "application/json", '{"approval_id":"appr_2","status":"approved"}'],
    "a state nobody knows": [200, "application/json", '{"approval_id":"appr_1","status":"APPROVED"}'],
    "a yes with an error's status": [500, "application/json", '{"approval_id":"appr_1","status":"approved"}'],
    "a redirect to a yes": [302, "application/json", "", { location: "/yes" }],
  };
  for (const [name, [status, type, body, headers]] of Object.entries(answers)) {
    test(`${name} is an error`, async () => {
      const server = createServer((request, response) => {
        if (request.url === "/yes") response.end('{"approval_id":"appr_1","status":"approved"}');
        else response.writeHead(status, { "content-type": type, ...headers }).end(body);
      }).listen(0, "127.0.0.1");
      await new Promise((resolve) => server.once("listening", resolve));
      const url = `http://127.0.0.1:${server.address().port}`;
      const client = new CountersignClient({ url, key: "k", giveUpAfterMs: 0 });
      await assert.rejects(client.waitForDecision("appr_1"), CountersignError);
      await assert.rejects(client.consume("appr_1"), CountersignError);
      await new Promise((resolve) => server.close(resolve));
    });
  }

  test("what the gate sends when it is busy is tried again, after as long as it says", async () => {
    let calls = 0;
    const server = createServer((request, response) => {
      calls += 1;
      if (calls === 1) {
        response.writeHead(429, { "retry-after": "1" })
          .end('{"error":{"code":"rate_limited","message":"slow down","retryable":true},"detail":""}');
      } else if (calls === 2) {
        response.writeHead(502).end("bad gateway");
      } else {
        response.end('{"approval_id":"appr_1","status":"denied"}');
      }
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const url = `http://127.0.0.1:${server.address().port}`;
    const client = new CountersignClient({ url, backoff: { minMs: 1, maxMs: 2 } });
    const began = Date.now();
    assert.equal((await client.get("appr_1")).status, "denied");
    assert.equal(calls, 3);
    assert.ok(Date.now() - began >= 990);
    await new Promise((resolve) => server.close(resolve));
  });
});

describe("events", () => {
  test("follow what is committed, and go on over a restart without a gap or a double", async () => {
    const other = await Gate.start();
    try {
      const [asking, deciding] = [await other.key("agent"), await other.key("approver")];
      const backoff = { minMs: 10, maxMs: 50 };
      const client = new CountersignClient({ url: other.url, key: asking, backoff });
      const watcher = new CountersignClient({ url: other.url, key: deciding, backoff });
      const seen = [];
      const wanted = [];
      const control = new AbortController();
      let enough;
      const complete = new Promise((resolve) => (enough = resolve));
      const following = (async () => {
        for await (const event of watcher.events({ after: 0, signal: control.signal })) {
          seen.push(event.seq);
          if (event.type === "requested") {
            assert.equal(event.approval.approval_id, event.approval_id);
            wanted.push(event.approval_id);
            if (wanted.length === 3) enough();
          }
        }
      })();
      const made = [];
      for (let i = 0; i < 3; i += 1) {
        if (i > 0) {
          await other.down(i === 1 ? "SIGTERM" : "SIGKILL");
          await other.up();
        }
        made.push((await client.requestApproval({ session_id: "s", command: `rm -rf ./${i}` })).approval_id);
      }
      await complete;
      control.abort();
      await assert.rejects(following, { name: "AbortError" });
      assert.deepEqual(wanted, made);
      assert.deepEqual(seen, seen.map((_, i) => seen[0] + i));
    } finally {
      await other.stop();
    }
  });

  test("begin now without a number, end with the loop, and need an approver", async () => {
    let opened;
    const open = new Promise((resolve) => (opened = resolve));
    const following = (async () => {
      for await (const event of approver.events({ onOpen: opened })) {
        if (event.type === "requested") return event;
      }
    })();
    await open;
    const asked = await ask("rm -rf now");
    assert.equal((await following).approval_id, asked.approval_id);
    await agent.cancel(asked.approval_id);
    await assert.rejects(agent.events().next(), failsWith(403, "forbidden"));
  });
});

test("an address that is no gate's is refused at once", () => {
  assert.throws(() => new CountersignClient({ url: "ftp://x" }), TypeError);
  assert.throws(() => new CountersignClient({ url: "http://key@127.0.0.1" }), TypeError);
});
