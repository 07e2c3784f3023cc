// The gateway under test, as all parts of the soak see it.
import { setTimeout as sleep } from "node:timers/promises";
import type { Tally } from "./tally.ts";

/** Everything that takes part. */
export interface Scene {
  port: number;
  url: string;
  tally: Tally;
  over: AbortSignal;
}

/** True after the time, false once the test is over. */
export async function waits(ms: number, over: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal: over }).catch(() => undefined);
  return !over.aborted;
}
