// The client guide of the hub's protocol as it was published, but for the name of the package, and what it takes as
// given: a client, the hub's device, and somewhere to show a request. `test/hub.test.js` runs it.

import type { RoutedMessage } from "@countersign/sdk";

export let client: GatewayClient;
export let hubDeviceId: string;
let showApprovalUI: (payload: ExecApprovalRequestPayload) => void;

export async function start(options: { url: string; key: string; show: (payload: ExecApprovalRequestPayload) => void }) {
  client = new GatewayClient({ url: options.url, key: options.key });
  showApprovalUI = options.show;
  listen();
  await client.connect();
  hubDeviceId = client.hubDeviceId;
  return { client, respondToApproval };
}

// ---- as published
import { GatewayClient, ExecApprovalRequestAction } from "@countersign/sdk";
import type { ExecApprovalRequestPayload, ApprovalDecision } from "@countersign/sdk";

function listen() {
// Listen for approval requests
client.onMessage((msg) => {
  if (msg.action === ExecApprovalRequestAction) {
    const payload = msg.payload as ExecApprovalRequestPayload;
    showApprovalUI(payload);
  }
});
}

// When user makes a decision
async function respondToApproval(approvalId: string, decision: ApprovalDecision) {
  const result = await client.request(hubDeviceId, "resolveExecApproval", {
    approvalId,
    decision,
  });
  // result.ok === true if resolved successfully
  return result satisfies ResolveExecApprovalResult;
}

// ---- the types the guide names
import {
  ExecApprovalRequestAction as Action,    // "exec-approval-request"
  type ResolveExecApprovalParams,
  type ResolveExecApprovalResult,
} from "@countersign/sdk";

const _action: "exec-approval-request" = Action;
const _params: ResolveExecApprovalParams = { approvalId: "", decision: "allow-once" satisfies ApprovalDecision };
const _message = (message: RoutedMessage): [string, string, string] => [message.from, message.to, message.action];
