// A gateway with automatic certificates beside pebble.
import { once } from "node:events";
import type { TestContext } from "node:test";
import { type ConnectionOptions, connect, type PeerCertificate } from "node:tls";
import { findFreePort } from "@platform/kernel/testing";
import { type Pebble, startPebble } from "@platform/testing/pebble";
import {
  type GateProcess,
  makeFolder,
  type Runtime,
  runtimes,
  startGate,
} from "../../../services/gate/test/fixture/gate-process.ts";

export { createCleanup } from "@platform/testing/cleanup";
export { type GateProcess };

type Context = Pick<TestContext, "after">;

/** A directory with the folder and the configuration of a gateway. */
export interface Edge {
  pebble: Pebble;
  folder: string;
  config: Record<string, unknown>;
  port: number;
  plainPort: number;
}

/** Starts pebble, which validates at the ports of the configuration. */
export async function prepareEdge(
  context: Context,
  options: Partial<Parameters<typeof startPebble>[0]> = {},
): Promise<Edge> {
  const folder = options.folder ?? makeFolder(context);
  const [port, plainPort] = [await findFreePort(), await findFreePort()];
  const pebble = await startPebble({ folder, tlsPort: port, httpPort: plainPort, ...options });
  context.after(() => pebble.stop());
  const config = {
    addr: `127.0.0.1:${port}`,
    http_addr: `127.0.0.1:${plainPort}`,
    workers: 2,
    auto_tls: true,
    auto_tls_domain: ["one.test"],
    acme_directory_url: pebble.directoryUrl,
    acme_ca: pebble.caPath,
  };
  return { pebble, folder, config, port, plainPort };
}

/** A folder that is removed when the test ends. */
export const makeEdgeFolder = (context: Context): string => makeFolder(context);

/** Starts a gateway; `more` is added to its configuration. */
export const startEdge = (
  context: Context,
  { folder, config }: Edge,
  more: object = {},
  runtime: Runtime = runtimes[0]!,
) => startGate(context, { runtime, folder, config: { ...config, ...more } });

/** Undefined if Bun is not installed (`tools/install-peers bun`). */
export const bun = runtimes.find(({ name }) => name === "bun");

/** The certificate of a name. Rejects if the handshake fails. */
export async function readPeer(
  port: number,
  servername: string,
  ca: string,
): Promise<PeerCertificate> {
  const options: ConnectionOptions = { host: "127.0.0.1", port, servername, ca };
  const socket = connect(options);
  try {
    await once(socket, "secureConnect");
    return socket.getPeerCertificate();
  } finally {
    socket.destroy();
  }
}
