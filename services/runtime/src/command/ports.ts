// Checks that the ports of all services are free.
import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import type { ListenAddress } from "@platform/kernel/config";
import { explainListenError } from "@platform/kernel/lifecycle";
import type { ServiceEntry } from "../services/entry.ts";

const PORTS = { first: 20_000, end: 32_768 };
const ATTEMPTS_MAX = 100;

/** Throws one error that lists all ports in use, with the process that holds each and the flag that changes it. */
export async function probePorts(
  entries: readonly ServiceEntry[],
  addresses: ReadonlyMap<string, ListenAddress>,
): Promise<void> {
  const problems = await findPortProblems(entries, addresses);
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

/**
 * Replaces port 0 by a free number where services need the address before its owner listens. Ports below the system's
 * ephemeral range are chosen, which connections and listeners of other programs do not take meanwhile.
 */
export async function choosePorts(
  entries: readonly ServiceEntry[],
  addresses: Map<string, ListenAddress>,
): Promise<void> {
  for (const { key, isKnownEarly } of entries.flatMap((entry) => entry.listeners)) {
    const address = addresses.get(key);
    if (address?.port !== 0 || isKnownEarly !== true) continue;
    addresses.set(key, await findFreeAddress(address));
  }
}

/** One line per port that is not free. */
export async function findPortProblems(
  entries: readonly ServiceEntry[],
  addresses: ReadonlyMap<string, ListenAddress>,
): Promise<string[]> {
  const problems: string[] = [];
  for (const { key } of entries.flatMap((entry) => entry.listeners)) {
    const address = addresses.get(key);
    if (address === undefined || address.port === 0) continue;
    const error = await tryListen(address);
    if (error === undefined) continue;
    const flag = `--${key.replaceAll("_", "-")}`;
    problems.push((await explainListenError(error, address, flag)).message);
  }
  return problems;
}

async function findFreeAddress(address: ListenAddress): Promise<ListenAddress> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const candidate = { ...address, port: randomInt(PORTS.first, PORTS.end) };
    if ((await tryListen(candidate)) === undefined) return candidate;
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
