// better-auth with its OAuth provider in its fastest configuration: in memory, with its own caches.
import { readFileSync } from "node:fs";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import type { BenchContext, Workspace } from "../../harness/case.ts";
import { startPinned } from "../../harness/process.ts";

/** The client of the server. */
export const BETTER_AUTH_CLIENT = { id: "bench", secret: "bench-secret-bench-secret" };

/** The requested resource, without which tokens are opaque and stored instead of signed. */
export const BETTER_AUTH_RESOURCE = "http://127.0.0.1/bench";

/** A running server. */
export interface BetterAuthServer {
  origin: string;
  pid: number;
  version: string;
}

/** Starts `better-auth-server.ts` on one core. */
export async function startBetterAuth(
  context: BenchContext,
  workspace: Workspace,
): Promise<BetterAuthServer> {
  const port = await findFreePort();
  const started = workspace.keep(
    startPinned({
      name: "better-auth",
      command: process.execPath,
      args: [new URL("better-auth-server.ts", import.meta.url).pathname, String(port)],
      cores: context.cores.test,
      env: { NODE_ENV: "production" },
    }),
  );
  await awaitPort(started, port);
  const manifest = new URL("../package.json", import.meta.resolve("better-auth"));
  const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
  return { origin: `http://127.0.0.1:${port}`, pid: started.pid, version };
}
