// One tab at a time sends a queue.
import { Pause } from "../backoff.ts";
import { randomId } from "../message.ts";
import type { Outbox } from "./outbox.ts";

const LEASE_MS = 10_000;
const RENEW_MS = 3_000;

/** Runs `work` while no other tab runs the same; its signal is aborted if the turn is lost, or with `signal`. */
export type Turn = (
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
) => Promise<void>;

/** By the Web Locks API, which only secure contexts have; else by a lease of 10 s in the queue. */
export function createTurn(name: string, outbox: Outbox): Turn {
  const { locks } = navigator as Partial<Pick<Navigator, "locks">>;
  if (locks === undefined) return (work, signal) => runLeased(outbox, work, signal);
  return async (work, signal) => {
    await locks.request(name, { signal }, () => work(signal));
  };
}

async function runLeased(
  outbox: Outbox,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const owner = randomId();
  const pause = new Pause();
  while (!(await outbox.lease(owner, Date.now(), LEASE_MS))) {
    await pause.wait(RENEW_MS, signal);
    signal.throwIfAborted();
  }
  const lost = new AbortController();
  const renew = async (): Promise<void> => {
    const isHeld = await outbox.lease(owner, Date.now(), LEASE_MS).catch(() => false);
    if (!isHeld) lost.abort();
  };
  const timer = setInterval(() => void renew(), RENEW_MS);
  try {
    await work(AbortSignal.any([signal, lost.signal]));
  } finally {
    clearInterval(timer);
    await outbox.release(owner).catch(() => undefined);
  }
}
