// Finds out whether a port is free before workers share it: with SO_REUSEPORT a second gateway would start silently.
import { createServer } from "node:net";
import { explainListenError } from "@platform/kernel/lifecycle";

/** A place to listen at; the port is the real one. */
export interface ListenPlace {
  host: string;
  port: number;
}

/** Every address of this machine, IPv4 included where IPv6 is there. */
export const ANY_HOST = "::";

/**
 * Binds the address for a moment, alone, and resolves with its real port. Throws an Error that names port, holder and
 * `remedy`, the option that changes it, where the address is taken or not this machine's.
 */
export async function probeListenAddress(
  address: { host: string | undefined; port: number },
  remedy: string,
): Promise<ListenPlace> {
  const hosts = address.host === undefined ? [ANY_HOST, "0.0.0.0"] : [address.host];
  let failure: unknown;
  for (const host of hosts) {
    try {
      return { host, port: await bindForAMoment(host, address.port) };
    } catch (error) {
      failure = error;
      // Without IPv6 the wildcard is IPv4's.
      if (!isAddressFamilyError(error)) break;
    }
  }
  throw await explainListenError(failure, address, remedy);
}

async function bindForAMoment(host: string, port: number): Promise<number> {
  const server = createServer();
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject);
  server.listen({ host, port, exclusive: true }, listening.resolve);
  await listening.promise;
  const address = server.address();
  const closed = Promise.withResolvers<void>();
  server.close(() => closed.resolve());
  await closed.promise;
  return typeof address === "object" && address !== null ? address.port : port;
}

function isAddressFamilyError(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EAFNOSUPPORT" || code === "EADDRNOTAVAIL";
}
