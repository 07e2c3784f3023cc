// This service in its default form: durable on SQLite, ES256, with a client registered over its API.
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { findBin, OURS_ON_NODE, REPOSITORY } from "../../harness/build.ts";
import type { BenchContext, Workspace } from "../../harness/case.ts";
import { startPinned } from "../../harness/process.ts";

const READY_TIMEOUT_MS = 30_000;
const ADMIN = { username: "bench", password: "correct horse battery staple" };

/** A running service and its client. */
export interface PlatformAuth {
  origin: string;
  pid: number;
  clientId: string;
  clientSecret: string;
}

/** Starts this checkout and, if asked, the earlier one; the default runtime alone is measured. */
export async function startBuilds(
  context: BenchContext,
  workspace: Workspace,
): Promise<(PlatformAuth & { suffix: string })[]> {
  const started = [];
  for (const build of context.builds.filter(({ runtime }) => runtime === "node")) {
    const suffix = build.folder === REPOSITORY ? "" : " (before)";
    started.push({ ...(await startPlatformAuth(context, workspace, { build })), suffix });
  }
  return started;
}

/** Starts the service, by default on one core, and registers the client. */
export async function startPlatformAuth(
  context: BenchContext,
  workspace: Workspace,
  { cores = context.cores.test, build = OURS_ON_NODE } = {},
): Promise<PlatformAuth> {
  const port = await findFreePort();
  const origin = `http://127.0.0.1:${port}`;
  const started = workspace.keep(
    startPinned({
      name: "platform-auth",
      command: process.execPath,
      args: [findBin(build, "platform-auth")],
      cores,
      env: {
        // The benchmark registers its accounts from one address.
        PLATFORM_AUTH_REGISTRATIONS_PER_ADDRESS_HOURLY: "1000000",
        PLATFORM_AUTH_REGISTRATIONS_PER_NETWORK_HOURLY: "1000000",
        PLATFORM_AUTH_ADDR: `127.0.0.1:${port}`,
        PLATFORM_AUTH_PUBLIC_URL: origin,
        PLATFORM_AUTH_DATA_DIR: join(workspace.folder, `auth, ${build.label}`),
        PLATFORM_AUTH_JWT_ALGORITHM: "ES256",
        PLATFORM_AUTH_ADMIN_USER: ADMIN.username,
        PLATFORM_AUTH_ADMIN_PASSWORD: ADMIN.password,
        PLATFORM_AUTH_LOG_LEVEL: "warn",
      },
    }),
  );
  await awaitPort(started, port);
  await waitUntilReady(origin);
  const login = await post(`${origin}/api/auth/login`, ADMIN);
  const client = await post(
    `${origin}/api/v1/auth/clients`,
    { redirect_uris: [], response_types: [], grant_types: ["client_credentials"], scope: "openid" },
    String(login["access_token"]),
  );
  return {
    origin,
    pid: started.pid,
    clientId: String(client["client_id"]),
    clientSecret: String(client["client_secret"]),
  };
}

async function waitUntilReady(origin: string): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!(await fetch(`${origin}/readyz`)).ok) {
    if (Date.now() > deadline) throw new Error("platform-auth does not get ready");
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

async function post(url: string, body: unknown, token?: string): Promise<Record<string, unknown>> {
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}
