// Which WebSocket is used, and how the key travels. In Node it is our own, which can put the key into a header; where
// only the platform's can be had, the key is in the query, because that one sends no headers.

/** As much of a WebSocket as the hub needs; the platform's has it. */
export interface Socket {
  send(data: string): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
}

export type SocketConstructor = new (url: string) => Socket;

/** Why an upgrade was refused, where the socket can know. */
export class HandshakeError extends Error {
  override readonly name = "HandshakeError";
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function openSocket(address: URL, key: string | undefined, given: SocketConstructor | undefined): Promise<Socket> {
  if (given === undefined && isNode()) {
    const { NodeSocket } = await import("#node-socket");
    return new NodeSocket(address.href, key === undefined ? {} : { Authorization: `Bearer ${key}` });
  }
  const Constructor = given ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket;
  if (Constructor === undefined) throw new TypeError("this runtime has no WebSocket: give one in the option `WebSocket`");
  const url = new URL(address);
  if (key !== undefined) url.searchParams.set("key", key);
  return new Constructor(url.href);
}

/** Deno and Bun call themselves Node too; they have a WebSocket of their own. */
function isNode(): boolean {
  const versions = (globalThis as { process?: { versions?: Record<string, string | undefined> } }).process?.versions;
  return versions?.["node"] !== undefined && versions["bun"] === undefined && versions["deno"] === undefined;
}
