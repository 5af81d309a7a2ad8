// The errors of this package. Each says what went wrong in a stable `code`, and in `retryable` whether sending the
// same again can help. None of them ever means yes.

/** What the gate's error bodies carry besides the error itself. */
export interface ErrorExtras {
  /** The state the request is in already. */
  status?: string | null;
  /** The winner's answer, when somebody else was first. */
  decision?: unknown;
  /** The digest to send back as `confirm` if a riskier override is meant. */
  confirm?: string | null;
  /** What such an override would do. */
  assessment?: unknown;
  /** The current hash, when a change was made to an older document. */
  hash?: string | null;
}

/**
 * An HTTP call that did not succeed.
 *
 * `status` is the HTTP status, or 0 when no answer came. Codes besides the gate's own: `network` (no answer),
 * `timeout` (none in time) and `bad_answer` (an answer that is not the gate's).
 */
export class CountersignError extends Error {
  override readonly name = "CountersignError";
  readonly status: number;
  readonly code: string;
  readonly retryable: boolean;
  /** From `Retry-After`. */
  readonly retryAfterMs: number | undefined;
  readonly body: ErrorExtras | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    retryable: boolean,
    more: { retryAfterMs?: number | undefined; body?: ErrorExtras | undefined; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.status = status;
    this.code = code;
    this.retryable = retryable;
    this.retryAfterMs = more.retryAfterMs;
    this.body = more.body;
  }
}

/**
 * A hub request that did not succeed.
 *
 * Codes of the hub: `METHOD_NOT_FOUND`, `INVALID_PARAMS`, `NOT_FOUND`, `UNAUTHORIZED`, `DEVICE_NOT_FOUND`,
 * `NOT_REGISTERED`, `INVALID_MESSAGE` and others it may add. Ours: `TIMEOUT`, `DISCONNECTED`, `NOT_CONNECTED`,
 * `CLOSED`, `REGISTRATION_FAILED`, `BAD_MESSAGE`.
 */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: string;
  readonly retryable: boolean;

  constructor(code: string, message: string, retryable = false, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = retryable;
  }
}

/** The reason an `AbortSignal` was aborted with, as something that can be thrown. */
export function abortReason(signal: AbortSignal): unknown {
  return signal.reason ?? new DOMException("this operation was aborted", "AbortError");
}
