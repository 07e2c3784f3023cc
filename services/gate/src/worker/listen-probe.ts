// Claims a port before workers share it: with SO_REUSEPORT, a second gateway would start silently.
import { once } from "node:events";
import { createServer } from "node:net";
import { ConfigError } from "@platform/kernel/config";
import { explainListenError } from "@platform/kernel/lifecycle";

/** An address with its actual port. */
export interface BoundAddress {
  host: string;
  port: number;
}

/** All addresses of this machine, including IPv4 if IPv6 is available. */
const ANY_HOST = "::";
const ATTEMPTS_MAX = 10;

/** An address that no other gateway can take until it is released. */
export interface ClaimedAddress {
  address: BoundAddress;
  release: () => void;
}

/**
 * Finds the actual port of an address and claims it. If the address is in use or not local, throws an Error that names
 * the port, the process using it and `remedy`, the option that changes it.
 */
export async function claimListenAddress(
  wanted: { host: string | undefined; port: number },
  remedy: string,
): Promise<ClaimedAddress> {
  for (let attempt = 1; ; attempt += 1) {
    const address = await probeListenAddress(wanted, remedy);
    const claim = await claimAddress(address);
    if (claim !== undefined) return { address, release: claim };
    // Any free port will do, but another gateway was given the same one and has not bound it yet.
    if (wanted.port === 0 && attempt < ATTEMPTS_MAX) continue;
    throw await explainListenError(createInUseError(address), wanted, remedy);
  }
}

/** Briefly binds the address exclusively and returns it with its actual port. */
async function probeListenAddress(
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
  if (readCode(failure) === "EACCES") throw explainMissingRight(address.port, remedy);
  throw await explainListenError(failure, address, remedy);
}

/** The configuration error of a port that only privileged programs may open. */
function explainMissingRight(port: number, remedy: string): ConfigError {
  const ways = [
    `setcap cap_net_bind_service=+ep ${process.execPath}`,
    "AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit of systemd",
    `another port with ${remedy}`,
  ];
  const message = `this user may not listen on port ${port}; allow it by ${ways.join(", or ")}`;
  return new ConfigError([{ source: "configuration", path: "", message }]);
}

/**
 * Between the probe and the workers' sockets, which share the port, a gateway that starts at the same moment would
 * pass its own probe. An abstract socket named after the address excludes it; the kernel releases it with the process.
 * Only Linux has them. Returns undefined if another gateway holds the address.
 */
async function claimAddress({ host, port }: BoundAddress): Promise<(() => void) | undefined> {
  if (process.platform !== "linux") return () => undefined;
  const claim = createServer().unref();
  try {
    await once(claim.listen(`\0platform-gate ${host} ${port}`), "listening");
  } catch (error) {
    // A sandbox without Unix sockets leaves the probe as the only check.
    return isInUse(error) ? undefined : () => undefined;
  }
  return () => void claim.close();
}

function createInUseError({ host, port }: BoundAddress): Error {
  return Object.assign(new Error(`listen EADDRINUSE: address already in use ${host}:${port}`), {
    code: "EADDRINUSE",
    address: host,
    port,
  });
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
  const code = readCode(error);
  return code === "EAFNOSUPPORT" || code === "EADDRNOTAVAIL";
}

function isInUse(error: unknown): boolean {
  return readCode(error) === "EADDRINUSE";
}

function readCode(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
