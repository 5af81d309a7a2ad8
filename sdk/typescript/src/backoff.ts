// Waiting: how long before the next try, and a sleep that a signal ends. Knows nothing of what is tried.

import { abortReason } from "./errors.js";

export interface BackoffOptions {
  /** The first delay. Default 250. */
  minMs?: number;
  /** No delay is longer. Default 15,000. */
  maxMs?: number;
}

/** Doubling delays with jitter, so that a thousand clients do not come back in the same instant. */
export class Backoff {
  readonly #minMs: number;
  readonly #maxMs: number;
  #tries = 0;

  constructor(options: BackoffOptions = {}) {
    this.#minMs = Math.max(1, options.minMs ?? 250);
    this.#maxMs = Math.max(this.#minMs, options.maxMs ?? 15_000);
  }

  /** The next delay: between half and the whole of the step. */
  next(): number {
    const step = Math.min(this.#maxMs, this.#minMs * 2 ** Math.min(this.#tries, 30));
    this.#tries += 1;
    return step / 2 + Math.random() * (step / 2);
  }

  reset(): void {
    this.#tries = 0;
  }
}

/** Resolves after `ms`, or rejects with the signal's reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(abortReason(signal));
      return;
    }
    const stop = (): void => {
      clearTimeout(timer);
      reject(abortReason(signal as AbortSignal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
