// The server's side of RFC 6455, as small as the tests need, able to send what no server should.

import { createHash } from "node:crypto";
import { EventEmitter } from "node:events";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";

export function frame(opcode, payload = "", { fin = true, rsv = 0, mask = false } = {}) {
  const body = Buffer.from(payload);
  const long = body.length > 65535 ? 8 : body.length > 125 ? 2 : 0;
  const head = Buffer.alloc(2 + long + (mask ? 4 : 0));
  head[0] = (fin ? 0x80 : 0) | rsv | opcode;
  head[1] = (mask ? 0x80 : 0) | (long === 8 ? 127 : long === 2 ? 126 : body.length);
  if (long === 8) head.writeBigUInt64BE(BigInt(body.length), 2);
  if (long === 2) head.writeUInt16BE(body.length, 2);
  return Buffer.concat([head, body]);
}

class Connection extends EventEmitter {
  #bytes = Buffer.alloc(0);
  constructor(request, stream) {
    super();
    this.url = new URL(request.url, "http://x");
    this.headers = request.headers;
    this.stream = stream;
    stream.on("data", (chunk) => this.#take(chunk));
    stream.on("error", () => {});
    stream.on("close", () => this.emit("gone"));
  }
  send(text) {
    this.stream.write(frame(1, text));
  }
  raw(...buffers) {
    this.stream.write(Buffer.concat(buffers));
  }
  close(code, reason = "") {
    const body = Buffer.alloc(2 + Buffer.byteLength(reason));
    body.writeUInt16BE(code);
    body.write(reason, 2);
    this.stream.write(frame(8, body));
  }
  #take(chunk) {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    for (;;) {
      const bytes = this.#bytes;
      if (bytes.length < 2) return;
      if ((bytes[1] & 0x80) === 0) throw new Error("a client's frame is not masked");
      let [length, at] = [bytes[1] & 0x7f, 2];
      if (length === 126) {
        if (bytes.length < 4) return;
        [length, at] = [bytes.readUInt16BE(2), 4];
      } else if (length === 127) {
        if (bytes.length < 10) return;
        [length, at] = [Number(bytes.readBigUInt64BE(2)), 10];
      }
      if (bytes.length < at + 4 + length) return;
      const mask = bytes.subarray(at, at + 4);
      const payload = Buffer.from(bytes.subarray(at + 4, at + 4 + length)).map((byte, i) => byte ^ mask[i & 3]);
      this.#bytes = bytes.subarray(at + 4 + length);
      this.emit("frame", bytes[0] & 0x0f, payload);
    }
  }
}

/** `refuse(request)` answers a status to refuse an upgrade with; `accept` changes the answer's headers. */
export async function listen(onConnection, { port = 0, refuse, headers = {}, tls } = {}) {
  const server = tls ? createTlsServer(tls) : createServer();
  const connections = new Set();
  server.on("upgrade", (request, stream) => {
    const status = refuse?.(request);
    if (status) {
      stream.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
      return;
    }
    const accept = createHash("sha1")
      .update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
    const answer = { Upgrade: "websocket", Connection: "Upgrade", "Sec-WebSocket-Accept": accept, ...headers };
    stream.write(`HTTP/1.1 101 Switching Protocols\r\n${
      Object.entries(answer).map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
    const connection = new Connection(request, stream);
    connections.add(connection);
    connection.on("gone", () => connections.delete(connection));
    onConnection(connection);
  });
  server.listen(port, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    port: server.address().port,
    connections,
    drop: () => connections.forEach(({ stream }) => stream.destroy()),
    stop: () => new Promise((resolve) => {
      connections.forEach(({ stream }) => stream.destroy());
      server.close(resolve);
    }),
  };
}
