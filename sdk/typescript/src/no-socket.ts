// Stands in for `node-socket` where there is no Node, so that a bundler for browsers never meets Node's modules.

import type { Socket } from "./socket.js";

export class NodeSocket implements Socket {
  onopen = null;
  onmessage = null;
  onclose = null;
  onerror = null;

  constructor(_url: string, _headers: Record<string, string>) {
    throw new TypeError("this build is not for Node: use the platform's WebSocket");
  }

  send(_data: string): void {}
  close(): void {}
}
