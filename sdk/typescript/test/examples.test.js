// The examples of docs/sdk.md are the files in examples/, and they run. Those of the hub are in hub.test.js.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CountersignClient } from "@countersign/sdk";
import { Gate } from "./gate.js";
import { examples, Stage } from "./stage.js";

let gate, agentKey, approverKey, stage;

before(async () => {
  gate = await Gate.start();
  [agentKey, approverKey] = [await gate.key("agent"), await gate.key("approver", "ann")];
  stage = await Stage.open(gate);
});
after(async () => {
  await stage?.close();
  await gate?.stop();
});

test("docs/sdk.md shows the files as they are", () => {
  const page = readFileSync(new URL("../../../docs/sdk.md", import.meta.url), "utf8");
  const shown = [...page.matchAll(/<!-- sdk\/typescript\/examples\/(\S+) -->\n```js\n([\s\S]*?)```/g)];
  assert.deepEqual(shown.map(([, name]) => name).sort(), ["agent.js", "approver.js", "hub-agent.js", "hub-approver.js"]);
  for (const [, name, text] of shown) assert.equal(text, readFileSync(new URL(name, examples), "utf8"), name);
});

test("an agent and an approver over HTTP", async () => {
  const early = stage.start("agent.js", agentKey, "touch ./early");
  const gateClient = new CountersignClient({ url: gate.url, key: approverKey });
  while ((await gateClient.list({ status: "pending" })).approvals.length === 0);
  const approver = stage.start("approver.js", approverKey);
  assert.equal(await early.ended, 0, early.text);
  assert.match(early.text, /ran `touch \.\/early`: 0/);
  assert.ok(existsSync(join(stage.folder, "early")));

  const later = stage.start("agent.js", agentKey, "touch ./later");
  assert.equal(await later.ended, 0, later.text);
  const denied = stage.start("agent.js", agentKey, "rm -rf /srv/everything");
  assert.equal(await denied.ended, 77, denied.text);
  assert.match(denied.text, /not run: denied, ask a person/);
  assert.match(approver.text, /approved: touch \.\/later/);
  approver.kill();
});
