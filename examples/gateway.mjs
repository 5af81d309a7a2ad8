// Answers commands over the gateway: node examples/gateway.mjs allow-once|deny  (Node 22 or newer).
// COUNTERSIGN_URL (ws://127.0.0.1:7391/gateway) and COUNTERSIGN_KEY (role approver) say where and as whom.
const decision = process.argv[2] ?? "deny";
const socket = new WebSocket(process.env.COUNTERSIGN_URL ?? "ws://127.0.0.1:7391/gateway");
const waiting = new Map();
let count = 0;

function request(method, params) {
  const id = String(++count);
  socket.send(JSON.stringify({ type: "req", id, method, params }));
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

async function answer({ id, request: { command }, riskLevel }) {
  console.log(`${riskLevel}: ${command}`);
  await request("exec.approval.resolve", { id, decision });
  console.log(`answered: ${decision}`);
}

async function connect() {
  const client = { id: "example", version: "1", platform: process.platform, mode: "cli" };
  const auth = { token: process.env.COUNTERSIGN_KEY };
  const hello = await request("connect", { minProtocol: 4, maxProtocol: 4, role: "operator", scopes: [], caps: [], client, auth });
  console.log(`connected with ${hello.auth.scopes.join(", ") || "no scopes"}`);
  // What was asked before this connection is listed; what is asked from now on is an event.
  for (const pending of await request("exec.approval.list")) await answer({ riskLevel: "waiting", ...pending });
}

socket.onmessage = ({ data }) => {
  const frame = JSON.parse(data);
  if (frame.type === "res") {
    const { resolve, reject } = waiting.get(frame.id);
    waiting.delete(frame.id);
    frame.ok ? resolve(frame.payload) : reject(new Error(`${frame.error.code}: ${frame.error.message}`));
  } else if (frame.event === "connect.challenge") {
    connect().catch(fail);
  } else if (frame.event === "exec.approval.requested") {
    answer(frame.payload).catch(fail);
  }
};
socket.onclose = ({ code, reason }) => fail(new Error(`closed: ${code} ${reason}`));

function fail(error) {
  console.error(error.message);
  process.exit(1);
}
