// The connection of the other services to identity: keys, issuer, audience and revocations of its tokens.
import { isIP } from "node:net";
import { formatConsoleUrl } from "./console.ts";
import { formatInternalUrl, getAddress, isRunning, type EntryContext } from "./entry.ts";
import { RUNTIME_KEY } from "./runtime.ts";

/** Credential of the services that follow identity's revocation feed. */
export const REVOCATIONS_TOKEN = "PLATFORM_REVOCATIONS_TOKEN";

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns identity's public URL, which is the issuer of its tokens. */
export function formatIssuer(context: EntryContext, env: Environment): string {
  const chosen = env["PLATFORM_AUTH_PUBLIC_URL"];
  if (chosen !== undefined && chosen !== "") return chosen.replace(/\/$/, "");
  const { domain } = context;
  if (domain !== undefined) return `https://identity.${domain}`;
  return `http://localhost:${getAddress(context, "identity_addr").port}`;
}

/** Tenant of users and applications that have no other: messaging refuses tokens without a tenant. */
export function chooseTenant(env: Environment): string {
  return env["PLATFORM_AUTH_DEFAULT_TENANT"] || "main";
}

/** Services whose APIs the console calls, besides the gateway's. */
const IN_CONSOLE: ReadonlySet<string> = new Set(["auth", "vault", "pulse", "notify", "tunnel"]);

/** Environment of the web console: the services of this `up`, and its client at identity. */
export function wireConsole(
  secret: string,
  context: EntryContext,
  env: Environment,
): Record<string, string> {
  const services = context.running.flatMap(({ name, probes, listeners }) => {
    const key = listeners.find((listener) => listener.name === probes)?.key;
    // The gateway knows its own address; the sample and the project's services are no services of the platform.
    if (key === undefined || !IN_CONSOLE.has(name)) return [];
    return [`${name}=${formatInternalUrl(getAddress(context, key))}`];
  });
  const runtime = `runtime=${formatInternalUrl(getAddress(context, RUNTIME_KEY))}`;
  return {
    PLATFORM_GATE_CONSOLE_SERVICES: [...services, runtime].join(","),
    PLATFORM_GATE_CONSOLE_URL: formatConsoleUrl(context),
    ...(isRunning("auth", context)
      ? {
          PLATFORM_GATE_CONSOLE_ISSUER: formatIssuer(context, env),
          PLATFORM_GATE_CONSOLE_CLIENT_SECRET: secret,
        }
      : {}),
  };
}

/**
 * Environment with which a service accepts identity's tokens. It reads keys and revocations from identity itself, not
 * through the gateway. Empty if identity does not run, or if the operator has chosen another issuer.
 */
export function wireIdentity(
  service: "gate" | "notify" | "pulse" | "runtime" | "service" | "tunnel" | "vault",
  context: EntryContext,
  env: Environment,
): Record<string, string> {
  const prefix = `PLATFORM_${service.toUpperCase()}`;
  const isChosen = [`${prefix}_JWKS_URL`, "PLATFORM_JWKS_URL"].some((name) => env[name]);
  if (isChosen || !isRunning("auth", context)) return {};
  const address = getAddress(context, "identity_addr");
  if (address.port === 0) throw new Error(`identity must be started before ${service}`);
  const url = formatInternalUrl(address);
  return {
    [`${prefix}_JWKS_URL`]: `${url}/.well-known/jwks.json`,
    [`${prefix}_JWT_ISSUER`]: formatIssuer(context, env),
    [`${prefix}_JWT_AUDIENCE`]: env["PLATFORM_AUTH_AUDIENCE"] || "platform",
    [`${prefix}_REVOCATIONS_URL`]: `${url}/api/v1/auth/revocations`,
    [`${prefix}_REVOCATIONS_TOKEN`]: context.credentials[REVOCATIONS_TOKEN] ?? "",
  };
}

/**
 * Environment with which a service trusts the client addresses that the local gateway forwards. Otherwise all clients
 * behind it would share its address, and the limits per address. Trusted is the one address that the gateway's connections
 * have: the system uses the address of a local target as the source. Other programs of this machine may have it, too; they
 * run as trusted as the platform does.
 */
export function trustGateway(
  service: "auth" | "vault",
  keys: readonly string[],
  context: EntryContext,
  env: Environment,
): Record<string, string> {
  const name = `PLATFORM_${service.toUpperCase()}_TRUSTED_PROXIES`;
  if (env[name] !== undefined || !isRunning("gate", context)) return {};
  const sources = keys.flatMap((key) => {
    const { hostname } = new URL(formatInternalUrl(getAddress(context, key)));
    const address = hostname.replace(/^\[|\]$/g, "");
    // A name, such as localhost, is resolved by the gateway.
    return isIP(address) === 0 ? ["127.0.0.1", "::1"] : [address];
  });
  return { [name]: [...new Set(sources)].join(",") };
}
