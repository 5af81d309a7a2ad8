// The HTTP client: asking, waiting, deciding, following. Owns retries and time limits; knows no transport but `fetch`.
//
// INVARIANT: nothing here turns a failure into a yes. A call answers what the gate said, checked to be about the
// request that was meant, or it throws.

import type {
  Approval, ApprovalPage, ApprovalRecord, ApprovalRequest, ApprovalStatus, DecisionByCode, DecisionInWords, GateEvent,
} from "./approvals.js";
import { Backoff, sleep, type BackoffOptions } from "./backoff.js";
import { abortReason, CountersignError, type ErrorExtras } from "./errors.js";
import { newId } from "./random.js";
import { readServerSentEvents } from "./sse.js";

export interface CountersignClientOptions {
  /** The gate's address, as `http://127.0.0.1:7391`. A path before `/v1` is kept. */
  url: string | URL;
  /** A key of the role that the calls need. */
  key?: string | undefined;
  /** Instead of the global one. */
  fetch?: typeof fetch | undefined;
  /** For one call, besides what it waits for a person. Default 30,000. */
  timeoutMs?: number | undefined;
  /** How long to try again while the gate cannot be reached or asks for patience. Default 300,000; 0 never. */
  giveUpAfterMs?: number | undefined;
  backoff?: BackoffOptions | undefined;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface WaitOptions extends CallOptions {
  /** Throws `timeout` when nobody has answered by then; the request itself goes on. Default: until it ends. */
  timeoutMs?: number | undefined;
  /** Seconds the gate holds each call, 1 to 60. Default 50. */
  wait?: number | undefined;
}

export interface ListOptions extends CallOptions {
  status?: ApprovalStatus | undefined;
  cursor?: string | undefined;
  /** 1 to 200. */
  limit?: number | undefined;
}

export interface EventsOptions extends CallOptions {
  /** The last number you have; absent: from now on. */
  after?: number | undefined;
  /** Called each time the stream is open: whatever is committed from here on comes as an event. */
  onOpen?: (() => void) | undefined;
}

/** When the same call may be sent again by itself. */
type Again =
  /** Sending it twice does the same as once. */
  | "always"
  /** Only when the gate said that it did nothing: a lost answer is for the caller. */
  | "when-refused"
  | "never";

interface Call extends CallOptions {
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  again: Again;
  timeoutMs?: number | undefined;
}

const STATUSES: readonly string[] = ["pending", "approved", "denied", "expired", "cancelled"];
/** The gate sends a comment every 15 seconds. */
const SILENCE_MS = 45_000;

export class CountersignClient {
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof fetch;
  readonly #timeoutMs: number;
  readonly #giveUpAfterMs: number;
  readonly #backoff: BackoffOptions;

  constructor(options: CountersignClientOptions) {
    const url = new URL(options.url);
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      throw new TypeError(`the gate's address must begin with http:// or https://, not \`${url.protocol}\``);
    }
    if (url.username !== "" || url.password !== "") throw new TypeError("put the key in `key`, not in the address");
    this.#base = url.origin + url.pathname.replace(/\/+$/, "");
    this.#headers = options.key === undefined ? {} : { Authorization: `Bearer ${options.key}` };
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#giveUpAfterMs = options.giveUpAfterMs ?? 300_000;
    this.#backoff = options.backoff ?? {};
  }

  /**
   * Asks. Answers at once with the ruling: act only on `approved`, and wait for a `pending` one.
   *
   * A lost connection is tried again under the same idempotency key, so a person is asked once.
   */
  async requestApproval(request: ApprovalRequest, options: CallOptions = {}): Promise<Approval> {
    const body = { ...request, idempotency_key: request.idempotency_key ?? newId() };
    const answer = await this.#call("POST", "/v1/approvals", { ...options, body, again: "always" });
    return checked<Approval>(answer);
  }

