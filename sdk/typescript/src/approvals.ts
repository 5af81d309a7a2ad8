// The HTTP door's words, as `docs/http.md` has them: names are those of the wire, times are Unix seconds unless said.

export type ApprovalStatus = "pending" | "approved" | "denied" | "expired" | "cancelled";
export type RiskLevel = "safe" | "needs-review" | "dangerous";
export type Channel = "any" | "web" | "hub" | "telegram" | "email";

/** What every request for approval may carry. */
export interface AskCommon {
  /** Which of the agent's sessions asks; grants for a session go by it. */
  session_id: string;
  /** The agent's own words about it. */
  title?: string;
  agent_id?: string;
  context_id?: string;
  /** How long a person has: 1 to 86,400; default 600. */
  expires_in_sec?: number;
  /** Rules this request more strictly; can never make it less strict. */
  security?: "deny" | "allowlist" | "full";
  /** `off`, `on-miss`, `always`, or the agent's words. */
  ask?: string;
  channel?: Channel;
  target?: { email_to?: string; tg_chat_id?: string };
  workspace?: string;
  terminal_file?: string;
  /** Take the permit at once where policy says yes without asking a person. */
  consume?: boolean;
  /** Made by the SDK when absent, so that a retry cannot ask twice. */
  idempotency_key?: string;
}

/** Exactly one kind of action. */
export type AskAction =
  | { command: string; cwd?: string; env?: Record<string, string> }
  | { argv: string[]; cwd?: string; env?: Record<string, string> }
  | { tool: string; args?: unknown; category?: string }
  | { question: string; options?: string[] }
  | { action_type: string; title: string; preview: string };

export type ApprovalRequest = AskCommon & AskAction;

export interface Reason {
  code: string;
  message: string;
  /** Byte offsets into the command. */
  start: number;
  end: number;
}

export interface Decision {
  /** `1` to `6`: the menu of `docs/http.md`. */
  code: string;
  note: string | null;
  /** Not null: do this instead of what was asked. */
  override: string | null;
  answer: string | null;
  by: string;
  at: number;
  via: string;
  grant_id?: string | null;
  /** The digest of what may run, when there is an override of a command. */
  override_digest?: string | null;
  remembered?: string[];
}

/** A request as the agent that made it sees it. Act only on `status === "approved"`. */
export interface Approval {
  approval_id: string;
  status: ApprovalStatus;
  /** Policy answered by itself. */
  auto: boolean;
  /** Why it ended. */
  reason?: string | null;
  decision?: Decision | null;
  session_id: string;
  action_type: string;
  /** SHA-256 of the action's canonical JSON: what was approved is this. */
  digest: string;
  expires_at?: number | null;
  risk?: RiskLevel | null;
  reasons?: Reason[] | null;
  rule?: string | null;
  allow_rule_applied?: string | null;
  consumed_at?: number | null;
  message: string;
}

/** A request as an approver sees it. */
export interface ApprovalRecord extends Omit<Approval, "message" | "expires_at"> {
  created_at: number;
  expires_at: number;
  title: string;
  preview: string;
  choices: string[];
  channel: string;
  target: Record<string, unknown>;
  client_id: string;
  client_name: string;
  profile: string;
  door: string;
  agent_id?: string | null;
  context_id?: string | null;
  prior?: { approval_id: string; at: number; status: string } | null;
  offer?: { entries: string[]; wider_refused: string } | { refused: string } | null;
  showing?: Record<string, unknown> | null;
  run?: Record<string, unknown> | null;
}

export interface ApprovalPage {
  approvals: ApprovalRecord[];
  next_cursor?: string | null;
}

export type DecisionWord = "allow-once" | "allow-session" | "allow-always" | "deny";

/** An answer in words. */
export interface DecisionInWords {
  decision: DecisionWord;
  note?: string;
  /** With allow-once: what to do instead. */
  override?: string;
  /** Answers a question. */
  answer?: string;
  grant?: { expires_in_sec?: number };
  remember?: boolean;
  /** The digest from a `confirm_required` error, if the riskier override is meant. */
  confirm?: string;
}

/** An answer by the menu's number. */
export interface DecisionByCode {
  code: "1" | "2" | "3" | "4" | "5" | "6";
  text?: string;
  confirm?: string;
}

/** Something that was committed. Times inside are **milliseconds**. */
export interface GateEvent {
  seq: number;
  /** Unix milliseconds. */
  at: number;
  /** `requested`, `ruled`, `resolved`, `consumed`, `grant_made` and the others of `docs/http.md`. */
  type: string;
  approval_id?: string;
  /** The record as it is now, where the event is about a request. */
  approval?: ApprovalRecord;
  [field: string]: unknown;
}

/** Whether this may be acted on: approved, and nothing else is a yes. */
export function isApproved(approval: Pick<Approval, "status">): boolean {
  return approval.status === "approved";
}
