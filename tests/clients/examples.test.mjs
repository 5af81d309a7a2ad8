// The examples in docs/gateway.md are files of this repository, and they run.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Gate } from "../../sdk/typescript/test/gate.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
let gate;
before(async () => { gate = await Gate.start(); });
after(() => gate?.stop());

test("the page shows the file as it is", () => {
  const page = readFileSync(`${root}/docs/gateway.md`, "utf8");
  const file = readFileSync(`${root}/examples/gateway.mjs`, "utf8");
  assert.ok(page.includes(`\`\`\`js\n${file}\`\`\``), "docs/gateway.md and examples/gateway.mjs differ");
});

test("the example answers what is asked before and after it connects", async () => {
  const [agent, ann] = [await gate.key("agent", "bot"), await gate.key("approver", "ann")];
  const ask = async (command) => {
    const body = JSON.stringify({ session_id: "s", command });
    const headers = { authorization: `Bearer ${agent}`, "content-type": "application/json" };
    return (await fetch(`${gate.url}/v1/approvals`, { method: "POST", headers, body })).json();
  };
  const ended = async ({ approval_id: id }) =>
    (await fetch(`${gate.url}/v1/approvals/${id}?wait=30`, { headers: { authorization: `Bearer ${agent}` } })).json();

  const early = await ask("make early");
  const env = { ...process.env, COUNTERSIGN_URL: `${gate.url.replace("http", "ws")}/gateway`, COUNTERSIGN_KEY: ann };
  const child = spawn(process.execPath, [`${root}/examples/gateway.mjs`, "allow-once"], { env, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    assert.equal((await lines.next()).value, "connected with operator.approvals");
    assert.equal((await ended(early)).decision.by, "ann");
    const late = await ask("make late");
    assert.deepEqual([(await ended(late)).status, (await ended(late)).decision.via], ["approved", "gateway"]);
  } finally {
    child.kill();
  }
});
