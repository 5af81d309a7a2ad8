// What waits for an answer: matches answers to questions, and ends the wait by time, signal or loss. Knows nothing of
// connections.

import { abortReason, RpcError } from "./errors.js";
import type { Device, RoutedMessage } from "./hub.js";

/** A message that could not be delivered. */
export interface SendError {
  messageId: string;
  error: string;
  code: string;
}

type Settle<T> = (value: T | undefined, error?: unknown) => void;

interface Question {
  to: string;
  messageId: string;
  settle: Settle<unknown>;
}

export class Answers {
  readonly #questions = new Map<string, Question>();
  #listings: Settle<Device[]>[] = [];

  /** `send` sends the question and answers the message's id. */
  ask(requestId: string, to: string, late: string, until: number, signal: AbortSignal | undefined, send: () => string): Promise<unknown> {
    return awaiting<unknown>(until, signal, late, (settle) => {
      this.#questions.set(requestId, { to, messageId: send(), settle });
      return () => this.#questions.delete(requestId);
    });
  }

  /** Answers come in order and carry no id: one that is no longer waited for keeps its place. */
  askForDevices(until: number, signal: AbortSignal | undefined, send: () => void): Promise<Device[]> {
    return awaiting<Device[]>(until, signal, "`list-devices` was not answered in time", (settle) => {
      send();
      this.#listings.push(settle);
      return () => {};
    });
  }

  /** INVARIANT: only the device that was asked answers; a message of another that knows the id is nothing. */
  answered(message: RoutedMessage): void {
    const answer = message.payload as { requestId?: string; ok?: unknown; payload?: unknown; error?: Partial<RpcError> } | null;
    const question = this.#questions.get(answer?.requestId ?? "");
    if (answer == null || question === undefined || message.from !== question.to) return;
    if (answer.ok === true) {
      question.settle(answer.payload);
    } else {
      const { code, message: text, retryable } = answer.error ?? {};
      question.settle(undefined, new RpcError(String(code ?? "UNKNOWN"), String(text ?? "the request failed"), retryable === true));
    }
  }

  devices(data: unknown): void {
    const devices = (data as { devices?: unknown } | null)?.devices;
    const settle = this.#listings.shift();
    if (Array.isArray(devices)) settle?.(devices as Device[]);
    else settle?.(undefined, new RpcError("BAD_MESSAGE", "`list-devices` answered no list"));
  }

  /** Whether the message was a question of ours. */
  notDelivered(failure: SendError): boolean {
    for (const question of this.#questions.values()) {
      if (question.messageId !== failure.messageId) continue;
      question.settle(undefined, new RpcError(failure.code, failure.error));
      return true;
    }
    return false;
  }

  /** Nothing that was asked will be answered. */
  fail(error: unknown): void {
    for (const question of [...this.#questions.values()]) question.settle(undefined, error);
    const listings = this.#listings;
    this.#listings = [];
    for (const settle of listings) settle(undefined, error);
  }
}

/** A promise that `start` settles, or the time, or the signal; `start` answers how to forget it. */
export function awaiting<T>(
  until: number, signal: AbortSignal | undefined, late: string, start: (settle: Settle<T>) => () => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(abortReason(signal));
      return;
    }
    let forget = (): void => {};
    const settle: Settle<T> = (value, error) => {
      forget();
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      if (error === undefined) resolve(value as T);
      else reject(error);
    };
    const stop = (): void => settle(undefined, abortReason(signal as AbortSignal));
    const left = Math.max(0, until - Date.now());
    // Longer timers than this fire at once.
    const timer = left < 2 ** 31 ? setTimeout(() => settle(undefined, new RpcError("TIMEOUT", late, true)), left) : undefined;
    signal?.addEventListener("abort", stop, { once: true });
    try {
      forget = start(settle);
    } catch (error) {
      settle(undefined, error);
    }
  });
}
