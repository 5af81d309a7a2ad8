// The hub's words: what devices and the hub send each other. Names are those of the wire.

/** The hub asks somebody: payload `ExecApprovalRequestPayload`. */
export const ExecApprovalRequestAction = "exec-approval-request";
/** A request ended, here or elsewhere: payload `ExecApprovalResolvedPayload`. */
export const ExecApprovalResolvedAction = "exec-approval-resolved";
export const RequestAction = "request";
export const ResponseAction = "response";

export type DeviceType = "client" | "hub" | "agent";
export type ApprovalDecision = "allow-once" | "allow-always" | "deny";

export interface Device {
  deviceId: string;
  deviceType: DeviceType;
}

/** What goes from one device to another. */
export interface RoutedMessage<P = unknown> {
  id: string;
  uid: string | null;
  from: string;
  to: string;
  action: string;
  payload: P;
}

export interface ExecApprovalRequestPayload {
  approvalId: string;
  agentId: string;
  command: string;
  cwd?: string;
  riskLevel: "safe" | "needs-review" | "dangerous";
  riskReasons: string[];
  /** Unix milliseconds by the gate's clock. */
  expiresAtMs: number;
}

export interface ExecApprovalResolvedPayload {
  approvalId: string;
  /** Null when the answer is not known here: it ended while this device was away, or without an answer. */
  decision: ApprovalDecision | "allow-session" | null;
  resolvedBy?: string | null;
  reason?: string | null;
}

export interface ResolveExecApprovalParams {
  approvalId: string;
  decision: ApprovalDecision;
}

export interface ResolveExecApprovalResult {
  ok: boolean;
}

export interface VerifyParams {
  /** The one-time code of `countersign pair`. */
  token?: string;
  /** Shown beside the device in the list of paired ones. */
  meta?: Record<string, unknown>;
}

export interface VerifyResult {
  hubId: string;
  agentId: string;
}

export interface RequestExecApprovalParams {
  command: string;
  cwd?: string;
  agentId?: string;
  timeoutMs?: number;
}

/** Run the command only on `allow-once` or `allow-always`. */
export interface RequestExecApprovalResult {
  approvalId: string;
  decision: ApprovalDecision;
  reason: string;
}

export interface ListExecApprovalsResult {
  approvals: ExecApprovalRequestPayload[];
}

/** The hub's methods, so that `request` knows what each takes and gives. */
export interface HubMethods {
  verify: { params: VerifyParams; result: VerifyResult };
  resolveExecApproval: { params: ResolveExecApprovalParams; result: ResolveExecApprovalResult };
  requestExecApproval: { params: RequestExecApprovalParams; result: RequestExecApprovalResult };
  listExecApprovals: { params: Record<string, never>; result: ListExecApprovalsResult };
}

export function isRoutedMessage(value: unknown): value is RoutedMessage {
  if (typeof value !== "object" || value === null) return false;
  const message = value as Record<string, unknown>;
  return ["id", "from", "to", "action"].every((field) => typeof message[field] === "string");
}
