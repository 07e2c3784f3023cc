// TLS listeners: certificates by server name, which can be replaced while connections stay open.
import { createHash } from "node:crypto";
import type { Server as TcpServer, Socket } from "node:net";
import {
  type SecureContext,
  type Server as NodeTlsServer,
  type TlsOptions,
  createSecureContext,
  createServer,
} from "node:tls";

import type { ServerFault, ServerTls, TlsIdentity } from "../contract/server.ts";
import { type ClientHello, TICKET_NAME_BYTES } from "./client-hello.ts";
import { createHelloFront } from "./hello-front.ts";

/** Protocol of handshakes that prove the control of a name (RFC 8737). */
const CHALLENGE_PROTOCOL = "acme-tls/1";
const PROTOCOL = "http/1.1";
const IS_BUN = process.versions["bun"] !== undefined;
/** A record with the fatal alert `unrecognized_name` (RFC 6066, section 3). */
const UNRECOGNIZED_NAME = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x70]);

interface Certificates {
  readonly fallback: SecureContext | null;
  readonly names: ReadonlyMap<string, SecureContext>;
  readonly challenges: ReadonlyMap<string, SecureContext>;
  /** Contexts by identity, which the next load uses for the same objects. */
  readonly onUnknownName: ServerTls["onUnknownName"];
  readonly contexts: WeakMap<TlsIdentity, SecureContext>;
  readonly minVersion: ServerTls["minVersion"];
  readonly ca: string | Buffer | undefined;
}

/** A TLS server with replaceable certificates. */
export class TlsListener {
  /** Accepts the connections. */
  readonly listener: TcpServer;
  /** Does the handshakes. */
  readonly #tls: NodeTlsServer;
  /**
   * Does those of clients with a ticket of the previous keys: Node accepts one set of keys for each server. Undefined before
   * there are such keys.
   */
  #previous: { name: string; tls: NodeTlsServer } | undefined;
  readonly #createServer: (tls: ServerTls) => NodeTlsServer;
  #certificates: Certificates;
  /** Sockets during their handshake. */
  readonly #handshaking = new Set<Socket>();
  /** Sockets of handshakes with {@link CHALLENGE_PROTOCOL}. */
  readonly #challenged = new WeakSet<object>();

