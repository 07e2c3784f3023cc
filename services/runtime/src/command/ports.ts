// Checks that the ports of all services are free.
import { createServer } from "node:net";
import type { ListenAddress } from "@platform/kernel/config";
import { explainListenError } from "@platform/kernel/lifecycle";
import type { ServiceEntry } from "../services/entry.ts";

/** Throws one error that lists all ports in use, with the process that holds each and the flag that changes it. */
export async function probePorts(
  entries: readonly ServiceEntry[],
  addresses: ReadonlyMap<string, ListenAddress>,
): Promise<void> {
  const problems = await findPortProblems(entries, addresses);
  if (problems.length > 0) throw new Error(problems.join("\n"));
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

function tryListen({ host, port }: ListenAddress): Promise<Error | undefined> {
  return new Promise((done) => {
    const server = createServer();
    server.once("error", done);
    server.listen({ port, exclusive: true, ...(host === undefined ? {} : { host }) }, () => {
      server.close(() => done(undefined));
    });
  });
}
