// The examples in docs/gateway.md and docs/hub.md are files of this repository, and they run.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Gate } from "../../sdk/typescript/test/gate.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
let gate, agent;
before(async () => {
  gate = await Gate.start();
  agent = await gate.key("agent", "bot");
});
after(() => gate?.stop());

for (const name of ["gateway", "hub"]) {
  test(`the page on the ${name} shows the file as it is`, () => {
    const page = readFileSync(`${root}/docs/${name}.md`, "utf8");
    const file = readFileSync(`${root}/examples/${name}.mjs`, "utf8");
    assert.ok(page.includes(`\`\`\`js\n${file}\`\`\``), `docs/${name}.md and examples/${name}.mjs differ`);
  });
}

async function ask(command) {
  const body = JSON.stringify({ session_id: "s", command });
  const headers = { authorization: `Bearer ${agent}`, "content-type": "application/json" };
  return (await fetch(`${gate.url}/v1/approvals`, { method: "POST", headers, body })).json();
}

async function ended({ approval_id: id }) {
  return (await fetch(`${gate.url}/v1/approvals/${id}?wait=30`, { headers: { authorization: `Bearer ${agent}` } })).json();
}

/** Answers what was asked before it connects, and what is asked after. */
async function answers(name, greeting, variables) {
  const early = await ask(`make ${name}-early`);
  const env = { ...process.env, COUNTERSIGN_URL: `${gate.url.replace("http", "ws")}/${name}`, ...variables };
  const child = spawn(process.execPath, [`${root}/examples/${name}.mjs`, "allow-once"], { env, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    assert.equal((await lines.next()).value, greeting);
    assert.equal((await ended(early)).decision.by, "ann");
    const late = await ask(`make ${name}-late`);
    assert.deepEqual([(await ended(late)).status, (await ended(late)).decision.via], ["approved", name]);
  } finally {
    child.kill();
  }
}

test("the example of the gateway answers", async () => {
  await answers("gateway", "connected with operator.approvals", { COUNTERSIGN_KEY: await gate.key("approver", "ann") });
});

test("the example of the hub pairs, and answers", async () => {
  const { code } = JSON.parse(await gate.cli("pair", "--json", "--name", "ann"));
  const variables = { COUNTERSIGN_KEY: "", COUNTERSIGN_DEVICE: crypto.randomUUID() };
  await answers("hub", "verified", { ...variables, COUNTERSIGN_CODE: code });
  await answers("hub", "verified", { ...variables, COUNTERSIGN_CODE: "" });
});