  constructor(
    tls: ServerTls,
    handshakeMs: number,
    onSocket: (socket: Socket) => void,
    onFault: (fault: ServerFault) => void,
    onHandshakeEnd: () => void,
  ) {
    this.#certificates = loadCertificates(tls);
    this.#createServer = (settings) =>
      this.#createTls(settings, handshakeMs, { onSocket, onFault });
    this.#tls = this.#createServer(tls);
    this.listener = this.#createListener(tls, handshakeMs);
    this.#setTicketKeys(tls);
    this.listener.on("connection", (socket: Socket) => {
      this.#handshaking.add(socket);
      socket.once("close", () => {
        if (this.#handshaking.delete(socket)) onHandshakeEnd();
      });
    });
  }

  #createTls(
    tls: ServerTls,
    handshakeMs: number,
    {
      onSocket,
      onFault,
    }: { onSocket: (socket: Socket) => void; onFault: (fault: ServerFault) => void },
  ): NodeTlsServer {
    const options: TlsOptions = {
      allowHalfOpen: true,
      noDelay: true,
      handshakeTimeout: limitHandshake(handshakeMs),
      ...this.#chooseProtocols(tls),
      minVersion: tls.minVersion ?? "TLSv1.2",
      ...(tls.fallback === null ? {} : identityOptions(tls.fallback)),
      ...describeClientCertificates(tls),
      sessionIdContext: nameSessions(tls),
      SNICallback: this.#createNameCallback(),
    };
    const server = createServer(options, (socket) => {
      if (socket.alpnProtocol === CHALLENGE_PROTOCOL) socket.destroy();
      else onSocket(socket);
    });
    server.on("secureConnection", (socket) => {
      // The handshake of the raw socket is done; the TLS socket owns it now.
      this.#forgetHandshake(socket);
    });
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      onFault({
        kind: "tls-handshake",
        status: 0,
        code: error.code ?? "",
        remoteAddress: socket.remoteAddress ?? "",
      });
      socket.destroy();
    });
    return server;
  }

  /** Number of connections in their handshake. */
  get handshakes(): number {
    return this.#handshaking.size;
  }

  /** Loads all certificates first: throws, without any change, if one is invalid. */
  replace(tls: ServerTls): void {
    const certificates = loadCertificates(tls, this.#certificates);
    this.#certificates = certificates;
    for (const server of [this.#tls, this.#previous?.tls]) {
      if (tls.fallback === null) break;
      const { clientCertificates } = tls;
      server?.setSecureContext({
        ...identityOptions(tls.fallback),
        minVersion: tls.minVersion ?? "TLSv1.2",
        sessionIdContext: nameSessions(tls),
        ...(clientCertificates === undefined ? {} : { ca: clientCertificates.ca }),
      });
    }
    // A new context has keys of its own.
    this.#setTicketKeys(tls);
  }

  /** Destroys sockets whose handshake is not complete. */
  close(): void {
    for (const socket of this.#handshaking) socket.destroy();
  }

  // The protocol is chosen before the certificate. Bun ignores the callback.
  #chooseProtocols({ challenges }: ServerTls): Pick<TlsOptions, "ALPNProtocols" | "ALPNCallback"> {
    if (challenges === undefined || IS_BUN) return { ALPNProtocols: [PROTOCOL] };
    const isChallenged = (name: string): boolean =>
      this.#certificates.challenges.has(name.toLowerCase());
    const challenged = this.#challenged;
    return {
      ALPNCallback(this: unknown, { servername, protocols }) {
        if (protocols.includes(CHALLENGE_PROTOCOL)) {
          if (!isChallenged(servername) || !isObject(this)) return undefined;
          challenged.add(this);
          return CHALLENGE_PROTOCOL;
        }
        return protocols.includes(PROTOCOL) ? PROTOCOL : undefined;
      },
    };
  }

  #createListener(tls: ServerTls, handshakeMs: number): TcpServer {
    const timeoutMs = limitHandshake(handshakeMs);
    if (IS_BUN) {
      return tls.challenges === undefined ? this.#tls : this.#createChallengeFront(tls, timeoutMs);
    }
    if (tls.ticketKeys === undefined) return this.#tls;
    return createHelloFront({
      isNeeded: () => this.#previous !== undefined,
      onConnection: (socket, hello) => this.#chooseServer(hello).emit("connection", socket),
      timeoutMs,
    });
  }

  #chooseServer(hello: ClientHello | undefined): NodeTlsServer {
    const previous = this.#previous;
    const isPrevious = previous !== undefined && hello?.ticketNames.includes(previous.name);
    return isPrevious === true ? previous.tls : this.#tls;
  }

  #createChallengeFront(tls: ServerTls, timeoutMs: number): TcpServer {
    const find = (name: string): SecureContext | undefined =>
      this.#certificates.challenges.get(name.toLowerCase());
    const challenged = createServer(
      {
        ALPNProtocols: [CHALLENGE_PROTOCOL],
        minVersion: tls.minVersion ?? "TLSv1.2",
        handshakeTimeout: timeoutMs,
        SNICallback: (name, done) => {
          const context = find(name);
          if (context === undefined) done(new Error("no challenge for this server name"));
          else done(null, context);
        },
      },
      (socket) => socket.destroy(),
    );
    challenged.on("tlsClientError", (_error, socket) => socket.destroy());
    return createHelloFront({
      isNeeded: () => this.#certificates.challenges.size > 0,
      onConnection: (socket, hello) => {
        const isChallenge =
          hello?.protocols.includes(CHALLENGE_PROTOCOL) && find(hello.serverName) !== undefined;
        (isChallenge === true ? challenged : this.#tls).emit("connection", socket);
      },
      timeoutMs,
    });
  }

  #createNameCallback(): NonNullable<TlsOptions["SNICallback"]> {
    const find = (name: string, socket: unknown): SecureContext | null =>
      isObject(socket) && this.#challenged.has(socket)
        ? (this.#certificates.challenges.get(name.toLowerCase()) ?? null)
        : findContext(this.#certificates, name);
    const refuse = (socket: unknown, name: string): void => {
      this.#sendAlert(socket);
      this.#certificates.onUnknownName?.(name.toLowerCase());
    };
    return function (this: unknown, name, done) {
      const context = find(name, this);
      if (context !== null) return done(null, context);
      refuse(this, name);
      done(new Error("no certificate for this server name"));
    };
  }

  // Node closes the connection without an alert.
  #sendAlert(tlsSocket: unknown): void {
    const { remoteAddress, remotePort } = (tlsSocket ?? {}) as Partial<Socket>;
    for (const socket of this.#handshaking) {
      if (socket.remotePort !== remotePort || socket.remoteAddress !== remoteAddress) continue;
      socket.write(UNRECOGNIZED_NAME);
      return;
    }
  }

  // Bun lacks it, and has one thread.
  #setTicketKeys(tls: ServerTls): void {
    const { ticketKeys } = tls;
    if (ticketKeys === undefined || IS_BUN) return;
    this.#tls.setTicketKeys(Buffer.from(ticketKeys.current));
    if (ticketKeys.previous === undefined) {
      this.#previous = undefined;
      return;
    }
    const keys = Buffer.from(ticketKeys.previous);
    const server = this.#previous?.tls ?? this.#createServer(tls);
    server.setTicketKeys(keys);
    this.#previous = { name: keys.toString("hex", 0, TICKET_NAME_BYTES), tls: server };
  }

  #forgetHandshake({ remoteAddress, remotePort }: Socket): void {
    for (const socket of this.#handshaking) {
      if (socket.remotePort !== remotePort || socket.remoteAddress !== remoteAddress) continue;
      this.#handshaking.delete(socket);
      return;
    }
  }
}

