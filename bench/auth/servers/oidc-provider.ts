// Starts `oidc-provider`, the protocol library of the identity service, alone and in memory.
import { createRequire } from "node:module";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import type { BenchContext, Workspace } from "../../harness/case.ts";
import { startPinned } from "../../harness/process.ts";

/** The only OAuth client registered at this server. */
export const BARE_CLIENT = { id: "bench", secret: "bench-secret-bench-secret" };

/** A running server. */
export interface BareServer {
  origin: string;
  pid: number;
  version: string;
}

/** Starts `oidc-provider-server.ts` on one core. */
export async function startBareServer(
  context: BenchContext,
  workspace: Workspace,
): Promise<BareServer> {
  const port = await findFreePort();
  const started = workspace.keep(
    startPinned({
      name: "oidc-provider",
      command: process.execPath,
      args: [new URL("oidc-provider-server.ts", import.meta.url).pathname, String(port)],
      cores: context.cores.test,
      env: { NODE_ENV: "production" },
    }),
  );
  await awaitPort(started, port);
  const entry = createRequire(import.meta.url).resolve("oidc-provider");
  const manifest = new URL("../package.json", `file://${entry}`);
  const { version } = createRequire(import.meta.url)(manifest.pathname) as { version: string };
  return { origin: `http://127.0.0.1:${port}`, pid: started.pid, version };
}
