// A WebSocket client (RFC 6455) over Node's own modules: text messages, no extensions. Loaded only in Node, because
// Node 20 has no WebSocket and later ones cannot be given headers in a documented way.

import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Duplex } from "node:stream";
import { HandshakeError, type Socket } from "./socket.js";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const MAX_MESSAGE = 32 * 1024 * 1024;
const CLOSE_GRACE_MS = 2_000;
const HANDSHAKE_MS = 15_000;

const CONTINUATION = 0x0, TEXT = 0x1, BINARY = 0x2, CLOSE = 0x8, PING = 0x9, PONG = 0xa;

export class NodeSocket implements Socket {
  onopen: ((event: unknown) => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  onerror: ((event: { error: Error }) => void) | null = null;

  #state: "connecting" | "open" | "closing" | "closed" = "connecting";
  #request: ClientRequest;
  #stream: Duplex | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  // What arrived and is not yet a whole frame; joined only when a frame is complete.
  #chunks: Buffer[] = [];
  #buffered = 0;
  #needed = 2;
  // The message that is being put together.
  #parts: Buffer[] = [];
  #partsSize = 0;
  #kind: number | undefined;
  #ended: { code: number; reason: string } | undefined;

  constructor(address: string, headers: Record<string, string>) {
    const url = new URL(address);
    const secure = url.protocol === "wss:";
    if (!secure && url.protocol !== "ws:") throw new TypeError(`not a WebSocket address: \`${url.protocol}\``);
    url.protocol = secure ? "https:" : "http:";
    const nonce = randomBytes(16).toString("base64");
    this.#request = (secure ? httpsRequest : httpRequest)(url, {
      agent: false,
      headers: {
        ...headers,
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Key": nonce,
        "Sec-WebSocket-Version": "13",
      },
    });
    this.#timer = setTimeout(() => this.#fail(new Error("the upgrade was not answered in time")), HANDSHAKE_MS);
    this.#request.on("upgrade", (response, stream, head) => this.#upgraded(response, stream, head, nonce));
    this.#request.on("response", (response) => {
      response.resume();
      const status = response.statusCode ?? 0;
      this.#fail(new HandshakeError(status, `the upgrade was refused with HTTP ${status}`));
    });
    this.#request.on("error", (error) => this.#fail(error));
    this.#request.end();
  }

  send(data: string): void {
    if (this.#state !== "open") throw new Error("the socket is not open");
    this.#write(TEXT, Buffer.from(data, "utf8"));
  }

  close(code = 1000, reason = ""): void {
    if (this.#state === "closing" || this.#state === "closed") return;
    if (this.#state === "connecting") {
      this.#fail(new Error("closed before it was open"));
      return;
    }
    this.#state = "closing";
    this.#sendClose(code, reason);
    this.#timer = setTimeout(() => this.#finish(1006, ""), CLOSE_GRACE_MS);
    this.#timer.unref();
  }

  #upgraded(response: IncomingMessage, stream: Duplex, head: Buffer, nonce: string): void {
    if (this.#state !== "connecting") {
      stream.destroy();
      return;
    }
    const expected = createHash("sha1").update(nonce + GUID).digest("base64");
    const { upgrade } = response.headers;
    const extra = response.headers["sec-websocket-extensions"] ?? response.headers["sec-websocket-protocol"];
    if (response.headers["sec-websocket-accept"] !== expected || upgrade?.toLowerCase() !== "websocket" || extra !== undefined) {
      stream.destroy();
      this.#fail(new HandshakeError(response.statusCode ?? 0, "the answer to the upgrade is not a WebSocket's"));
      return;
    }
    clearTimeout(this.#timer);
    this.#stream = stream;
    this.#state = "open";
    (stream as { setNoDelay?: (on: boolean) => void }).setNoDelay?.(true);
    (stream as { setTimeout?: (ms: number) => void }).setTimeout?.(0);
    stream.on("data", (chunk: Buffer) => this.#take(chunk));
    stream.on("error", () => this.#finish(1006, ""));
    stream.on("end", () => this.#finish(1006, ""));
    stream.on("close", () => this.#finish(1006, ""));
    this.onopen?.({});
    if (head.length > 0) this.#take(head);
  }

  #take(chunk: Buffer): void {
    if (this.#state === "closed" || this.#ended !== undefined) return;
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    if (this.#buffered < this.#needed) return;
    let bytes: Buffer = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    for (;;) {
      const frame = this.#frame(bytes);
      if (frame === undefined) break;
      bytes = bytes.subarray(frame.next);
      this.#needed = 2;
      this.#handle(frame);
      if (this.#stopped()) return;
    }
    if (this.#stopped()) return;
    this.#chunks = bytes.length > 0 ? [bytes] : [];
    this.#buffered = bytes.length;
  }

  /** Handling a frame may have ended it all. */
  #stopped(): boolean {
    return this.#state === "closed" || this.#ended !== undefined;
  }

  /** The first frame of `bytes` if it is all there; else notes how much is needed. */
  #frame(bytes: Buffer): { fin: boolean; opcode: number; payload: Buffer; next: number } | undefined {
    if (bytes.length < 2) return this.#wait(2);
    const first = bytes.readUInt8(0);
    const second = bytes.readUInt8(1);
    const opcode = first & 0x0f;
    const fin = (first & 0x80) !== 0;
    if ((first & 0x70) !== 0) return this.#break(1002, "a reserved bit is set");
    if ((second & 0x80) !== 0) return this.#break(1002, "a frame from the server is masked");
    let length = second & 0x7f;
    let at = 2;
    if (opcode >= CLOSE && (!fin || length > 125)) return this.#break(1002, "a control frame is too long or in pieces");
    if (length === 126) {
      if (bytes.length < 4) return this.#wait(4);
      length = bytes.readUInt16BE(2);
      at = 4;
    } else if (length === 127) {
      if (bytes.length < 10) return this.#wait(10);
      const long = bytes.readBigUInt64BE(2);
      if (long > BigInt(MAX_MESSAGE)) return this.#break(1009, "a message is too long");
      length = Number(long);
      at = 10;
    }
    if (length + this.#partsSize > MAX_MESSAGE) return this.#break(1009, "a message is too long");
    if (bytes.length < at + length) return this.#wait(at + length);
    return { fin, opcode, payload: bytes.subarray(at, at + length), next: at + length };
  }

  #wait(needed: number): undefined {
    this.#needed = needed;
    return undefined;
  }

  #handle(frame: { fin: boolean; opcode: number; payload: Buffer }): void {
    switch (frame.opcode) {
      case PING:
        if (this.#state === "open") this.#write(PONG, frame.payload);
        return;
      case PONG:
        return;
      case CLOSE:
        this.#closed(frame.payload);
        return;
      case TEXT:
      case BINARY:
        if (this.#kind !== undefined) return void this.#break(1002, "a message began inside another");
        this.#kind = frame.opcode;
        break;
      case CONTINUATION:
        if (this.#kind === undefined) return void this.#break(1002, "a piece of no message");
        break;
      default:
        return void this.#break(1002, "a frame of an unknown kind");
    }
    this.#parts.push(frame.payload);
    this.#partsSize += frame.payload.length;
    if (!frame.fin) return;
    const whole = this.#parts.length === 1 ? frame.payload : Buffer.concat(this.#parts);
    const kind = this.#kind;
    this.#parts = [];
    this.#partsSize = 0;
    this.#kind = undefined;
    if (kind === BINARY) return void this.#break(1003, "only text is understood");
    let data: string;
    try {
      data = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(whole);
    } catch {
      return void this.#break(1007, "a text is not UTF-8");
    }
    if (this.#state === "open") this.onmessage?.({ data });
  }

  #closed(payload: Buffer): void {
    const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
    const reason = payload.length > 2 ? payload.subarray(2).toString("utf8") : "";
    if (this.#state === "open") {
      this.#state = "closing";
      this.#sendClose(code === 1005 ? 1000 : code, "");
    }
    this.#ended = { code, reason };
    this.#finish(code, reason);
  }

  /** Ours to end: the other side broke the protocol. */
  #break(code: number, reason: string): undefined {
    if (this.#ended === undefined) {
      this.#ended = { code, reason };
      if (this.#state === "open") this.#sendClose(code, reason);
      this.onerror?.({ error: new Error(reason) });
      this.#finish(code, reason);
    }
    return undefined;
  }

  #sendClose(code: number, reason: string): void {
    // At most 123 bytes fit; a cut inside a character is left out whole.
    const text = Buffer.from(reason, "utf8").subarray(0, 123).toString("utf8").replace(/\uFFFD+$/, "");
    const body = Buffer.alloc(2 + Buffer.byteLength(text));
    body.writeUInt16BE(code, 0);
    body.write(text, 2);
    this.#write(CLOSE, body);
  }

  #write(opcode: number, payload: Buffer): void {
    const stream = this.#stream;
    if (stream === undefined || stream.destroyed) return;
    const long = payload.length > 65_535 ? 8 : payload.length > 125 ? 2 : 0;
    const head = Buffer.alloc(2 + long + 4);
    head.writeUInt8(0x80 | opcode, 0);
    head.writeUInt8(0x80 | (long === 8 ? 127 : long === 2 ? 126 : payload.length), 1);
    if (long === 8) head.writeBigUInt64BE(BigInt(payload.length), 2);
    else if (long === 2) head.writeUInt16BE(payload.length, 2);
    const mask = randomBytes(4);
    mask.copy(head, 2 + long);
    const masked = Buffer.alloc(payload.length);
    for (let i = 0; i < payload.length; i += 1) masked[i] = (payload[i] as number) ^ (mask[i & 3] as number);
    stream.write(Buffer.concat([head, masked]));
  }

  #fail(error: Error): void {
    if (this.#state !== "connecting") return;
    this.onerror?.({ error });
    this.#request.destroy();
    this.#finish(1006, error.message);
  }

  #finish(code: number, reason: string): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    clearTimeout(this.#timer);
    this.#chunks = [];
    this.#parts = [];
    const stream = this.#stream;
    if (stream !== undefined) {
      stream.end();
      setTimeout(() => stream.destroy(), CLOSE_GRACE_MS).unref();
    }
    const { code: said, reason: why } = this.#ended ?? { code, reason };
    this.onclose?.({ code: said, reason: why });
  }
}