// A listener may have thousands of names, of which one is replaced.
function loadCertificates(tls: ServerTls, before?: Certificates): Certificates {
  const { minVersion, clientCertificates } = tls;
  const ca = clientCertificates?.ca;
  const isSame = before?.minVersion === minVersion && before?.ca === ca;
  const known = isSame ? before?.contexts : undefined;
  const contexts = new WeakMap<TlsIdentity, SecureContext>();
  const load = (identity: TlsIdentity): SecureContext => {
    const context = contexts.get(identity) ?? known?.get(identity) ?? loadContext(identity, tls);
    contexts.set(identity, context);
    return context;
  };
  const loadAll = (identities: ServerTls["names"]): Map<string, SecureContext> => {
    const loaded = new Map<string, SecureContext>();
    for (const [name, identity] of identities ?? []) loaded.set(name.toLowerCase(), load(identity));
    return loaded;
  };
  const names = loadAll(tls.names);
  const challenges = loadAll(tls.challenges);
  const fallback = tls.fallback === null ? null : load(tls.fallback);
  const { onUnknownName } = tls;
  return { fallback, names, challenges, onUnknownName, contexts, minVersion, ca };
}

function loadContext(identity: TlsIdentity, tls: ServerTls): SecureContext {
  const { clientCertificates } = tls;
  return createSecureContext({
    ...identityOptions(identity),
    minVersion: tls.minVersion ?? "TLSv1.2",
    sessionIdContext: nameSessions(tls),
    ...(clientCertificates === undefined ? {} : { ca: clientCertificates.ca }),
  });
}

function describeClientCertificates({ clientCertificates }: ServerTls): TlsOptions {
  if (clientCertificates === undefined) return {};
  const { mode, ca } = clientCertificates;
  return { requestCert: true, rejectUnauthorized: mode === "require", ca };
}

// Servers with equal keys of tickets resume each other's sessions, but not those of other rules for clients: OpenSSL takes a
// resumed session without a certificate for a verified one.
function nameSessions({ clientCertificates }: ServerTls): string {
  const { mode = "", ca = "" } = clientCertificates ?? {};
  return createHash("sha256").update(`${mode}\n`).update(ca).digest("hex").slice(0, 32);
}

/** 0 is no limit. */
function limitHandshake(ms: number): number {
  return ms === 0 ? 2_147_483_647 : ms;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function identityOptions(identity: TlsIdentity): { cert: string | Buffer; key: string | Buffer } {
  return { cert: identity.cert, key: identity.key };
}

/** The exact name, then `*` in place of its first label, then the fallback. */
function findContext(certificates: Certificates, serverName: string): SecureContext | null {
  const name = serverName.toLowerCase();
  const dot = name.indexOf(".");
  return (
    certificates.names.get(name) ??
    (dot === -1 ? undefined : certificates.names.get(`*${name.slice(dot)}`)) ??
    certificates.fallback
  );
}
