// Answers what agents ask, as a device of the hub: node examples/hub.mjs allow-once|deny  (Node 22 or newer).
// COUNTERSIGN_URL (ws://127.0.0.1:7391/hub) says where. Who it is: COUNTERSIGN_KEY (role approver), or a device id of
// your own in COUNTERSIGN_DEVICE, and the first time the code that `countersign pair` shows in COUNTERSIGN_CODE.
const decision = process.argv[2] ?? "deny";
const deviceId = process.env.COUNTERSIGN_DEVICE ?? crypto.randomUUID();
const url = new URL(process.env.COUNTERSIGN_URL ?? "ws://127.0.0.1:7391/hub");
url.search = new URLSearchParams({ deviceId, deviceType: "client", ...(process.env.COUNTERSIGN_KEY && { key: process.env.COUNTERSIGN_KEY }) });
const socket = new WebSocket(url);
const waiting = new Map();
let hub;

const emit = (event, data) => socket.send(JSON.stringify({ event, data }));

function request(method, params) {
  const requestId = crypto.randomUUID();
  emit("send", { id: crypto.randomUUID(), uid: null, from: deviceId, to: hub, action: "request", payload: { requestId, method, params } });
  return new Promise((resolve, reject) => waiting.set(requestId, { resolve, reject }));
}

async function answer({ approvalId, command, riskLevel, riskReasons }) {
  console.log(`${riskLevel}: ${command}${riskReasons.map((reason) => `\n  ${reason}`).join("")}`);
  await request("resolveExecApproval", { approvalId, decision });
  console.log(`answered: ${decision}`);
}

async function start() {
  await request("verify", process.env.COUNTERSIGN_CODE ? { token: process.env.COUNTERSIGN_CODE } : {});
  console.log("verified");
  // What was asked before this connection is listed; what is asked from now on comes by itself.
  for (const card of (await request("listExecApprovals", {})).approvals) await answer(card);
}

const heard = {
  registered: ({ success, error }) => (success ? emit("list-devices", {}) : fail(new Error(error))),
  "list-devices": ({ devices }) => {
    hub = devices.find(({ deviceType }) => deviceType === "hub").deviceId;
    start().catch(fail);
  },
  receive: ({ from, action, payload }) => {
    if (from !== hub) return;
    if (action === "exec-approval-request") answer(payload).catch(fail);
    if (action !== "response") return;
    const { resolve, reject } = waiting.get(payload.requestId);
    waiting.delete(payload.requestId);
    payload.ok ? resolve(payload.payload) : reject(new Error(`${payload.error.code}: ${payload.error.message}`));
  },
  send_error: ({ code, error }) => fail(new Error(`${code}: ${error}`)),
};
socket.onmessage = ({ data }) => {
  const { event, data: about } = JSON.parse(data);
  heard[event]?.(about);
};
socket.onclose = ({ code, reason }) => fail(new Error(`closed: ${code} ${reason}`));

function fail(error) {
  console.error(error.message);
  process.exit(1);
}
