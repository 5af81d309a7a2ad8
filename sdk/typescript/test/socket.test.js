// Our own WebSocket client for Node, against a server that does what it should and what it should not.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { NodeSocket } from "../dist/node-socket.js";
import { frame, listen } from "./ws-server.js";

/** Connects, runs `serve` on the server's side, and answers all that happened until the close; stops not `before`. */
async function meet(serve, { headers = {}, options, after, before } = {}) {
  const server = await listen(serve, options);
  const log = [];
  const socket = new NodeSocket(`ws://127.0.0.1:${server.port}/hub?x=1`, headers);
  socket.onopen = () => {
    log.push("open");
    after?.(socket);
  };
  socket.onmessage = ({ data }) => log.push(data);
  socket.onerror = ({ error }) => log.push(`error: ${error.message}`);
  await new Promise((resolve) => {
    socket.onclose = ({ code, reason }) => {
      log.push([code, reason]);
      resolve();
    };
  });
  await before;
  await server.stop();
  return log;
}

test("texts both ways, of every length class, and headers", async () => {
  const sizes = [0, 1, 125, 126, 65535, 65536, 300_000];
  let headers;
  const log = await meet((connection) => {
    headers = connection.headers;
    let count = 0;
    connection.on("frame", (opcode, payload) => {
      if (opcode !== 1) return;
      connection.send(payload);
      if (++count === sizes.length) connection.close(1000, "done");
    });
  }, {
    headers: { Authorization: "Bearer csk_x" },
    after: (socket) => sizes.forEach((size) => socket.send("é".repeat(size).slice(0, size))),
  });
  assert.equal(headers.authorization, "Bearer csk_x");
  assert.deepEqual(log.slice(1, -1).map((text) => text.length), sizes);
  assert.deepEqual(log.at(-1), [1000, "done"]);
});

test("pieces, control frames between them, and bytes that arrive one by one", async () => {
  const bytes = Buffer.concat([
    frame(1, "he", { fin: false }), frame(9, "are you there"), frame(0, "ll", { fin: false }), frame(10), frame(0, "o"),
    frame(1, "x".repeat(200)),
  ]);
  let pong;
  const log = await meet(async (connection) => {
    connection.on("frame", (opcode, payload) => {
      if (opcode === 10) pong = payload.toString();
    });
    for (const byte of bytes) {
      connection.raw(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    connection.close(1001);
  });
  assert.deepEqual(log, ["open", "hello", "x".repeat(200), [1001, ""]]);
  assert.equal(pong, "are you there");
});

const broken = {
  "a masked frame": [frame(1, "x", { mask: true }), 1002],
  "a reserved bit": [frame(1, "x", { rsv: 0x40 }), 1002],
  "an unknown kind": [frame(3, "x"), 1002],
  "a piece of nothing": [frame(0, "x"), 1002],
  "a message inside another": [Buffer.concat([frame(1, "x", { fin: false }), frame(1, "y")]), 1002],
  "a control frame in pieces": [frame(9, "x", { fin: false }), 1002],
  "a long control frame": [frame(9, "x".repeat(126)), 1002],
  "bytes that are not UTF-8": [frame(1, Buffer.from([0xff, 0xfe])), 1007],
  "a binary message": [frame(2, "x"), 1003],
  "a message of 4 GiB": [Buffer.from([0x81, 127, 0, 0, 0, 1, 0, 0, 0, 0]), 1009],
};
for (const [name, [bytes, code]] of Object.entries(broken)) {
  test(`${name} ends it with ${code}, and what follows is not read`, async () => {
    let tell;
    const told = new Promise((resolve) => (tell = resolve));
    const log = await meet((connection) => {
      connection.on("frame", (opcode, payload) => opcode === 8 && tell(payload.readUInt16BE(0)));
      connection.raw(bytes, frame(1, "later"));
    }, { before: told });
    assert.equal(log.at(-1)[0], code);
    assert.ok(!log.includes("later"));
    assert.equal(await told, code);
  });
}

test("a connection that breaks is 1006", async () => {
  assert.deepEqual(await meet((connection) => connection.stream.destroy()), ["open", [1006, ""]]);
});

test("close tells the server, and does not wait for ever", async () => {
  let told;
  const log = await meet((connection) => {
    connection.on("frame", (opcode, payload) => (told = [opcode, payload.readUInt16BE(0), payload.subarray(2).toString()]));
    // The timer that ends the wait does not keep a process alive by itself; this one does.
    setTimeout(() => {}, 3000);
  }, { after: (socket) => socket.close(4001, "é".repeat(100)) });
  assert.deepEqual(told, [8, 4001, "é".repeat(61)]);
  assert.deepEqual(log, ["open", [1006, ""]]);
});

test("a refused upgrade has its status", async () => {
  const server = await listen(() => {}, { refuse: () => 401 });
  const socket = new NodeSocket(`ws://127.0.0.1:${server.port}/`, {});
  const error = await new Promise((resolve) => (socket.onerror = (event) => resolve(event.error)));
  assert.deepEqual([error.name, error.status], ["HandshakeError", 401]);
  await server.stop();
});

for (const [name, headers] of Object.entries({
  "a wrong accept key": { "Sec-WebSocket-Accept": "AAAA" },
  "an extension nobody asked for": { "Sec-WebSocket-Extensions": "permessage-deflate" },
})) {
  test(`${name} is refused`, async () => {
    const log = await meet(() => {}, { options: { headers } });
    assert.match(log[0], /not a WebSocket's/);
    assert.equal(log.at(-1)[0], 1006);
  });
}

test("over TLS, a certificate that is not trusted is refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "countersign-tls-"));
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", join(folder, "key"), "-out", join(folder, "cert")],
  { stdio: "ignore" });
  const server = await listen((connection) => connection.send("hello"), {
    tls: { key: readFileSync(join(folder, "key")), cert: readFileSync(join(folder, "cert")) },
  });
  const socket = new NodeSocket(`wss://127.0.0.1:${server.port}/`, {});
  const error = await new Promise((resolve) => (socket.onerror = (event) => resolve(event.error)));
  assert.equal(error.code, "DEPTH_ZERO_SELF_SIGNED_CERT");
  const program = `
    import { NodeSocket } from ${JSON.stringify(new URL("../dist/node-socket.js", import.meta.url).href)};
    const socket = new NodeSocket("wss://127.0.0.1:${server.port}/", {});
    socket.onmessage = ({ data }) => { console.log(data); process.exit(); };
    socket.onerror = ({ error }) => { console.log(error.message); process.exit(1); };`;
  const { execFile } = await import("node:child_process");
  const said = await new Promise((resolve) => execFile(process.execPath, ["--input-type=module", "-e", program],
    { env: { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, "cert") } }, (_, stdout) => resolve(stdout.trim())));
  assert.equal(said, "hello");
  await server.stop();
  rmSync(folder, { recursive: true });
});
