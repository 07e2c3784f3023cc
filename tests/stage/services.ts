// The six services as processes of their own, on free ports of all addresses, with data in a folder.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type StagedProcess, stageProcess } from "./process.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NODE = join(ROOT, "node_modules/.bin/node");
const START_MS = 180_000;

/** Credentials of identity's administrator and of storage's root. */
export const SECRETS = {
  user: "ada",
  password: "correct horse 7 battery",
  key: "root",
  secret: "q".repeat(40),
};

/** A service that runs. */
export interface StagedService {
  readonly name: string;
  readonly process: StagedProcess;
  /** Addresses by the names of listeners. */
  readonly listeners: ReadonlyMap<string, { host: string; port: number }>;
}

interface Description {
  bin: string;
  args?: readonly string[];
  env: (folder: string) => Record<string, string>;
}

const ANY = ":0";

/** Names of services and how they start. */
const SERVICES: Readonly<Record<string, Description>> = {
  gateway: {
    bin: "platform-gate",
    args: ["--config", "gate.json"],
    env: () => ({
      PLATFORM_GATE_ADDR: ANY,
      PLATFORM_GATE_ADMIN_ADDR: ANY,
      PLATFORM_GATE_CONSOLE_ADDR: ANY,
    }),
  },
  identity: {
    bin: "platform-auth",
    env: (folder) => ({
      PLATFORM_AUTH_ADDR: ANY,
      PLATFORM_AUTH_DATA_DIR: folder,
      PLATFORM_AUTH_ADMIN_USER: SECRETS.user,
      PLATFORM_AUTH_ADMIN_PASSWORD: SECRETS.password,
    }),
  },
  mail: {
    bin: "platform-notify",
    env: (folder) => ({
      PLATFORM_NOTIFY_ADDR: ANY,
      PLATFORM_NOTIFY_DATA_DIR: folder,
      PLATFORM_NOTIFY_INBOUND_PORT: "0",
    }),
  },
  tunnel: {
    bin: "platform-tunnel",
    args: ["server"],
    env: (folder) => ({ PLATFORM_TUNNEL_ADDR: ANY, PLATFORM_TUNNEL_DATA_DIR: folder }),
  },
  storage: {
    bin: "platform-vaultd",
    env: (folder) => ({
      PLATFORM_VAULT_ADDR: ANY,
      PLATFORM_VAULT_ADMIN_ADDR: ANY,
      PLATFORM_VAULT_DATA_DIR: folder,
      STORE_ACCESS_KEY_ID: SECRETS.key,
      STORE_SECRET_ACCESS_KEY: SECRETS.secret,
    }),
  },
  messaging: {
    bin: "platform-pulse",
    env: (folder) => ({
      PLATFORM_PULSE_HTTP_ADDR: ANY,
      PLATFORM_PULSE_KAFKA_ADDR: ANY,
      PLATFORM_PULSE_MQTT_ADDR: ANY,
      PLATFORM_PULSE_STOMP_ADDR: ANY,
      PLATFORM_PULSE_DATA_DIR: folder,
    }),
  },
};

/** Names of the services. */
export const SERVICE_NAMES: readonly string[] = Object.keys(SERVICES);

/** Starts a service with its data in `folder`; `launcher` is a command in front of the program. */
export async function stageService(
  name: string,
  folder: string,
  launcher: readonly string[] = [],
): Promise<StagedService> {
  const { bin, args = [], env } = SERVICES[name]!;
  const cwd = join(folder, `${name}-cwd`);
  mkdirSync(cwd);
  writeFileSync(join(cwd, "gate.json"), "{}");
  const [command, ...words] = [...launcher, NODE, join(ROOT, "bin", `${bin}.js`), ...args];
  const process = stageProcess({
    name,
    command: command!,
    args: words,
    env: { PLATFORM_LOG_FORMAT: "json", ...env(join(folder, name)) },
    cwd,
  });
  for (const endsMs = performance.now() + START_MS; ; await sleep(20)) {
    const listeners = findListeners(process.readOutput());
    if (listeners !== undefined) return { name, process, listeners };
    if (!process.hasExited() && performance.now() < endsMs) continue;
    await process.stop();
    throw new Error(`${name} does not start: ${process.readOutput()}`);
  }
}

function findListeners(output: string): StagedService["listeners"] | undefined {
  const line = output.split("\n").find((one) => one.includes('"msg":"ready"') && one.endsWith("}"));
  if (line === undefined) return undefined;
  const { listeners } = JSON.parse(line) as {
    listeners: { name: string; host: string; port: number }[];
  };
  return new Map(listeners.map(({ name, host, port }) => [name, { host, port }]));
}
