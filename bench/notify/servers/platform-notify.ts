// Our mail service in its default form: durable on SQLite.
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { askVersion } from "../../../tests/stage/program.ts";
import { findBin, findRuntime, type Build } from "../../harness/build.ts";
import type { Workspace } from "../../harness/case.ts";
import { startPinned } from "../../harness/process.ts";

const READY_TIMEOUT_MS = 30_000;
const DOMAIN = "bench.example";

/** A running service. */
export interface PlatformNotify {
  origin: string;
  pid: number;
  version: string;
  /** Port for inbound mail. */
  smtpPort: number;
}

/** Options of {@link startPlatformNotify}. */
export interface NotifyOptions {
  build: Build;
  cores: string;
  /** Additional variables. */
  env?: Record<string, string>;
}

/** Starts the service with a sending domain whose key signs. */
export async function startPlatformNotify(
  workspace: Workspace,
  { build, cores, env = {} }: NotifyOptions,
): Promise<PlatformNotify> {
  const [port, smtpPort] = [await findFreePort(), await findFreePort()];
  const origin = `http://127.0.0.1:${port}`;
  const started = workspace.keep(
    startPinned({
      name: `notify on ${build.label}`,
      command: process.execPath,
      args: [findBin(build, "platform-notify")],
      cores,
      env: {
        PLATFORM_RUNTIME: build.runtime,
        PLATFORM_NOTIFY_ADDR: `127.0.0.1:${port}`,
        PLATFORM_NOTIFY_DATA_DIR: join(workspace.folder, `notify, ${build.label}`),
        PLATFORM_NOTIFY_FROM_DOMAIN: DOMAIN,
        PLATFORM_NOTIFY_INBOUND_PORT: String(smtpPort),
        PLATFORM_NOTIFY_INBOUND_HOST: "127.0.0.1",
        PLATFORM_NOTIFY_LOG_LEVEL: "warn",
        ...env,
      },
    }),
  );
  await awaitPort(started, port);
  await waitUntilReady(origin);
  await activateKey(origin);
  const version = askVersion(findRuntime(build.runtime), ["--version"]);
  return { origin, pid: started.pid, version, smtpPort };
}

/** Sends a request with a JSON body; rejects unless it succeeds. */
export async function request(
  url: string,
  method: string,
  body?: unknown,
): Promise<Record<string, unknown>> {
  const answer = await fetch(url, {
    method,
    ...(body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`);
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}

async function activateKey(origin: string): Promise<void> {
  const url = `${origin}/api/v1/domains/${DOMAIN}`;
  const { keys } = (await request(url, "GET")) as unknown as { keys: { selector: string }[] };
  await request(`${url}/keys/${keys[0]!.selector}/activate`, "POST");
}

async function waitUntilReady(origin: string): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!(await fetch(`${origin}/readyz`)).ok) {
    if (Date.now() > deadline) throw new Error("platform-notify does not get ready");
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
