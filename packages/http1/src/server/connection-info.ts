// Reads the properties of a client from its socket.
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

import type { ConnectionInfo, TlsInfo } from "../contract/exchange.ts";

const MAPPED = "::ffff:";

/** Reads the addresses, which are not available after the socket has closed. */
export function readConnectionInfo(socket: Socket): ConnectionInfo {
  return {
    remoteAddress: plainAddress(socket.remoteAddress ?? ""),
    remotePort: socket.remotePort ?? 0,
    localAddress: plainAddress(socket.localAddress ?? ""),
    localPort: socket.localPort ?? 0,
    secure: socket instanceof TLSSocket,
    tls: socket instanceof TLSSocket ? readTlsInfo(socket) : null,
  };
}

function readTlsInfo(socket: TLSSocket): TlsInfo {
  const certificate = socket.getPeerCertificate();
  const hasCertificate = Object.keys(certificate ?? {}).length > 0;
  const name = (socket as TLSSocket & { servername?: string | false }).servername;
  return {
    serverName: typeof name === "string" ? name.toLowerCase() : "",
    protocol: socket.getProtocol() ?? "",
    clientCertificate: socket.authorized && hasCertificate ? certificate : null,
  };
}

function plainAddress(address: string): string {
  return address.startsWith(MAPPED) && address.includes(".")
    ? address.slice(MAPPED.length)
    : address;
}
