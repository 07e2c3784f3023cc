// The web console of the platform, on a listener of its own or on the gateway's.
import { join } from "node:path";
import { startFront, type Front, type FrontOptions } from "@platform/console";
import { EVERY_SCOPE } from "@platform/kernel/identity";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { loadSecretFile, parseEncryptionKeys, type LiveSecret } from "@platform/kernel/secrets";
import { systemClock } from "@platform/kernel/time";
import type { Tracer } from "@platform/kernel/trace";
import { GATE_VERSION, type GateConfig, usesTls } from "../config/document.ts";
import type { LoadedGate } from "../config/load.ts";
import { getStateFolder } from "../config/state-folder.ts";
import { CONSOLE_CLIENT_HEADER, type ConsoleSpec } from "../shared-state/index.ts";
import type { ControlAddress } from "./control-server.ts";

const FEATURES = [
  "routes",
  "canaries",
  "metrics",
  "api-keys",
  "policies",
  "reload",
  "cache",
  "models",
];
/** Scopes that the console asks for; identity issues those that the user may have. */
const SCOPES = [
  "openid",
  "profile",
  "offline_access",
  "users:read",
  "users:write",
  "sessions:read",
  "sessions:write",
  "rbac:read",
  "rbac:write",
  "clients:read",
  "clients:write",
  "keys:write",
  "audit:read",
  "metrics:read",
  "pulse:publish",
  "pulse:subscribe",
  "pulse:manage",
  "vault:read",
  "vault:write",
  "notify:send",
  "notify:manage",
  "notify:read",
  "tunnel:open",
  "tunnel:admin",
  "tunnel:read",
  "gate:read",
  "gate:admin",
  "runtime:read",
  "runtime:manage",
  "data:read",
  "data:edit",
  "data:query",
  "pulse:read",
  // Of administrators: without `*:*` they would see the pages of a user.
  "pulse:admin",
  "vault:admin",
  EVERY_SCOPE,
];

/** Names of this machine: the default address of the console is one of them, to which the others lead. */
const LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"];
/** The key of sessions in Redis, if none is configured. */
const SECRETS_FILE = "console-secrets.json";

/** Options of {@link startConsole}. */
export interface ConsoleOptions {
  loaded: LoadedGate;
  /** Address of the main listener. */
  main: { port: number };
  /** Address of the gateway's own API, and whether it has TLS. */
  own: { host: string; port: number; isSecure: boolean };
  /** Socket of a console on the main listener. */
  socketPath: string;
  lifecycle: Pick<Lifecycle, "followSecret" | "onDrain">;
  log: Logger;
  tracer: Tracer;
}

/** Starts the console; undefined without `console_addr`. */
export async function startConsole(options: ConsoleOptions): Promise<Front | undefined> {
  const { loaded, own, lifecycle, log: logger, tracer } = options;
  const { config } = loaded;
  if (config.console_addr === undefined) return undefined;
  const { auth_token: token, jwt_secret: secret, jwks_url: jwks } = config;
  const isOpen = token === undefined && secret === undefined && jwks === undefined;
  const others = config.console_services.map((text) => {
    const at = text.indexOf("=");
    return { id: text.slice(0, at) as "auth", url: new URL(text.slice(at + 1)) };
  });
  const front = await startFront({
    ...describePlace(config.console_addr, options),
    targets: [{ id: "gate", url: formatOwnUrl(own) }, ...others],
    known: new Map([
      ["gate", { version: GATE_VERSION, features: FEATURES, credentials: isOpen ? null : "token" }],
    ]),
    shared: describeShared(loaded),
    identity: describeIdentity(config, others, (secret) =>
      lifecycle.followSecret("PLATFORM_CONSOLE_SECRET", secret),
    ),
    version: GATE_VERSION,
    logger,
    tracer,
    clock: systemClock,
  }).catch(async (error: unknown) => {
    if (config.console_addr === "shared" || config.console_addr === undefined) throw error;
    const { host, port } = config.console_addr;
    const setting = "--console-addr or PLATFORM_GATE_CONSOLE_ADDR";
    throw await explainListenError(error, { host, port }, setting);
  });
  lifecycle.onDrain("console", (context) => front.close(context.remainingMs()));
  return front;
}

/** The console on the main listener; undefined if it has a listener of its own, or there is none. */
export function describeSharedConsole(
  { console_addr: address, console_url: url }: GateConfig,
  { consolePath: socketPath }: Pick<ControlAddress, "consolePath">,
): ConsoleSpec | undefined {
  if (address !== "shared") return undefined;
  return url === undefined
    ? { socketPath, hosts: LOOPBACK_HOSTS, ownsHosts: false }
    : { socketPath, hosts: [new URL(url).hostname], ownsHosts: true };
}

/** Reports its listener, if it has one of its own. */
export function reportConsole(
  lifecycle: Pick<Lifecycle, "reportListener">,
  front: Front | undefined,
): void {
  if (front?.host === undefined || front.port === undefined) return;
  lifecycle.reportListener({ name: "console", host: front.host, port: front.port });
}

function describePlace(
  address: NonNullable<GateConfig["console_addr"]>,
  { loaded: { config }, main, socketPath }: ConsoleOptions,
): Pick<FrontOptions, "address" | "url" | "clientHeader"> {
  const { console_url: url } = config;
  if (address !== "shared") {
    return { address, url };
  }
  const scheme = usesTls(config) ? "https" : "http";
  return {
    address: { path: socketPath },
    url: url ?? `${scheme}://localhost:${main.port}`,
    clientHeader: CONSOLE_CLIENT_HEADER,
  };
}

function describeShared({ config, path }: LoadedGate): FrontOptions["shared"] {
  const { console_redis_url: redisUrl, console_encryption_keys: keys, data_dir: folder } = config;
  if (redisUrl === undefined) return undefined;
  const file = join(getStateFolder(folder, path), SECRETS_FILE);
  const text = keys ?? loadSecretFile(file, ["encryption"]).encryption;
  return { redisUrl, encryptionKeys: parseEncryptionKeys("gate_console", text) };
}

function describeIdentity(
  config: GateConfig,
  services: readonly { id: string; url: URL }[],
  follow: (secret: string) => LiveSecret,
): FrontOptions["identity"] {
  const { console_issuer: issuer, console_client_id: clientId } = config;
  const { console_client_secret: secret } = config;
  if (issuer === undefined) return undefined;
  if (secret === undefined) throw new Error("console_issuer requires console_client_secret");
  const clientSecret = follow(secret);
  // The public address may lead through a proxy that this machine does not reach.
  const internalUrl = services.find(({ id }) => id === "auth")?.url.origin;
  return { issuer, clientId, clientSecret, scopes: SCOPES, internalUrl };
}

function formatOwnUrl({ host, port, isSecure }: ConsoleOptions["own"]): URL {
  const scheme = isSecure ? "https" : "http";
  const isAny = host === "::" || host === "0.0.0.0";
  const name = isAny ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return new URL(`${scheme}://${name}:${port}`);
}
