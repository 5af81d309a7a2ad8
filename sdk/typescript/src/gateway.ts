// A device of the hub: registers, verifies, routes messages, calls methods, comes back after a break and catches up.
// Owns the connection's life; what the messages mean is the caller's, except for what is pending.

import { Answers, awaiting, type SendError } from "./answers.js";
import { Backoff, sleep, type BackoffOptions } from "./backoff.js";
import { abortReason, RpcError } from "./errors.js";
import {
  ExecApprovalRequestAction, ExecApprovalResolvedAction, isRoutedMessage, RequestAction, ResponseAction,
  type Device, type DeviceType, type ExecApprovalRequestPayload, type ExecApprovalResolvedPayload, type HubMethods,
  type RoutedMessage, type VerifyParams, type VerifyResult,
} from "./hub.js";
import { newId, newSecret } from "./random.js";
import { HandshakeError, openSocket, type Socket, type SocketConstructor } from "./socket.js";

export type ConnectionState =
  /** Not started, or closed for good. */
  | "closed"
  | "connecting"
  /** Registered and, where it applies, verified and caught up. */
  | "open"
  /** Lost; the next try comes by itself. */
  | "waiting";

export interface GatewayClientOptions {
  /** The gate's address: `http://127.0.0.1:7391`, or the hub's own, `wss://gate.example.org/hub`. */
  url: string | URL;
  /**
   * Default: 256 random bits. A paired device proves itself by its id, so such an id is a secret; keep the one you
   * paired with (`client.deviceId`) to come back without pairing again.
   */
  deviceId?: string | undefined;
  /** Default `client`: somebody who decides. An `agent` asks. */
  deviceType?: Exclude<DeviceType, "hub"> | undefined;
  /** A key of the gate: an approver's for a client, an agent's for an agent. */
  key?: string | undefined;
  /** The one-time code of `countersign pair`, for a client without a key. Used once. */
  token?: string | undefined;
  /** Default true. What `connect` meets is never tried again by itself; a later break is. */
  reconnect?: boolean | BackoffOptions | undefined;
  /** Instead of this package's own in Node and the platform's elsewhere. The key is then sent in the query. */
  WebSocket?: SocketConstructor | undefined;
  /** For `request` and `listDevices`. Default 30,000. */
  requestTimeoutMs?: number | undefined;
  /** How often to see whether the hub still answers. Default 20,000. */
  pingIntervalMs?: number | undefined;
}

export interface RequestOptions {
  /** Default: the client's; `Infinity` for none. */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

type Unsubscribe = () => void;
const REFUSED = [401, 403];

export class GatewayClient {
  readonly deviceId: string;
  readonly #options: GatewayClientOptions;
  readonly #address: URL;
  readonly #timeoutMs: number;
  readonly #pingMs: number;
  #state: ConnectionState = "closed";
  #socket: Socket | undefined;
  #hub: string | undefined;
  #verified = false;
  #token: string | undefined;
  #meta: Record<string, unknown> | undefined;
  #stopping = new AbortController();
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #heard = 0;
  readonly #answers = new Answers();
  readonly #known = new Map<string, number>();
  readonly #onMessage = new Set<(message: RoutedMessage) => void>();
  readonly #onState = new Set<(state: ConnectionState, error?: unknown) => void>();
  readonly #onSendError = new Set<(error: SendError) => void>();

