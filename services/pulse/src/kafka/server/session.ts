// The state of a connection's client.
import { describeClient, type ConnectedClient } from "../../connection/listed-connection.ts";
import type { CountedUser } from "../../connection/user-connections.ts";
import type { Principal } from "../../user/principal.ts";
import type { SaslExchange } from "../sasl/mechanism.ts";

/** Progress of a client's authentication. */
export type Authentication =
  | { state: "demanded" }
  /** A mechanism was chosen. `isBare`: its messages are frames without a header. */
  | { state: "under way"; exchange: SaslExchange; isBare: boolean }
  /** `isAnonymous`: accepted without credentials; it may still authenticate. */
  | { state: "done"; principal: Principal; isAnonymous?: boolean }
  /** The client was told; the connection ends. */
  | { state: "refused" };

/** A connection, for handlers. */
export interface Session {
  readonly remoteAddress: string;
  /** The broker address that the client is told. */
  readonly advertised: { host: string; port: number };
  authentication: Authentication;
  /** From the latest request that names one. */
  clientId: string | undefined;
  /** The user whose connections this one counts with. */
  readonly user: CountedUser;
  /** Until then (monotonic, in ms) no requests of the connection are handled: its tenant exceeds a quota. */
  mutedUntilMs: number;
}

/** Mutes a connection for a while (KIP-219), which also slows down clients that ignore `throttleTimeMs`. */
export function mute(session: Session, ms: number): void {
  session.mutedUntilMs = Math.max(session.mutedUntilMs, performance.now() + ms);
}

/** The client of a session, whose topics its group shows; undefined before it is authenticated. */
export function describeSession({
  authentication,
  clientId,
}: Session): ConnectedClient | undefined {
  if (authentication.state !== "done") return undefined;
  return describeClient(authentication.principal, clientId, Iterator.from([]), 0);
}

/** The answer to clients beyond the limit of a user's connections. */
export const TOO_MANY_CONNECTIONS = "The user has too many connections.";

/** Admits an authenticated client; false if its user has too many connections. */
export function admitUser(session: Session, principal: Principal): boolean {
  if (!session.user.change(principal)) return false;
  session.authentication = { state: "done", principal };
  return true;
}

/** The principal of a session; handlers are only called when there is one. */
export function principalOf(session: Session): Principal {
  if (session.authentication.state === "done") return session.authentication.principal;
  throw new Error("a request was handled before authentication");
}

/** Why a client may only authenticate; `undefined` if it is authenticated. */
export function explainRefusal(authentication: Authentication): string | undefined {
  if (authentication.state !== "done") return "before authentication";
  const { expiresAtMs } = authentication.principal;
  if (expiresAtMs === undefined || expiresAtMs > Date.now()) return undefined;
  return "after the client's token has ended";
}

/** True if the client has sent something, and its credentials where they are required. */
export function isIntroduced({ authentication }: Session, receivedBytes: number): boolean {
  return receivedBytes > 0 && authentication.state === "done";
}
