// The real binary on a free port with a data folder of its own.

import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export const BIN = process.env.COUNTERSIGN_BIN;
if (!BIN) throw new Error("set COUNTERSIGN_BIN to the countersign binary");

export class Gate {
  #process;

  /** `listen` fixes the port, for a gate that is restarted. */
  static async start(options = {}) {
    const gate = new Gate();
    gate.folder = await mkdtemp(join(tmpdir(), "countersign-sdk-"));
    gate.data = join(gate.folder, "data");
    gate.listen = options.listen ?? "127.0.0.1:0";
    gate.args = [];
    if (options.config !== undefined) {
      await writeFile(join(gate.folder, "config.toml"), options.config);
      gate.args = ["--config", join(gate.folder, "config.toml")];
    }
    await gate.up();
    return gate;
  }

  async up() {
    const child = spawn(BIN, ["serve", "--listen", this.listen, "--data", this.data, ...this.args], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = child;
    this.log = "";
    this.url = await new Promise((resolve, reject) => {
      child.stderr.setEncoding("utf8");
      child.stderr.on("data", (text) => {
        this.log += text;
        const found = /^countersign is listening on (\S+)$/m.exec(this.log);
        if (found) resolve(found[1]);
      });
      child.on("exit", (code) => reject(new Error(`the gate ended with ${code}: ${this.log}`)));
    });
    this.listen = new URL(this.url).host; // The same port after a restart.
  }

  async down(signal = "SIGTERM") {
    const child = this.#process;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }

  async stop() {
    await this.down();
    await rm(this.folder, { recursive: true, force: true });
  }

  async cli(...args) {
    const { stdout } = await run(BIN, [...args, "--data", this.data]);
    return stdout.trim();
  }

  key(role, name = role) {
    return this.cli("keys", "create", "--role", role, "--name", name);
  }
}

/** A port that nothing listens on now. */
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Resolves with the first value that `subscribe` hands to its callback and `wanted` accepts. */
export function next(subscribe, wanted = () => true, ms = 10_000) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      stop();
      reject(new Error("what was waited for did not come"));
    }, ms);
    const stop = subscribe((value) => {
      if (!wanted(value)) return;
      clearTimeout(timer);
      queueMicrotask(() => stop());
      resolve(value);
    });
  });
}
