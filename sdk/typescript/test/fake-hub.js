// A hub as `wire/hub.md` describes it, with what no real one does on purpose: it drops, stays silent, lies.

import { randomUUID } from "node:crypto";
import { listen } from "./ws-server.js";

export async function fakeHub(behaviour = {}) {
  const hub = { id: "hub-1", devices: new Map(), methods: {}, pending: [], verifies: [], keys: [], ...behaviour };
  const tell = (connection, event, data) => connection.send(JSON.stringify({ event, data }));
  hub.tell = tell;
  hub.push = (to, action, payload, from = hub.id) =>
    tell(hub.devices.get(to), "receive", { id: randomUUID(), uid: null, from, to, action, payload });

  const methods = {
    verify: (params) => {
      hub.verifies.push(params);
      return { hubId: hub.id, agentId: "agent-1" };
    },
    listExecApprovals: () => ({ approvals: hub.pending }),
  };

  const connected = (connection) => {
    const deviceId = connection.url.searchParams.get("deviceId");
    const deviceType = connection.url.searchParams.get("deviceType");
    hub.keys.push([connection.headers.authorization, connection.url.searchParams.get("key")]);
    if (hub.mute) return;
    if (hub.devices.has(deviceId) || hub.full) {
      tell(connection, "registered", { success: false, deviceId, error: "Device ID already in use" });
      connection.close(1000);
      return;
    }
    hub.devices.set(deviceId, connection);
    connection.type = deviceType;
    connection.on("gone", () => hub.devices.get(deviceId) === connection && hub.devices.delete(deviceId));
    tell(connection, "registered", { success: true, deviceId });
    connection.on("frame", async (opcode, bytes) => {
      if (opcode === 8) return void connection.stream.end();
      if (opcode !== 1) return;
      const { event, data } = JSON.parse(bytes);
      if (event === "ping" && !hub.silent) return tell(connection, "pong", {});
      if (event === "list-devices") {
        const devices = [...hub.devices].map(([id, { type }]) => ({ deviceId: id, deviceType: type }));
        return tell(connection, "list-devices", { devices: [{ deviceId: hub.id, deviceType: "hub" }, ...devices] });
      }
      if (event !== "send") return;
      if (data.from !== deviceId) return tell(connection, "send_error", { messageId: data.id, error: "wrong from", code: "INVALID_MESSAGE" });
      if (data.to !== hub.id) {
        if (!hub.devices.has(data.to)) {
          return tell(connection, "send_error", { messageId: data.id, error: "Device not found", code: "DEVICE_NOT_FOUND" });
        }
        return tell(hub.devices.get(data.to), "receive", data);
      }
      if (data.action !== "request") return;
      const { requestId, method, params } = data.payload;
      const answer = (payload) => hub.push(deviceId, "response", { requestId, ...payload });
      const found = hub.methods[method] ?? methods[method];
      if (!found) return answer({ ok: false, error: { code: "METHOD_NOT_FOUND", message: `no ${method}` } });
      try {
        const payload = await found(params, { deviceId, requestId });
        if (payload !== undefined) answer({ ok: true, payload });
      } catch (error) {
        answer({ ok: false, error: { code: error.code, message: error.message, retryable: error.retryable } });
      }
    });
  };
  hub.up = async (port = 0) => {
    hub.server = await listen(connected, { port, refuse: () => hub.refuse });
    hub.port = hub.server.port;
    hub.url = `http://127.0.0.1:${hub.port}`;
  };
  hub.down = () => hub.server.stop();
  await hub.up();
  return hub;
}