  /**
   * Waits until a request has ended, through restarts of the gate and broken connections. The answer's `status` is
   * never `pending`, and only `approved` is a yes.
   */
  async waitForDecision(request: string | Pick<Approval, "approval_id">, options: WaitOptions = {}): Promise<Approval> {
    const id = typeof request === "string" ? request : request.approval_id;
    const wait = options.wait ?? 50;
    const until = options.timeoutMs === undefined ? Infinity : Date.now() + options.timeoutMs;
    const backoff = new Backoff(this.#backoff);
    for (;;) {
      const left = until - Date.now();
      if (left <= 0) throw new CountersignError(0, "timeout", "nobody has answered yet; wait again, or cancel", true);
      const asked = Date.now();
      const hold = Math.max(1, Math.min(wait, Math.ceil(left / 1000)));
      let approval: Approval;
      try {
        approval = await within(left, options.signal, (signal) => this.get(id, { wait: hold, signal }));
      } catch (error) {
        if (isTimeout(error) && Date.now() >= until) continue;
        throw error;
      }
      if (approval.status !== "pending") return approval;
      // A gate that stops, or whose `max_wait_sec` is small, answers early: do not spin.
      if (Date.now() - asked < 500) await sleep(Math.min(backoff.next(), Math.max(0, until - Date.now())), options.signal);
      else backoff.reset();
    }
  }

  /** Reads one request. With `wait` (seconds, at most 60) the gate holds its answer until the request ends. */
  async get(id: string, options: CallOptions & { wait?: number | undefined } = {}): Promise<Approval & Partial<ApprovalRecord>> {
    const { wait, ...rest } = options;
    const answer = await this.#call("GET", `/v1/approvals/${encodeURIComponent(id)}`, {
      ...rest,
      query: { wait },
      again: "always",
      timeoutMs: this.#timeoutMs + (wait ?? 0) * 1000,
    });
    return checked<Approval & Partial<ApprovalRecord>>(answer, id);
  }

  /** Decides, with an approver's key. Somebody else was first: 409 `already_decided`, their answer in `body.decision`. */
  async decide(id: string, decision: DecisionInWords | DecisionByCode, options: CallOptions = {}): Promise<ApprovalRecord> {
    const path = `/v1/approvals/${encodeURIComponent(id)}/decision`;
    return checked<ApprovalRecord>(await this.#call("POST", path, { ...options, body: decision, again: "when-refused" }), id);
  }

  /** Ends a pending request that is no longer needed. */
  async cancel(id: string, options: CallOptions = {}): Promise<Approval> {
    const path = `/v1/approvals/${encodeURIComponent(id)}/cancel`;
    return checked<Approval>(await this.#call("POST", path, { ...options, again: "when-refused" }), id);
  }

  /**
   * Takes the permit, just before acting. Act only when this returns. It is never sent twice: if the answer is lost,
   * the permit may be gone, and the agent asks again.
   */
  async consume(id: string, options: CallOptions = {}): Promise<Approval> {
    const path = `/v1/approvals/${encodeURIComponent(id)}/consume`;
    const approval = checked<Approval>(await this.#call("POST", path, { ...options, again: "never" }), id);
    if (approval.status !== "approved" || approval.consumed_at == null) throw badAnswer("the permit was not taken");
    return approval;
  }

  /** One page of all clients' requests, newest first, with an approver's key. */
  async list(options: ListOptions = {}): Promise<ApprovalPage> {
    const { signal, ...query } = options;
    const answer = await this.#call("GET", "/v1/approvals", { signal, query, again: "always" });
    if (!isObject(answer) || !Array.isArray(answer["approvals"])) throw badAnswer("the answer is not a list");
    return answer as unknown as ApprovalPage;
  }

  /**
   * Everything that is committed, in order, with an approver's key. Resumes by itself after a break and misses
   * nothing; ends when the caller leaves the loop, and throws when the key is no longer good.
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<GateEvent, void, undefined> {
    const backoff = new Backoff(this.#backoff);
    let position = options.after;
    let brokenSince: number | undefined;
    for (;;) {
      const ending = new AbortController();
      const stop = (): void => ending.abort(abortReason(options.signal as AbortSignal));
      if (options.signal?.aborted) throw abortReason(options.signal);
      options.signal?.addEventListener("abort", stop, { once: true });
      let silence: ReturnType<typeof setTimeout> | undefined;
      const alive = (): void => {
        clearTimeout(silence);
        silence = setTimeout(() => ending.abort(timedOut("the event stream fell silent")), SILENCE_MS);
      };
      let failure: unknown;
      try {
        alive();
        const response = await this.#open(position, ending.signal);
        let opened = false;
        for await (const event of readServerSentEvents(response, alive)) {
          backoff.reset();
          brokenSince = undefined;
          // The gate opens with its number alone, when it has begun to listen for what comes.
          if (!opened) options.onOpen?.();
          opened = true;
          const seq = event.id === "" ? undefined : Number(event.id);
          if (event.data !== undefined && (seq === undefined || position === undefined || seq > position)) {
            // The clock is for the wire, not for how long the caller takes with an event.
            clearTimeout(silence);
            const data = parse(event.data);
            if (!isObject(data) || typeof data["type"] !== "string") throw badAnswer("an event is not an object");
            // INVARIANT: the position moves only once the caller has taken the event and come back for more.
            yield data as GateEvent;
            alive();
          }
          if (seq !== undefined && Number.isSafeInteger(seq)) position = seq;
        }
      } catch (error) {
        failure = error;
      } finally {
        clearTimeout(silence);
        options.signal?.removeEventListener("abort", stop);
        ending.abort();
      }
      if (options.signal?.aborted) throw abortReason(options.signal);
      const error = failure === undefined ? undefined : asError(failure);
      if (error !== undefined && !error.retryable) throw error;
      brokenSince ??= Date.now();
      if (error !== undefined && Date.now() - brokenSince >= this.#giveUpAfterMs) throw error;
      await sleep(Math.max(error?.retryAfterMs ?? 0, backoff.next()), options.signal);
    }
  }

  async #open(position: number | undefined, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const headers: Record<string, string> = { ...this.#headers, Accept: "text/event-stream" };
    if (position !== undefined) headers["Last-Event-ID"] = String(position);
    const query = position === undefined ? "" : `?after=${position}`;
    const response = await this.#fetch(`${this.#base}/v1/events${query}`, { headers, signal, redirect: "error", cache: "no-store" });
    if (!response.ok) throw await failed(response);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream") || response.body === null) {
      await response.body?.cancel();
      throw badAnswer("the answer is not an event stream");
    }
    return response.body;
  }

  async #call(method: string, path: string, call: Call): Promise<unknown> {
    const backoff = new Backoff(this.#backoff);
    let failingSince: number | undefined;
    for (;;) {
      try {
        return await within(call.timeoutMs ?? this.#timeoutMs, call.signal, (signal) => this.#once(method, path, call, signal));
      } catch (raw) {
        if (call.signal?.aborted) throw abortReason(call.signal);
        const error = asError(raw);
        const may = call.again === "always" || (call.again === "when-refused" && error.status !== 0);
        const delay = Math.max(error.retryAfterMs ?? 0, backoff.next());
        failingSince ??= Date.now();
        if (!error.retryable || !may || Date.now() + delay - failingSince > this.#giveUpAfterMs) throw error;
        await sleep(delay, call.signal);
      }
    }
  }

  async #once(method: string, path: string, call: Call, signal: AbortSignal): Promise<unknown> {
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const headers: Record<string, string> = { ...this.#headers, Accept: "application/json" };
    const init: RequestInit = { method, headers, signal, redirect: "error", cache: "no-store" };
    if (call.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(call.body);
    }
    const response = await this.#fetch(url, init);
    if (!response.ok) throw await failed(response);
    return parse(await response.text());
  }
}

/** Runs `work` with a signal that ends after `ms` or with the caller's own. */
async function within<T>(ms: number, outer: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  if (outer?.aborted) throw abortReason(outer);
  const control = new AbortController();
  const stop = (): void => control.abort(abortReason(outer as AbortSignal));
  outer?.addEventListener("abort", stop, { once: true });
  // Longer timers than this fire at once.
  const timer = ms < 2 ** 31 ? setTimeout(() => control.abort(timedOut("no answer came in time")), ms) : undefined;
  try {
    return await work(control.signal);
  } catch (error) {
    throw control.signal.aborted ? control.signal.reason : error;
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", stop);
  }
}

/** What the gate answered, made sure to be a request, and the one that was meant. */
function checked<T>(answer: unknown, id?: string): T {
  if (
    !isObject(answer) || typeof answer["approval_id"] !== "string" || !STATUSES.includes(answer["status"] as string) ||
    (id !== undefined && answer["approval_id"] !== id)
  ) {
    throw badAnswer("the answer is not the request that was meant");
  }
  return answer as T;
}

async function failed(response: Response): Promise<CountersignError> {
  const text = await response.text().catch(() => "");
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  const detail = isObject(body) && isObject(body["error"]) ? body["error"] : undefined;
  const after = Number(response.headers.get("retry-after") ?? NaN);
  const retryAfterMs = Number.isFinite(after) && after >= 0 ? after * 1000 : undefined;
  if (detail !== undefined && typeof detail["code"] === "string" && typeof detail["message"] === "string") {
    const extras = body as ErrorExtras;
    return new CountersignError(response.status, detail["code"], detail["message"], detail["retryable"] === true, {
      retryAfterMs,
      body: extras,
    });
  }
  // Something between here and the gate, as a proxy whose gate is down.
  const passing = [502, 503, 504, 429].includes(response.status);
  return new CountersignError(response.status, "bad_answer", `the answer is HTTP ${response.status}, and not the gate's`, passing, {
    retryAfterMs,
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CountersignError(0, "bad_answer", "the answer is not JSON", false, { cause });
  }
}

function badAnswer(message: string): CountersignError {
  return new CountersignError(0, "bad_answer", message, false);
}

function timedOut(message: string): CountersignError {
  return new CountersignError(0, "timeout", message, true);
}

function isTimeout(error: unknown): boolean {
  return error instanceof CountersignError && error.code === "timeout";
}

/** `fetch` rejects with a bare TypeError when there is no connection. */
function asError(error: unknown): CountersignError {
  if (error instanceof CountersignError) return error;
  const why = error instanceof Error ? ((error.cause as Error | undefined)?.message ?? error.message) : String(error);
  return new CountersignError(0, "network", `the gate cannot be reached: ${why}`, true, { cause: error });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
