// Checks that the ports of all services are free.
import { createServer } from "node:net";
import { formatAddress, type ListenAddress } from "@platform/kernel/config";
import { explainListenError } from "@platform/kernel/lifecycle";
import type { ServiceEntry } from "../services/entry.ts";

const PORTS = { first: 20_000, end: 32_768 };
/** Process ids of platforms that start concurrently are near each other, and 16 ports apart their searches begin. */
const PORTS_PER_PLATFORM = 16;
const ATTEMPTS_MAX = 1_000;

/**
 * Replaces port 0 by a free number, so that services know the addresses of others before those listen. Ports below the
 * system's ephemeral range are chosen, which connections and listeners of other programs do not take meanwhile; several
 * platforms that start concurrently begin at different ports. `taken` are ports that will be listened on.
 */
export async function choosePorts(
  entries: readonly { listeners: readonly { key: string }[] }[],
  addresses: Map<string, ListenAddress>,
  taken: readonly number[] = [],
): Promise<void> {
  const chosen = new Set(taken);
  for (const { key } of entries.flatMap((entry) => entry.listeners)) {
    const address = addresses.get(key);
    if (address?.port !== 0) continue;
    const free = await findFreeAddress(address, chosen);
    chosen.add(free.port);
    addresses.set(key, free);
  }
}

/**
 * Replaces a listener's default port by 0 if another program has it. For listeners that the operator has not asked for;
 * an address other than the default is a choice, and stays.
 */
export async function leaveDefaultPort(
  { key, default: text }: Pick<ServiceEntry["listeners"][number], "key" | "default">,
  addresses: Map<string, ListenAddress>,
): Promise<void> {
  const address = addresses.get(key);
  if (address === undefined || formatAddress(address) !== text) return;
  if ((await tryListen(address)) !== undefined) addresses.set(key, { ...address, port: 0 });
}

/** An address that cannot be listened on. */
export interface HeldPort {
  address: ListenAddress;
  /** The process that holds it, if it is known, and the flag that changes it. */
  message: string;
}

/** The addresses that cannot be listened on. */
export async function findHeldPorts(
  entries: readonly Pick<ServiceEntry, "listeners">[],
  addresses: ReadonlyMap<string, ListenAddress>,
): Promise<HeldPort[]> {
  const held: HeldPort[] = [];
  for (const { key } of entries.flatMap((entry) => entry.listeners)) {
    const address = addresses.get(key);
    if (address === undefined || address.port === 0) continue;
    const error = await tryListen(address);
    if (error === undefined) continue;
    const flag = `--${key.replaceAll("_", "-")}`;
    held.push({ address, message: (await explainListenError(error, address, flag)).message });
  }
  return held;
}

async function findFreeAddress(
  address: ListenAddress,
  chosen: ReadonlySet<number>,
): Promise<ListenAddress> {
  const count = PORTS.end - PORTS.first;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const port = PORTS.first + ((process.pid * PORTS_PER_PLATFORM + attempt) % count);
    const candidate = { ...address, port };
    if (!chosen.has(port) && (await tryListen(candidate)) === undefined) return candidate;
  }
  throw new Error(`no free port from ${PORTS.first} to ${PORTS.end - 1}`);
}

function tryListen({ host, port }: ListenAddress): Promise<Error | undefined> {
  return new Promise((done) => {
    const server = createServer();
    server.once("error", done);
    server.listen({ port, exclusive: true, ...(host === undefined ? {} : { host }) }, () => {
      server.close(() => done(undefined));
    });
  });
}
