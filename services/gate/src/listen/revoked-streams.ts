// Ends the event streams and WebSockets of callers whose token was revoked or whose session is over; other requests finish.
import { findSessionEnd, type Revocation } from "@platform/kernel/identity";
import type { RequestState } from "../exchange/exchange.ts";
import type { AccessState } from "../filter/identity/access-state.ts";
import type { AccessChange } from "../shared-state/index.ts";

const SWEEP_TICKS = 60;
const SESSION_TICKS = 5;
/** A response may turn out to be a stream after its token was revoked, so streams are checked again for a while. */
const RECHECK_TICKS = 60;

/** Options of {@link RevokedStreams}. */
export interface RevokedStreamsOptions {
  access: AccessState;
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
  add(entries: readonly Revocation[], policyVersion: number | undefined): void {
    this.#options.access.revoke(entries, policyVersion);
    this.#endRevoked();
  }

  /** Takes over a change of access and ends the streams of credentials that it revokes. */
  change(change: AccessChange): void {
    if (this.#options.access.apply(change)) this.#endRevoked();
  }

  /** Call it every second. */
  tick(): void {
    this.#ticks++;
    if (this.#ticks % SWEEP_TICKS === 0) this.#options.access.sweep(Date.now() / 1_000);
    const isRecheck = this.#recheckTicks > 0;
    if (isRecheck) this.#recheckTicks--;
    if (isRecheck || this.#ticks % SESSION_TICKS === 0) this.#endStreams();
  }

  #endRevoked(): void {
    this.#recheckTicks = RECHECK_TICKS;
    this.#endStreams();
  }

  #endStreams(): void {
    const { listActive, onEnded } = this.#options;
    const nowSeconds = Date.now() / 1_000;
    let ended = 0;
    for (const state of listActive()) {
      if (this.#isOver(state, nowSeconds) && state.exchange?.endStream() === true) ended++;
    }
    if (ended > 0) onEnded(ended);
  }

  #isOver({ caller, apiKey }: RequestState, nowSeconds: number): boolean {
    const { access } = this.#options;
    if (apiKey !== null && access.isRevokedKey(apiKey)) return true;
    if (caller.kind !== "user") return false;
    const isEnded = (findSessionEnd(caller.claims) ?? Infinity) <= nowSeconds;
    if (isEnded || access.isRevoked(caller.claims)) return true;
    return caller.session !== undefined && access.endedSessions.has(caller.session);
  }
}
