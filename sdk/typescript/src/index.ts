export type { SendError } from "./answers.js";
export type * from "./approvals.js";
export { isApproved } from "./approvals.js";
export type { BackoffOptions } from "./backoff.js";
export {
  CountersignClient, type CallOptions, type CountersignClientOptions, type EventsOptions, type ListOptions, type WaitOptions,
} from "./client.js";
export { CountersignError, RpcError, type ErrorExtras } from "./errors.js";
export { GatewayClient, type ConnectionState, type GatewayClientOptions, type RequestOptions } from "./gateway.js";
export type * from "./hub.js";
export { ExecApprovalRequestAction, ExecApprovalResolvedAction, RequestAction, ResponseAction } from "./hub.js";
export type { Socket, SocketConstructor } from "./socket.js";
