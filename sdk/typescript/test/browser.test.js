// Both clients in a real browser, from the files as they are built. The page and the gate share an origin, as behind one
// proxy; the hub is the stand-in.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, request as forward } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fakeHub } from "./fake-hub.js";
import { Gate } from "./gate.js";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path));
const closing = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

/** Serves the page and the SDK, passes `/v1` on to the gate, and resolves `result` with what the page posts. */
async function serve(gate, page) {
  let told;
  const result = new Promise((resolve) => (told = resolve));
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, "http://x").pathname;
    if (path.startsWith("/v1/")) {
      const { origin: _origin, ...headers } = request.headers;
      const passed = forward(gate.url + request.url, { method: request.method, headers: { ...headers, host: new URL(gate.url).host } });
      passed.on("response", (answer) => answer.pipe(response.writeHead(answer.statusCode, answer.headers)));
      passed.on("error", () => response.destroy());
      response.on("close", () => passed.destroy());
      request.pipe(passed);
    } else if (path === "/result") {
      let text = "";
      for await (const piece of request) text += piece;
      response.end();
      told(JSON.parse(text));
    } else if (/^\/dist\/[a-z-]+\.js$/.test(path)) {
      response.setHeader("content-type", "text/javascript").end(await readFile(new URL(`..${path}`, import.meta.url)));
    } else if (path === "/") {
      response.setHeader("content-type", "text/html").end(`<!doctype html><script type="module">${page}</script>`);
    } else {
      response.writeHead(404).end();
    }
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  closing.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${server.address().port}`, result };
}

test("in a browser", { skip: !CHROMIUM && "there is no Chromium here", timeout: 60_000 }, async () => {
  const gate = await Gate.start();
  closing.push(() => gate.stop());
  const hub = await fakeHub({ pending: [{ approvalId: "appr_1", command: "rm -rf x", expiresAtMs: Date.now() + 60_000 }] });
  closing.push(() => hub.down());
  const [agentKey, approverKey] = [await gate.key("agent"), await gate.key("approver", "ann")];
  const page = await serve(gate, `
    import { CountersignClient, CountersignError, GatewayClient, isApproved } from "/dist/index.js";
    const told = {};
    try {
      const agent = new CountersignClient({ url: location.origin, key: ${JSON.stringify(agentKey)} });
      const ann = new CountersignClient({ url: location.origin, key: ${JSON.stringify(approverKey)} });
      const deciding = (async () => {
        for await (const event of ann.events({ after: 0 })) {
          if (event.type === "requested") return ann.decide(event.approval_id, { decision: "allow-once", note: "from a page" });
        }
      })();
      const asked = await agent.requestApproval({ session_id: "s", command: "rm -rf ./build" });
      const ended = await agent.waitForDecision(asked);
      told.http = [asked.status, ended.status, ended.decision.note, isApproved(ended)];
      await deciding;
      await agent.consume(ended.approval_id);
      told.again = await agent.consume(ended.approval_id).catch((error) => [error instanceof CountersignError, error.code]);

      const client = new GatewayClient({ url: ${JSON.stringify(hub.url)}, key: "csk_x" });
      const seen = [];
      client.onMessage((message) => seen.push(message.payload.approvalId));
      await client.connect();
      told.hub = [client.state, seen, await client.request(client.hubDeviceId, "nothing").catch((error) => error.code)];
      client.close();
    } catch (error) {
      told.error = String(error.stack ?? error);
    }
    await fetch("/result", { method: "POST", body: JSON.stringify(told) });`);

  const profile = await mkdtemp(join(tmpdir(), "countersign-chromium-"));
  const browser = spawn(CHROMIUM, ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    `--user-data-dir=${profile}`, page.url], { stdio: "ignore", detached: true });
  const ended = new Promise((resolve) => browser.once("exit", resolve));
  closing.push(async () => {
    try {
      process.kill(-browser.pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await ended;
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  });

  const told = await Promise.race([page.result, ended.then((code) => ({ error: `the browser ended with ${code}` }))]);
  assert.deepEqual(told, {
    http: ["pending", "approved", "from a page", true],
    again: [true, "already_consumed"],
    hub: ["open", ["appr_1"], "METHOD_NOT_FOUND"],
  });
  assert.deepEqual(hub.keys, [[undefined, "csk_x"]]);
});
