// The connected clients and the tunnels that they serve.
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import { GoAwayCode, type GoAwayCodeId } from "../frame/format.ts";
import type { RequestEvent } from "../frame/messages.ts";
import type { Session } from "../frame/session.ts";
import type { ConnectedTunnel } from "./connected-tunnel.ts";

/** A connected client, as the hub sees it. */
export interface HubClient {
  readonly subject: string;
  /** Digest of the client's key; "" before HELLO. */
  readonly keyHash: string;
  /** Process of the client; "" before HELLO. */
  readonly instance: string;
  /** Time at which its token expires, in ms since 1970. */
  readonly expiresAt: number;
  readonly session: Session;
  readonly tunnels: readonly ConnectedTunnel[];
  /** Awaiting requests were failed because the client is silent. */
  isFlagged: boolean;
  /** Reports a finished request to the client. */
  note(event: RequestEvent): void;
  /** Stops serving a tunnel that was deleted or is served by another client now. */
  drop(tunnel: ConnectedTunnel, code: typeof GoAwayCode.Replaced | typeof GoAwayCode.Removed): void;
}

interface Served {
  readonly tunnel: ConnectedTunnel;
  readonly client: HubClient;
}

/** Open public connections of TCP tunnels, of all clients together. */
const TCP_CONNECTIONS_MAX = 10_000;

/** All connected clients. */
export class Hub {
  /** Open connections of TCP tunnels and their maximum. */
  readonly tcpConnections = { open: 0, most: TCP_CONNECTIONS_MAX };
  /** Called when a client begins to serve a tunnel. */
  onServed: ((tunnel: ConnectedTunnel) => void) | undefined;
  readonly #clients = new Set<HubClient>();
  readonly #served = new Map<string, Served>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get clients(): number {
    return this.#clients.size;
  }

  get tunnels(): number {
    return this.#served.size;
  }

  get streams(): number {
    let count = 0;
    for (const { session } of this.#clients) count += session.streams;
    return count;
  }

  /** Connected clients of a subject. */
  countOf(subject: string): number {
    let count = 0;
    for (const client of this.#clients) if (client.subject === subject) count++;
    return count;
  }

  /** The tunnel with this id, if a client serves it. */
  find(id: string): ConnectedTunnel | undefined {
    return this.#served.get(id)?.tunnel;
  }

  /** The client that serves the tunnel. */
  findClient(id: string): HubClient | undefined {
    return this.#served.get(id)?.client;
  }

  /** Counts a client from its connection on. */
  enter(client: HubClient): void {
    this.#clients.add(client);
  }

  /** A client serves a tunnel. */
  add(tunnel: ConnectedTunnel, client: HubClient): void {
    this.#served.set(tunnel.row.id, { tunnel, client });
    this.onServed?.(tunnel);
  }

  /** True if the tunnel is served and `client` cannot take it over; also by `client` itself. */
  isBusyFor(id: string, client: HubClient): boolean {
    const served = this.#served.get(id);
    if (served === undefined) return false;
    return served.client === client || !mayTakeOver(served.client, client);
  }

  /**
   * Takes a tunnel from the client that serves it, if that is a former connection of the same process, or a silent one
   * with the same key. Throws 409 otherwise.
   */
  takeOver(id: string, client: HubClient): void {
    const served = this.#served.get(id);
    if (served === undefined) return;
    if (served.client === client) {
      throw new PlatformError("conflict", "The name is offered twice on this connection.");
    }
    if (!mayTakeOver(served.client, client)) {
      throw new PlatformError("conflict", "The name is served by another client.");
    }
    this.#served.delete(id);
    served.client.drop(served.tunnel, GoAwayCode.Replaced);
  }

  /** The client opens no more streams: its tunnels count as disconnected. */
  withdraw(client: HubClient): void {
    for (const tunnel of client.tunnels) this.withdrawTunnel(tunnel, client);
  }

  /** The client does not serve the tunnel any more. */
  withdrawTunnel(tunnel: ConnectedTunnel, client: HubClient): void {
    if (this.#served.get(tunnel.row.id)?.client === client) this.#served.delete(tunnel.row.id);
  }

  /** The client is gone. */
  remove(client: HubClient): void {
    this.withdraw(client);
    this.#clients.delete(client);
  }

  /** Stops serving a tunnel that was deleted. */
  dropTunnel(id: string): void {
    const served = this.#served.get(id);
    if (served === undefined) return;
    this.#served.delete(id);
    served.client.drop(served.tunnel, GoAwayCode.Removed);
  }

  /** Disconnects all clients of a subject. */
  dropSubject(subject: string, reason: string): void {
    for (const client of this.#clients) {
      if (client.subject === subject) client.session.close(GoAwayCode.Removed, reason);
    }
  }

  /** Keep-alive, expiry and silent clients; called once a second. */
  sweep(): void {
    const nowMs = this.#clock.now();
    for (const client of this.#clients) {
      client.session.sweep();
      if (nowMs >= client.expiresAt) {
        client.session.close(GoAwayCode.Unauthorized, "the token has expired");
        continue;
      }
      const isSilent = !client.session.isResponsive;
      if (isSilent && !client.isFlagged) for (const tunnel of client.tunnels) tunnel.failAwaiting();
      client.isFlagged = isSilent;
    }
  }

  /** Announces the end to all clients; requests in flight may finish. */
  goAway(code: GoAwayCodeId, reason: string): void {
    for (const client of this.#clients) client.session.goAway(code, reason);
  }

  /** Finishes the requests in flight, then closes all sessions. */
  async drain(deadlineMs: number): Promise<void> {
    const tunnels = [...this.#served.values()].map(({ tunnel }) => tunnel);
    await Promise.all(tunnels.map((tunnel) => tunnel.drain(deadlineMs)));
    for (const client of this.#clients) {
      client.session.close(GoAwayCode.Draining, "the relay is restarting");
    }
  }
}

// A dropped connection is often noticed by the client first.
function mayTakeOver(holder: HubClient, client: HubClient): boolean {
  if (holder.session.isClosed) return true;
  if (holder.subject !== client.subject || holder.keyHash !== client.keyHash) return false;
  return holder.instance === client.instance || !holder.session.isResponsive;
}
