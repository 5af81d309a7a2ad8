// A client of the hub that shows requests and answers them. With an approver's key in COUNTERSIGN_KEY, or with the
// one-time code of `countersign pair` in COUNTERSIGN_CODE and nothing else.
import { ExecApprovalRequestAction, ExecApprovalResolvedAction, GatewayClient, RpcError } from "@countersign/sdk";

const client = new GatewayClient({
  url: process.env.COUNTERSIGN_URL,
  key: process.env.COUNTERSIGN_KEY,
  token: process.env.COUNTERSIGN_CODE,
});

client.onStateChange((state, error) => console.log(state, error?.message ?? ""));
client.onMessage(async ({ action, payload }) => {
  if (action === ExecApprovalResolvedAction) console.log(`over: ${payload.approvalId}`);
  if (action !== ExecApprovalRequestAction) return;
  console.log(`${payload.riskLevel}: ${payload.command}`);
  const decision = payload.riskLevel === "dangerous" ? "deny" : "allow-once";
  try {
    await client.request(client.hubDeviceId, "resolveExecApproval", { approvalId: payload.approvalId, decision });
    console.log(`${decision}: ${payload.approvalId}`);
  } catch (error) {
    // NOT_FOUND: it was answered elsewhere, or its time was over.
    if (!(error instanceof RpcError) || error.code !== "NOT_FOUND") throw error;
  }
});

await client.connect();
