// A connected client: its session, its tunnels, its finished requests.
import type { Engine } from "@platform/http1";
import { toPlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { VERSION } from "../config.ts";
import { FrameType, type FrameTypeId, GoAwayCode, WireError } from "../frame/format.ts";
import {
  readHello,
  type Hello,
  type RequestEvent,
  type TunnelGrant,
  type TunnelOffer,
} from "../frame/messages.ts";
import { Session } from "../frame/session.ts";
import type { SessionListener, SessionOptions } from "../frame/session-contract.ts";
import type { CustomDomains } from "../name/custom-domains.ts";
import { hashKey, type TunnelStore } from "../name/tunnel-store.ts";
import { ConnectedTunnel } from "./connected-tunnel.ts";
import type { Hub, HubClient } from "./hub.ts";
import { TcpListener } from "./tcp-listener.ts";

/** Options of {@link ClientSession}. */
export interface ClientSessionOptions {
  hub: Hub;
  store: TunnelStore;
  domains: CustomDomains;
  engine: Engine;
  log: Logger;
  id: string;
  subject: string;
  /** Time at which the client's token expires, in ms since 1970. */
  expiresAt: number;
  remoteAddress: string;
  socket: Pick<SessionOptions, "socket" | "rest" | "isPrivate" | "budget">;
  streamsMax: number;
  responseTimeoutMs: number;
  /** Default: all addresses. */
  tcpHost: string | undefined;
  /** Public URL of a tunnel. */
  formatUrl: (tunnel: { subdomain: string | null; port: number | null }) => string;
  onReconnected: () => void;
}

const HELLO_MS = 10_000;
const LEAVE_MS = 30_000;
const EVENTS_EVERY_MS = 50;
const EVENTS_MAX = 500;
/** Keeps an EVENT well below the largest payload. */
const EVENT_PATH_CHARACTERS_MAX = 100;

/** One connected client. */
export class ClientSession implements SessionListener, HubClient {
  readonly id: string;
  readonly subject: string;
  readonly expiresAt: number;
  readonly remoteAddress: string;
  readonly session: Session;
  keyHash = "";
  instance = "";
  isFlagged = false;
  readonly tunnels: ConnectedTunnel[] = [];
  readonly #options: ClientSessionOptions;
  readonly #listeners: TcpListener[] = [];
  readonly #helloTimer: NodeJS.Timeout;
  #hasGreeted = false;
  #wantsEvents = false;
  #events: RequestEvent[] = [];
  #eventsDropped = 0;
  #eventTimer: NodeJS.Timeout | undefined;

  constructor(options: ClientSessionOptions) {
    this.#options = options;
    this.id = options.id;
    this.subject = options.subject;
    this.expiresAt = options.expiresAt;
    this.remoteAddress = options.remoteAddress;
    this.#helloTimer = setTimeout(() => {
      this.session.close(GoAwayCode.Protocol, "no HELLO was received");
    }, HELLO_MS);
    this.session = new Session({
      ...options.socket,
      role: "relay",
      listener: this,
      streamsMax: options.streamsMax,
    });
  }

  onMessage(_type: FrameTypeId, payload: Buffer): void {
    if (this.#hasGreeted) throw new WireError("unexpected_frame", "a second HELLO");
    const hello = readHello(payload);
    this.#hasGreeted = true;
    clearTimeout(this.#helloTimer);
    this.keyHash = hashKey(hello.key);
    this.instance = hello.instance;
    this.#wantsEvents = hello.events;
    if (hello.reconnects > 0) this.#options.onReconnected();
    this.#greet(hello).catch((error: unknown) => {
      this.#options.log.error("a client could not be registered", { error });
      this.session.close(GoAwayCode.Overloaded, "the relay could not register the tunnels");
    });
  }

  onOpen(): void {
    // Only relays open streams; the session refuses OPEN of clients.
  }

  onGoAway(): void {
    // No new requests; those in flight may finish, and idle streams are closed.
    this.#options.hub.withdraw(this);
    for (const tunnel of this.tunnels) void tunnel.drain(LEAVE_MS);
  }

  onClose(): void {
    clearTimeout(this.#helloTimer);
    clearTimeout(this.#eventTimer);
    for (const tunnel of this.tunnels) tunnel.close();
    for (const listener of this.#listeners) listener.close();
    this.#options.hub.remove(this);
  }

  note(event: RequestEvent): void {
    if (!this.#wantsEvents) return;
    if (this.#events.length >= EVENTS_MAX) {
      this.#eventsDropped++;
      return;
    }
    this.#events.push({ ...event, path: event.path.slice(0, EVENT_PATH_CHARACTERS_MAX) });
    this.#eventTimer ??= setTimeout(() => this.#sendEvents(), EVENTS_EVERY_MS);
  }

  drop(
    tunnel: ConnectedTunnel,
    code: typeof GoAwayCode.Replaced | typeof GoAwayCode.Removed,
  ): void {
    const index = this.tunnels.indexOf(tunnel);
    if (index === -1) return;
    this.tunnels.splice(index, 1);
    tunnel.close();
    for (const listener of this.#listeners) if (listener.tunnel === tunnel) listener.close();
    if (this.tunnels.length > 0) return;
    const reason =
      code === GoAwayCode.Removed ? "the tunnel was deleted" : "another client took over";
    this.session.close(code, reason);
  }

  #sendEvents(): void {
    this.#eventTimer = undefined;
    this.session.sendMessage(FrameType.Event, {
      requests: this.#events,
      dropped: this.#eventsDropped,
    });
    this.#events = [];
    this.#eventsDropped = 0;
  }

  async #greet(hello: Hello): Promise<void> {
    const grants: TunnelGrant[] = [];
    for (const [number, offer] of hello.tunnels.entries()) {
      grants.push(await this.#grant(offer, number, hello));
      if (this.session.isClosed) return;
    }
    this.session.sendMessage(FrameType.Welcome, {
      relay: `platform-tunnel/${VERSION}`,
      session: this.id,
      tunnels: grants,
    });
    this.session.ping();
  }

  /** Claims the name of an offered tunnel and serves it, or says why not. */
  async #grant(offer: TunnelOffer, number: number, hello: Hello): Promise<TunnelGrant> {
    const { hub, store, domains, formatUrl } = this.#options;
    try {
      const row = await store.claim(
        {
          subject: this.subject,
          kind: offer.kind,
          target: offer.target,
          authRequired: offer.auth_required,
          subdomain: offer.subdomain,
          port: offer.remote_port,
          clientKey: hello.key,
        },
        (known) => hub.isBusyFor(known.id, this),
      );
      let url = formatUrl(row);
      if (offer.custom_domain !== undefined) {
        const domain = await domains.claim(offer.custom_domain, row);
        url = url.replace(/^(https?:\/\/)[^:/]+/, `$1${domain}`);
      }
      await store.noteSeen(row, this.keyHash);
      if (this.session.isClosed) return { error: { code: "unavailable", detail: "Disconnected." } };
      hub.takeOver(row.id, this);
      const tunnel = this.#serve(offer, number, row, hello);
      hub.add(tunnel, this);
      if (offer.kind === "tcp") await this.#listenTcp(tunnel);
      return { number, id: row.id, url, subdomain: row.subdomain ?? "" };
    } catch (thrown) {
      const error = toPlatformError(thrown);
      if (error.code === "internal") {
        this.#options.log.error("a tunnel could not be registered", { error: thrown });
      }
      return { error: { code: error.code, detail: error.detail } };
    }
  }

  #serve(
    offer: TunnelOffer,
    number: number,
    row: ConnectedTunnel["row"],
    hello: Hello,
  ): ConnectedTunnel {
    const { engine, streamsMax, responseTimeoutMs } = this.#options;
    const tunnel = new ConnectedTunnel({
      engine,
      session: this.session,
      row,
      offer,
      number,
      streamsMax: Math.min(streamsMax, hello.streams_max),
      responseTimeoutMs,
    });
    this.tunnels.push(tunnel);
    return tunnel;
  }

  async #listenTcp(tunnel: ConnectedTunnel): Promise<void> {
    const { hub, tcpHost, log } = this.#options;
    const listener = new TcpListener({
      tunnel,
      budget: hub.tcpConnections,
      onError: (error) => log.warn("a TCP tunnel's listener failed", { error }),
    });
    this.#listeners.push(listener);
    try {
      await listener.listen(tcpHost, tunnel.row.port!);
    } catch (error) {
      hub.withdrawTunnel(tunnel, this);
      throw error;
    }
  }
}