  constructor(options: GatewayClientOptions) {
    this.#options = options;
    this.deviceId = options.deviceId ?? newSecret(32);
    this.#token = options.token;
    this.#timeoutMs = options.requestTimeoutMs ?? 30_000;
    this.#pingMs = options.pingIntervalMs ?? 20_000;
    const address = new URL(options.url);
    if (address.protocol === "http:") address.protocol = "ws:";
    else if (address.protocol === "https:") address.protocol = "wss:";
    if (address.protocol !== "ws:" && address.protocol !== "wss:") {
      throw new TypeError(`the gate's address must begin with http, https, ws or wss, not \`${address.protocol}\``);
    }
    if (address.pathname === "/") address.pathname = "/hub";
    address.searchParams.set("deviceId", this.deviceId);
    address.searchParams.set("deviceType", options.deviceType ?? "client");
    this.#address = address;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** The hub's own device: what approvals are asked of and answered to. */
  get hubDeviceId(): string {
    if (this.#hub === undefined) throw new RpcError("NOT_CONNECTED", "the hub is not known before `connect`", true);
    return this.#hub;
  }

  /**
   * Registers, finds the hub, verifies (a client with a key or a token) and hands what is pending to `onMessage`:
   * put that on first. Rejects with the reason, and stays closed then.
   */
  async connect(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    if (this.#state !== "closed") throw new RpcError("INVALID_STATE", `already ${this.#state}`);
    this.#stopping = new AbortController();
    const stop = (): void => this.close();
    if (options.signal?.aborted) throw abortReason(options.signal);
    options.signal?.addEventListener("abort", stop, { once: true });
    try {
      await this.#establish();
    } catch (error) {
      const reason = options.signal?.aborted ? abortReason(options.signal) : error;
      this.#stop(reason);
      throw reason;
    } finally {
      options.signal?.removeEventListener("abort", stop);
    }
  }

  /** Every message to this device but the answers to its own requests. Returns how to stop listening. */
  onMessage(callback: (message: RoutedMessage) => void): Unsubscribe {
    this.#onMessage.add(callback);
    return () => this.#onMessage.delete(callback);
  }

  onStateChange(callback: (state: ConnectionState, error?: unknown) => void): Unsubscribe {
    this.#onState.add(callback);
    return () => this.#onState.delete(callback);
  }

  /** A message of `send` that could not be delivered. */
  onSendError(callback: (error: SendError) => void): Unsubscribe {
    this.#onSendError.add(callback);
    return () => this.#onSendError.delete(callback);
  }

  /**
   * Calls a method of another device, mostly the hub's. Rejects with an `RpcError`. While the connection is lost it
   * waits for the next one; once sent it is never sent again by itself.
   */
  request<M extends keyof HubMethods>(
    to: string, method: M, params: HubMethods[M]["params"], options?: RequestOptions,
  ): Promise<HubMethods[M]["result"]>;
  request<T = unknown>(to: string, method: string, params?: unknown, options?: RequestOptions): Promise<T>;
  async request(to: string, method: string, params?: unknown, options: RequestOptions = {}): Promise<unknown> {
    const until = Date.now() + (options.timeoutMs ?? this.#timeoutMs);
    if (this.#state !== "open") await this.#whenOpen(until, options.signal);
    return this.#request(to, method, params, until, options.signal);
  }

  /** Sends a message to another device and answers its id. What comes of it is in `onSendError` and `onMessage`. */
  send(to: string, action: string, payload: unknown): string {
    if (this.#state !== "open") throw new RpcError("NOT_CONNECTED", "not connected", true);
    return this.#route(to, action, payload);
  }

  /** The hub, and to a verified client the other devices. */
  async listDevices(options: RequestOptions = {}): Promise<Device[]> {
    const until = Date.now() + (options.timeoutMs ?? this.#timeoutMs);
    if (this.#state !== "open") await this.#whenOpen(until, options.signal);
    return this.#listDevices(until, options.signal);
  }

  /**
   * Proves to the hub that this device may decide, and hands what is pending to `onMessage`. For a device that was
   * paired before: `connect` does it for one with a key or a token. Done again by itself after each reconnect.
   */
  async verify(params: VerifyParams = {}): Promise<VerifyResult> {
    const hub = this.hubDeviceId;
    const seenBefore = [...this.#known.keys()];
    const result = await this.request(hub, "verify", params);
    this.#meta = params.meta;
    this.#verified = true;
    await this.#catchUp(hub, seenBefore);
    return result;
  }

  /** Ends the connection for good. What waits for an answer rejects. `connect` may be called again. */
  close(): void {
    this.#stop(new RpcError("CLOSED", "the client was closed"));
  }

  // ---- the connection's life

  async #establish(): Promise<void> {
    this.#setState("connecting");
    const seenBefore = [...this.#known.keys()];
    const socket = await openSocket(this.#address, this.#options.key, this.#options.WebSocket);
    if (this.#stopping.signal.aborted) {
      socket.close();
      throw abortReason(this.#stopping.signal);
    }
    this.#socket = socket;
    await this.#register(socket);
    const until = Date.now() + this.#timeoutMs;
    const devices = await this.#listDevices(until);
    this.#hub = devices.find((device) => device.deviceType === "hub")?.deviceId;
    if (this.#hub === undefined) throw new RpcError("DEVICE_NOT_FOUND", "the gate named no hub");
    const decides = (this.#options.deviceType ?? "client") === "client";
    if (this.#verified || (decides && (this.#options.key !== undefined || this.#token !== undefined))) {
      const params: VerifyParams = {};
      if (this.#token !== undefined) params.token = this.#token;
      if (this.#meta !== undefined) params.meta = this.#meta;
      await this.#request(this.#hub, "verify", params, until);
      this.#verified = true;
      this.#token = undefined; // One-time.
    }
    if (this.#verified) await this.#catchUp(this.#hub, seenBefore);
    this.#setState("open");
  }

  /** Opens and resolves at `registered`. From then on a lost socket is `#lost`. */
  #register(socket: Socket): Promise<void> {
    return new Promise((resolve, reject) => {
      let registered = false;
      let why: unknown;
      const stopping = this.#stopping.signal;
      stopping.addEventListener("abort", () => reject(abortReason(stopping)), { once: true });
      const timer = setTimeout(() => {
        why = new RpcError("TIMEOUT", "the hub did not register this device in time", true);
        socket.close();
        reject(why);
      }, this.#timeoutMs);
      socket.onmessage = (event: { data: unknown }) => {
        this.#heard = Date.now();
        const frame = parseFrame(event.data);
        if (frame === undefined) return;
        if (frame.event !== "registered") {
          if (registered) this.#handle(frame.event, frame.data);
          return;
        }
        const data = frame.data as { success?: unknown; error?: unknown } | undefined;
        if (data?.success === true) {
          registered = true;
          clearTimeout(timer);
          this.#startHeartbeat(socket);
          resolve();
        } else {
          // Retryable: after a break the hub may still hold the old connection for a moment.
          why = new RpcError("REGISTRATION_FAILED", typeof data?.error === "string" ? data.error : "not registered", true);
          reject(why);
          socket.close();
        }
      };
      socket.onerror = (event: { error?: unknown }) => {
        why ??= event.error;
      };
      socket.onclose = (event: { code?: number; reason?: string }) => {
        clearTimeout(timer);
        const error = why instanceof RpcError ? why : disconnected(event, why);
        reject(error);
        if (this.#socket === socket) this.#lost(error);
      };
    });
  }

  /** The socket is gone. */
  #lost(error: unknown): void {
    this.#socket = undefined;
    clearInterval(this.#heartbeat);
    this.#answers.fail(error);
    // While connecting, whoever connects has the error by now and goes on from there.
    if (this.#state !== "open") return;
    if (this.#options.reconnect === false) {
      this.#stop(error);
      return;
    }
    this.#setState("waiting", error);
    void this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    const signal = this.#stopping.signal;
    const backoff = new Backoff(typeof this.#options.reconnect === "object" ? this.#options.reconnect : {});
    for (;;) {
      try {
        await sleep(backoff.next(), signal);
        await this.#establish();
        return;
      } catch (error) {
        if (signal.aborted) return;
        const socket = this.#socket;
        this.#socket = undefined;
        clearInterval(this.#heartbeat);
        socket?.close();
        this.#answers.fail(error);
        if (!canRetry(error)) {
          this.#stop(error);
          return;
        }
        this.#setState("waiting", error);
      }
    }
  }

  #stop(error: unknown): void {
    if (this.#state === "closed" && this.#socket === undefined) return;
    const socket = this.#socket;
    this.#socket = undefined;
    clearInterval(this.#heartbeat);
    this.#stopping.abort(error);
    socket?.close();
    this.#answers.fail(error);
    this.#setState("closed", error);
  }

  #startHeartbeat(socket: Socket): void {
    clearInterval(this.#heartbeat);
    this.#heartbeat = setInterval(() => {
      if (Date.now() - this.#heard > 2.5 * this.#pingMs) {
        // A half-open connection may never tell: do not wait for its close.
        socket.onclose?.({ code: 4000, reason: "the hub fell silent" });
        socket.onclose = null;
        socket.onmessage = null;
        socket.close();
      } else {
        this.#emit("ping", {});
      }
    }, this.#pingMs);
  }

  /** What is pending at the hub and was not seen here is handed on; what was seen and is no longer there has ended. */
  async #catchUp(hub: string, seenBefore: string[]): Promise<void> {
    let answer: { approvals?: unknown };
    try {
      answer = await this.#request(hub, "listExecApprovals", {}, Date.now() + this.#timeoutMs) as { approvals?: unknown };
    } catch (error) {
      // A hub of the reference kind does not have it.
      if (error instanceof RpcError && error.code === "METHOD_NOT_FOUND") return;
      throw error;
    }
    const listed = answer.approvals;
    if (!Array.isArray(listed)) throw new RpcError("BAD_MESSAGE", "`listExecApprovals` answered no list");
    const pending = new Set<string>();
    for (const payload of listed as ExecApprovalRequestPayload[]) {
      pending.add(payload.approvalId);
      if (!this.#known.has(payload.approvalId)) this.#hand(this.#local(hub, ExecApprovalRequestAction, payload));
    }
    for (const approvalId of seenBefore) {
      if (pending.has(approvalId) || !this.#known.has(approvalId)) continue;
      const payload: ExecApprovalResolvedPayload = { approvalId, decision: null, resolvedBy: null, reason: "ended_while_away" };
      this.#hand(this.#local(hub, ExecApprovalResolvedAction, payload));
    }
  }

  #local(from: string, action: string, payload: unknown): RoutedMessage {
    return { id: newId(), uid: null, from, to: this.deviceId, action, payload };
  }

  // ---- messages

  #handle(event: string, data: unknown): void {
    if (event === "receive" && isRoutedMessage(data)) {
      if (data.action === ResponseAction) this.#answers.answered(data);
      else this.#hand(data);
    } else if (event === "send_error") {
      if (!this.#answers.notDelivered(data as SendError)) this.#call(this.#onSendError, data as SendError);
    } else if (event === "list-devices") {
      this.#answers.devices(data);
    }
  }

  /** Hands a message on, and keeps what is pending, so that nothing is handed on twice after a reconnect. */
  #hand(message: RoutedMessage): void {
    if (message.from === this.#hub) {
      const approvalId = (message.payload as { approvalId?: unknown } | null)?.approvalId;
      if (message.action === ExecApprovalRequestAction && typeof approvalId === "string") {
        if (this.#known.has(approvalId)) return;
        const expiresAtMs = (message.payload as ExecApprovalRequestPayload).expiresAtMs;
        this.#known.set(approvalId, typeof expiresAtMs === "number" ? expiresAtMs : Date.now());
        this.#forgetOld();
      } else if (message.action === ExecApprovalResolvedAction && typeof approvalId === "string") {
        this.#known.delete(approvalId);
      }
    }
    this.#call(this.#onMessage, message);
  }

  /** Every approval ends: what a hub without the resolved push left here goes an hour after its time. */
  #forgetOld(): void {
    if (this.#known.size < 1000) return;
    for (const [id, expiresAtMs] of this.#known) if (expiresAtMs < Date.now() - 3_600_000) this.#known.delete(id);
  }

  #request(to: string, method: string, params: unknown, until: number, signal?: AbortSignal): Promise<unknown> {
    const requestId = newId();
    return this.#answers.ask(requestId, to, `\`${method}\` was not answered in time`, until, signal, () =>
      this.#route(to, RequestAction, { requestId, method, params }));
  }

  #listDevices(until: number, signal?: AbortSignal): Promise<Device[]> {
    return this.#answers.askForDevices(until, signal, () => this.#emit("list-devices", {}));
  }

  async #whenOpen(until: number, signal?: AbortSignal): Promise<void> {
    if (this.#state === "closed") throw new RpcError("NOT_CONNECTED", "not connected", true);
    await awaiting<void>(until, signal, "there was no connection in time", (settle) =>
      this.onStateChange((state, error) => {
        if (state === "open") settle(undefined);
        else if (state === "closed") settle(undefined, error ?? new RpcError("CLOSED", "the client was closed"));
      }));
  }

  #route(to: string, action: string, payload: unknown): string {
    const message: RoutedMessage = { id: newId(), uid: null, from: this.deviceId, to, action, payload };
    this.#emit("send", message);
    return message.id;
  }

  #emit(event: string, data: unknown): void {
    if (this.#socket === undefined) throw new RpcError("DISCONNECTED", "the connection is lost", true);
    try {
      this.#socket.send(JSON.stringify({ event, data }));
    } catch (cause) {
      if (event !== "ping") throw new RpcError("DISCONNECTED", "the connection is lost", true, cause);
    }
  }

  #setState(state: ConnectionState, error?: unknown): void {
    if (this.#state === state) return;
    this.#state = state;
    for (const callback of [...this.#onState]) safely(() => callback(state, error));
  }

  #call<T>(callbacks: Set<(value: T) => void>, value: T): void {
    for (const callback of [...callbacks]) safely(() => callback(value));
  }
}

/** A callback that throws takes nothing else down; the runtime still reports it. */
function safely(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

function parseFrame(data: unknown): { event: string; data: unknown } | undefined {
  if (typeof data !== "string") return undefined;
  try {
    const frame: unknown = JSON.parse(data);
    if (typeof frame !== "object" || frame === null) return undefined;
    const { event, data: inner } = frame as { event?: unknown; data?: unknown };
    return typeof event === "string" ? { event, data: inner } : undefined;
  } catch {
    return undefined;
  }
}

function disconnected(event: { code?: number; reason?: string }, cause: unknown): RpcError {
  const why = event.reason || (cause instanceof Error ? cause.message : "");
  return new RpcError("DISCONNECTED", `the connection is lost (${event.code ?? 1006})${why && `: ${why}`}`, true, cause);
}

/** A key that is refused stays refused; everything else may pass. */
function canRetry(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof HandshakeError && REFUSED.includes(cause.status)) return false;
  return !(error instanceof RpcError) || error.retryable || error.code === "DEVICE_NOT_FOUND";
}
