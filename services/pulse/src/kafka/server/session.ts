// What is known of the client at the other end of a connection.
import type { Principal } from "../principal.ts";
import type { SaslExchange } from "../sasl/mechanism.ts";

/** How far a client has come with showing who it is. */
export type Authentication =
  | { state: "demanded" }
  /** A mechanism was chosen. `isBare`: its messages come as frames without a header. */
  | { state: "under way"; exchange: SaslExchange; isBare: boolean }
  /** `isAnonymous`: it was let in without credentials, and may still show some. */
  | { state: "done"; principal: Principal; isAnonymous?: boolean }
  /** It has been told so; the connection ends. */
  | { state: "refused" };

/** One connection as handlers see it. */
export interface Session {
  readonly remoteAddress: string;
  /** Where the client is told to find the broker. */
  readonly advertised: { host: string; port: number };
  authentication: Authentication;
  /** Until then (monotonic, in ms) nothing more of the connection is handled: its tenant is over a quota. */
  mutedUntilMs: number;
}

/** Mutes a connection for a while (KIP-219): clients that overlook the answer's `throttleTimeMs` are slowed down too. */
export function mute(session: Session, ms: number): void {
  session.mutedUntilMs = Math.max(session.mutedUntilMs, performance.now() + ms);
}

/** The principal of a session; a handler is only called when there is one. */
export function principalOf(session: Session): Principal {
  if (session.authentication.state === "done") return session.authentication.principal;
  throw new Error("a request was handled before its client was known");
}
