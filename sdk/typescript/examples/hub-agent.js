// An agent that is a device of the hub: it asks there and hears the answer. COUNTERSIGN_KEY has the role agent.
import { GatewayClient } from "@countersign/sdk";

const agent = new GatewayClient({ url: process.env.COUNTERSIGN_URL, key: process.env.COUNTERSIGN_KEY, deviceType: "agent" });
await agent.connect();

const command = process.argv[2] ?? "touch ./built";
const { decision, reason } = await agent.request(
  agent.hubDeviceId, "requestExecApproval", { command, cwd: process.cwd(), timeoutMs: 60_000 }, { timeoutMs: 70_000 },
);
// Anything but these two is a no.
const allowed = decision === "allow-once" || decision === "allow-always";
console.log(allowed ? `may run \`${command}\`` : `not run: ${reason}`);
process.exitCode = allowed ? 0 : 77;
agent.close();
