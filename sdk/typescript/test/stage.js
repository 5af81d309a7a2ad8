// Runs the files in examples/ against a gate, in an empty folder.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const examples = new URL("../examples/", import.meta.url);

export class Stage {
  #running = [];

  static async open(gate) {
    const stage = new Stage();
    stage.gate = gate;
    stage.folder = await mkdtemp(join(tmpdir(), "countersign-example-"));
    return stage;
  }

  start(name, key, ...args) {
    const child = spawn(process.execPath, [fileURLToPath(new URL(name, examples)), ...args], {
      cwd: this.folder,
      env: { ...process.env, COUNTERSIGN_URL: this.gate.url, COUNTERSIGN_KEY: key },
    });
    this.#running.push(child);
    child.text = "";
    const note = (text) => (child.text += text);
    child.stdout.setEncoding("utf8").on("data", note);
    child.stderr.setEncoding("utf8").on("data", note);
    child.ended = new Promise((resolve) => child.once("close", resolve));
    child.says = (pattern) => new Promise((resolve, reject) => {
      const look = () => pattern.test(child.text) && resolve();
      look();
      child.stdout.on("data", look);
      child.once("close", () => reject(new Error(`ended without ${pattern}: ${child.text}`)));
    });
    return child;
  }

  async close() {
    this.#running.forEach((child) => child.kill());
    await rm(this.folder, { recursive: true, force: true });
  }
}
