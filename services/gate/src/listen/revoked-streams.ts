// Ends the event streams and WebSockets of callers whose token was revoked or whose session is over; other requests finish.
import { findSessionEnd, type Revocation, type RevocationSet } from "@platform/kernel/identity";
import type { RequestState } from "../request/request-state.ts";

const SWEEP_TICKS = 60;
const SESSION_TICKS = 5;
/** A response may turn out to be a stream after its token was revoked, so streams are checked again for a while. */
const RECHECK_TICKS = 60;

/** Options of {@link RevokedStreams}. */
export interface RevokedStreamsOptions {
  revocations: RevocationSet;
  /** The requests that are being forwarded. */
  listActive: () => Iterable<RequestState>;
  /** Called with the number of streams that were ended, if there were any. */
  onEnded: (count: number) => void;
}

/** The revocations of a worker and their effect on open streams. */
export class RevokedStreams {
  readonly #options: RevokedStreamsOptions;
  #ticks = 0;
  #recheckTicks = 0;

  constructor(options: RevokedStreamsOptions) {
    this.#options = options;
  }

  /** Adds revocations and ends the streams of their tokens. */
  add(entries: readonly Revocation[]): void {
    this.#options.revocations.add(entries);
    this.#recheckTicks = RECHECK_TICKS;
    this.#endStreams();
  }

  /** Call it every second. */
  tick(): void {
    this.#ticks++;
    if (this.#ticks % SWEEP_TICKS === 0) this.#options.revocations.sweep(Date.now() / 1_000);
    const isRecheck = this.#recheckTicks > 0;
    if (isRecheck) this.#recheckTicks--;
    if (isRecheck || this.#ticks % SESSION_TICKS === 0) this.#endStreams();
  }

  #endStreams(): void {
    const { revocations, listActive, onEnded } = this.#options;
    const nowSeconds = Date.now() / 1_000;
    let ended = 0;
    for (const { caller, exchange } of listActive()) {
      if (caller.kind !== "user") continue;
      const isOver = (findSessionEnd(caller.claims) ?? Infinity) <= nowSeconds;
      if (!isOver && !revocations.hasClaims(caller.claims)) continue;
      if (exchange?.endStream() === true) ended++;
    }
    if (ended > 0) onEnded(ended);
  }
}
