// The web console of the platform, on a listener of its own.
import { startFront, type Front } from "@platform/console";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import type { Tracer } from "@platform/kernel/trace";
import { GATE_VERSION, type GateConfig } from "../config/document.ts";

const FEATURES = ["routes", "canaries", "metrics", "api-keys", "policies", "reload"];
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
  "runtime:read",
  "runtime:manage",
];

/** Options of {@link startConsole}. */
export interface ConsoleOptions {
  config: GateConfig;
  /** Address of the gateway's own API. */
  own: { host: string; port: number };
  lifecycle: Pick<Lifecycle, "onDrain">;
  log: Logger;
  tracer: Tracer;
}

/** Starts the console; undefined without `console_addr`. */
export async function startConsole(options: ConsoleOptions): Promise<Front | undefined> {
  const { config, own, lifecycle, log: logger, tracer } = options;
  if (config.console_addr === undefined) return undefined;
  const { host = "::", port } = config.console_addr;
  const { auth_token: token, jwt_secret: secret, jwks_url: jwks } = config;
  const isOpen = token === undefined && secret === undefined && jwks === undefined;
  const others = config.console_services.map((text) => {
    const at = text.indexOf("=");
    return { id: text.slice(0, at) as "auth", url: new URL(text.slice(at + 1)) };
  });
  const front = await startFront({
    address: { host, port },
    url: config.console_url,
    targets: [{ id: "gate", url: formatOwnUrl(config, own) }, ...others],
    known: new Map([
      ["gate", { version: GATE_VERSION, features: FEATURES, credentials: isOpen ? null : "token" }],
    ]),
    identity: describeIdentity(config, others),
    version: GATE_VERSION,
    logger,
    tracer,
    clock: systemClock,
  }).catch(async (error: unknown) => {
    throw await explainListenError(
      error,
      { host, port },
      "--console-addr or PLATFORM_GATE_CONSOLE_ADDR",
    );
  });
  lifecycle.onDrain("console", (context) => front.close(context.remainingMs()));
  return front;
}

/** Reports its listener, if there is one. */
export function reportConsole(
  lifecycle: Pick<Lifecycle, "reportListener">,
  { console_addr: address }: GateConfig,
  front: Front | undefined,
): void {
  if (front === undefined || address === undefined) return;
  lifecycle.reportListener({ name: "console", host: address.host ?? "::", port: front.port });
}

function describeIdentity(
  config: GateConfig,
  services: readonly { id: string; url: URL }[],
): Parameters<typeof startFront>[0]["identity"] {
  const { console_issuer: issuer, console_client_id: clientId } = config;
  const { console_client_secret: clientSecret } = config;
  if (issuer === undefined) return undefined;
  if (clientSecret === undefined) throw new Error("console_issuer requires console_client_secret");
  // The public address may lead through a proxy that this machine does not reach.
  const internalUrl = services.find(({ id }) => id === "auth")?.url.origin;
  return { issuer, clientId, clientSecret, scopes: SCOPES, internalUrl };
}

function formatOwnUrl(config: GateConfig, { host, port }: ConsoleOptions["own"]): URL {
  const scheme = config.tls_cert === undefined ? "http" : "https";
  const isAny = host === "::" || host === "0.0.0.0";
  const name = isAny ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return new URL(`${scheme}://${name}:${port}`);
}
