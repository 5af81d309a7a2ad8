// An agent that asks before it acts. COUNTERSIGN_URL and COUNTERSIGN_KEY (role agent) say where and as whom.
import { spawnSync } from "node:child_process";
import { CountersignClient, isApproved } from "@countersign/sdk";

const gate = new CountersignClient({ url: process.env.COUNTERSIGN_URL, key: process.env.COUNTERSIGN_KEY });
const command = process.argv[2] ?? "touch ./built";

const asked = await gate.requestApproval({ session_id: "nightly", command, cwd: process.cwd() });
const ended = isApproved(asked) ? asked : await gate.waitForDecision(asked);

if (isApproved(ended)) {
  // Takes the permit: works once, within two minutes of the answer. Only when this returns may it run.
  await gate.consume(ended.approval_id);
  const run = ended.decision?.override ?? command;
  const { status } = spawnSync("sh", ["-c", run], { stdio: "inherit" });
  console.log(`ran \`${run}\`: ${status}`);
} else {
  console.log(`not run: ${ended.status}${ended.decision?.note ? `, ${ended.decision.note}` : ""}`);
  process.exitCode = 77;
}
