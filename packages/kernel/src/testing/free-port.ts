// Ports for programs that cannot choose one themselves, or whose address must be known before they listen.
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** Below the system's ephemeral range, which connections use, and below the range of `platform up`. */
const PORTS = { first: 10_000, end: 20_000 };
const ATTEMPTS_MAX = 200;

/** Claims of this process; released by its end, however it ends. */
const claims: Server[] = [];

/**
 * A port of 127.0.0.1 that nobody uses and that no other process gets from this function while this process runs.
 * Otherwise two test files could start servers on one port; gateways would even share it (SO_REUSEPORT).
 */
export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const port = randomInt(PORTS.first, PORTS.end);
    const claim = await claimPort(port);
    if (claim === undefined) continue;
    if (await isFree(port)) {
      claims.push(claim);
      return port;
    }
    claim.close();
  }
  throw new Error(`no free port from ${PORTS.first} to ${PORTS.end - 1}`);
}

/** Takes an abstract socket named after the port; undefined if another process has it. */
async function claimPort(port: number): Promise<Server | undefined> {
  const claim = createServer().unref();
  if (process.platform !== "linux") return claim;
  try {
    await once(claim.listen(`\0platform-test-port-${port}`), "listening");
    return claim;
  } catch {
    return undefined;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen({ host: "127.0.0.1", port, exclusive: true }), "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
