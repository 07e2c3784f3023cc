// Checks that a port is free before workers share it: with SO_REUSEPORT, a second gateway would start silently.
import { createServer } from "node:net";
import { explainListenError } from "@platform/kernel/lifecycle";

/** An address with its actual port. */
export interface BoundAddress {
  host: string;
  port: number;
}

/** All addresses of this machine, including IPv4 if IPv6 is available. */
const ANY_HOST = "::";

/**
 * Briefly binds the address exclusively and returns it with its actual port. If the address is in use or not local,
 * throws an Error that names the port, the process using it and `remedy`, the option that changes it.
 */
export async function probeListenAddress(
  address: { host: string | undefined; port: number },
  remedy: string,
): Promise<BoundAddress> {
  const hosts = address.host === undefined ? [ANY_HOST, "0.0.0.0"] : [address.host];
  let failure: unknown;
  for (const host of hosts) {
    try {
      return { host, port: await bindBriefly(host, address.port) };
    } catch (error) {
      failure = error;
      // Falls back to the IPv4 wildcard on machines without IPv6.
      if (!isAddressFamilyError(error)) break;
    }
  }
  throw await explainListenError(failure, address, remedy);
}

async function bindBriefly(host: string, port: number): Promise<number> {
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
