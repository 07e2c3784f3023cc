// TLS listeners: certificates by server name, which can be replaced while connections stay open.
import type { Socket } from "node:net";
import {
  type SecureContext,
  type Server as NodeTlsServer,
  type TlsOptions,
  createSecureContext,
  createServer,
} from "node:tls";

import type { ServerFault, ServerTls, TlsIdentity } from "../contract/server.ts";

interface Certificates {
  readonly fallback: SecureContext | null;
  readonly names: ReadonlyMap<string, SecureContext>;
  /** Contexts by identity, which the next load uses for the same objects. */
  readonly contexts: WeakMap<TlsIdentity, SecureContext>;
  readonly minVersion: ServerTls["minVersion"];
  readonly ca: string | Buffer | undefined;
}

/** A TLS server with replaceable certificates. */
export class TlsListener {
  readonly listener: NodeTlsServer;
  #certificates: Certificates;
  /** Sockets during their handshake. */
  readonly #handshaking = new Set<Socket>();

  constructor(
    tls: ServerTls,
    handshakeMs: number,
    onSocket: (socket: Socket) => void,
    onFault: (fault: ServerFault) => void,
    onHandshakeEnd: () => void,
  ) {
    this.#certificates = loadCertificates(tls);
    const { clientCertificates } = tls;
    const options: TlsOptions = {
      allowHalfOpen: true,
      noDelay: true,
      handshakeTimeout: handshakeMs === 0 ? 2_147_483_647 : handshakeMs,
      ALPNProtocols: ["http/1.1"],
      minVersion: tls.minVersion ?? "TLSv1.2",
      ...(tls.fallback === null ? {} : identityOptions(tls.fallback)),
      ...(clientCertificates === undefined
        ? {}
        : {
            requestCert: true,
            rejectUnauthorized: clientCertificates.mode === "require",
            ca: clientCertificates.ca,
          }),
      SNICallback: (name, done) => {
        const context = findContext(this.#certificates, name);
        if (context === null) done(new Error("No certificate for this server name"));
        else done(null, context);
      },
    };
    this.listener = createServer(options, onSocket);
    this.#setTicketKeys(tls);
    this.listener.on("connection", (socket: Socket) => {
      this.#handshaking.add(socket);
      socket.once("close", () => {
        if (this.#handshaking.delete(socket)) onHandshakeEnd();
      });
    });
    this.listener.on("secureConnection", (socket) => {
      // The handshake of the raw socket is done; the TLS socket owns it now.
      this.#forgetHandshake(socket);
    });
    this.listener.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      onFault({
        kind: "tls-handshake",
        status: 0,
        code: error.code ?? "",
        remoteAddress: socket.remoteAddress ?? "",
      });
      socket.destroy();
    });
  }

  /** Number of connections in their handshake. */
  get handshakes(): number {
    return this.#handshaking.size;
  }

  /** Loads all certificates first: throws, without any change, if one is invalid. */
  replace(tls: ServerTls): void {
    const certificates = loadCertificates(tls, this.#certificates);
    this.#certificates = certificates;
    if (tls.fallback !== null) {
      const { clientCertificates } = tls;
      this.listener.setSecureContext({
        ...identityOptions(tls.fallback),
        minVersion: tls.minVersion ?? "TLSv1.2",
        ...(clientCertificates === undefined ? {} : { ca: clientCertificates.ca }),
      });
    }
    // The new context has keys of its own.
    this.#setTicketKeys(tls);
  }

  /** Destroys sockets whose handshake is not complete. */
  close(): void {
    for (const socket of this.#handshaking) socket.destroy();
  }

  // Bun lacks it, and has one thread.
  #setTicketKeys({ ticketKeys }: ServerTls): void {
    if (ticketKeys === undefined || process.versions["bun"] !== undefined) return;
    this.listener.setTicketKeys(Buffer.from(ticketKeys));
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
  const names = new Map<string, SecureContext>();
  for (const [name, identity] of tls.names ?? []) names.set(name.toLowerCase(), load(identity));
  const fallback = tls.fallback === null ? null : load(tls.fallback);
  return { fallback, names, contexts, minVersion, ca };
}

function loadContext(identity: TlsIdentity, tls: ServerTls): SecureContext {
  const { clientCertificates } = tls;
  return createSecureContext({
    ...identityOptions(identity),
    minVersion: tls.minVersion ?? "TLSv1.2",
    ...(clientCertificates === undefined ? {} : { ca: clientCertificates.ca }),
  });
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
