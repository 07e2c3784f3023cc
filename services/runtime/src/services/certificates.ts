// Certificates of `platform up --auto-tls`: the gateway obtains them, and the other services read the files that it writes.
import { existsSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { formatAddress, parseJson } from "@platform/kernel/config";
import { formatConsoleUrl, isConsoleShared } from "./console.ts";
import {
  formatHost,
  formatInternalUrl,
  getAddress,
  isRunning,
  type EntryContext,
} from "./entry.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Key of the relay's listener for this machine. */
export const TUNNEL_LOCAL_KEY = "tunnel_local_addr";
const ASK_PATH = "/api/v1/certificates/ask";

/** The domain whose certificates are obtained; undefined without `--auto-tls`. */
export function findAutomaticDomain({
  hasAutomaticTls,
  domain,
}: Pick<EntryContext, "hasAutomaticTls" | "domain">): string | undefined {
  return hasAutomaticTls ? domain : undefined;
}

/** Folder of the certificates as files. */
function getCertificatesFolder({ dataDir }: Pick<EntryContext, "dataDir">): string {
  return join(dataDir, "certificates");
}

/** Creates the folder, which services follow before it has a file. */
export async function prepareCertificates(context: EntryContext): Promise<string[]> {
  if (findAutomaticDomain(context) === undefined) return [];
  await mkdir(getCertificatesFolder(context), { recursive: true, mode: 0o700 });
  return [];
}

/** Environment of the gateway: the names besides the hosts of routes, and where the certificates go. */
export function obtainCertificates(
  context: EntryContext,
  configPath: string,
  env: Environment,
): Record<string, string> {
  const domain = findAutomaticDomain(context);
  if (domain === undefined) return {};
  const { names: configured, hasDns } = readGateConfig(configPath);
  const mail = findMailHost(domain, context, env);
  const names = [
    domain,
    ...findConsoleHosts(context),
    ...(mail === undefined ? [] : [mail]),
    ...(hasDns && isRunning("tunnel", context)
      ? [formatHost("tunnel", context), `*.${formatHost("tunnel", context)}`]
      : []),
    ...configured,
    ...readNames(env),
  ];
  return {
    PLATFORM_GATE_AUTO_TLS: "true",
    PLATFORM_GATE_AUTO_TLS_DOMAIN: [...new Set(names)].join(","),
    PLATFORM_GATE_AUTO_TLS_HOSTS: "true",
    PLATFORM_GATE_CERTIFICATES_DIR: getCertificatesFolder(context),
    ...(isRunning("tunnel", context) && !hasDns && !env["PLATFORM_GATE_AUTO_TLS_ASK_URL"]
      ? {
          PLATFORM_GATE_AUTO_TLS_ASK_URL: `${formatInternalUrl(getAddress(context, TUNNEL_LOCAL_KEY))}${ASK_PATH}`,
        }
      : {}),
  };
}

/** Environment of mail: STARTTLS with the certificate of its name, unless the operator has chosen another. */
export function secureMail(context: EntryContext, env: Environment): Record<string, string> {
  const domain = findAutomaticDomain(context);
  const host = domain === undefined ? undefined : findMailHost(domain, context, env);
  const prefix = "PLATFORM_NOTIFY";
  if (host === undefined || hasCertificate(env, [prefix, `${prefix}_INBOUND`])) return {};
  const path = join(getCertificatesFolder(context), `${host}.pem`);
  return {
    [`${prefix}_SMTP_HOSTNAME`]: host,
    [`${prefix}_INBOUND_TLS_CERT`]: path,
    [`${prefix}_INBOUND_TLS_KEY`]: path,
    [`${prefix}_INBOUND_TLS_AWAITED`]: "true",
  };
}

/** Environment of messaging: its listeners with TLS use the certificate of the domain, unless the operator has chosen another. */
export function secureMessaging(context: EntryContext, env: Environment): Record<string, string> {
  const domain = findAutomaticDomain(context);
  const prefix = "PLATFORM_PULSE";
  const isUsed = ["KAFKA", "MQTT", "STOMP"].some((wire) => env[`${prefix}_${wire}_TLS_ADDR`]);
  const isChosen = hasCertificate(env, [prefix, `${prefix}_WIRE`]) || Boolean(env["TLS_CERT_FILE"]);
  if (domain === undefined || !isUsed || isChosen) return {};
  const path = join(getCertificatesFolder(context), `${domain}.pem`);
  return {
    [`${prefix}_WIRE_TLS_CERT`]: path,
    [`${prefix}_WIRE_TLS_KEY`]: path,
    [`${prefix}_WIRE_TLS_AWAITED`]: "true",
  };
}

/** Environment of the relay: TLS by names, for which it has the gateway obtain certificates. */
export function secureTunnels(context: EntryContext, env: Environment): Record<string, string> {
  const prefix = "PLATFORM_TUNNEL";
  const isChosen = hasCertificate(env, [prefix]) || Boolean(env[`${prefix}_TLS_DIR`]);
  if (findAutomaticDomain(context) === undefined || isChosen) return {};
  const { host } = new URL(formatInternalUrl(getAddress(context, "gateway_addr")));
  return {
    [`${prefix}_TLS_DIR`]: getCertificatesFolder(context),
    ...(isRunning("gate", context) ? { [`${prefix}_TLS_GATEWAY`]: host } : {}),
  };
}

/** Environment of a service with a listener for this machine, which it opens if its main one has TLS. */
export function wireLocalListener(
  { key, env }: { key: string; env: string },
  context: EntryContext,
): Record<string, string> {
  return { [env]: formatAddress(getAddress(context, key)) };
}

function hasCertificate(env: Environment, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) =>
    ["TLS_CERT", "TLS_CERT_FILE"].some((end) => Boolean(env[`${prefix}_${end}`])),
  );
}

// Mail that is only sent needs no certificate.
function findMailHost(domain: string, context: EntryContext, env: Environment): string | undefined {
  if (!isRunning("notify", context) || !env["PLATFORM_NOTIFY_INBOUND_PORT"]) return undefined;
  return env["PLATFORM_NOTIFY_SMTP_HOSTNAME"] || `mail.${domain}`;
}

function findConsoleHosts(context: EntryContext): string[] {
  if (!isConsoleShared(context)) return [];
  const { protocol, hostname } = new URL(formatConsoleUrl(context));
  return protocol === "https:" ? [hostname] : [];
}

function readNames(env: Environment): string[] {
  const text = env["PLATFORM_GATE_AUTO_TLS_DOMAIN"] || env["PLATFORM_AUTO_TLS_DOMAIN"] || "";
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

// The gateway reports an invalid file.
function readGateConfig(path: string): { names: string[]; hasDns: boolean } {
  const none = { names: [], hasDns: false };
  if (!existsSync(path)) return none;
  try {
    const { value } = parseJson(readFileSync(path, "utf8"));
    if (typeof value !== "object" || value === null) return none;
    const { auto_tls_domain: names, acme_dns: dns } = value as Record<string, unknown>;
    const texts = (Array.isArray(names) ? names : []).filter((name) => typeof name === "string");
    return { names: texts, hasDns: typeof dns === "object" && dns !== null };
  } catch {
    return none;
  }
}
