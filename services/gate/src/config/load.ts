// Reads and validates the configuration from file, environment and flags, including rules across keys.
import { dirname, join, resolve, sep } from "node:path";
import {
  ConfigError,
  type ConfigFile,
  type ConfigProblem,
  type ConfigSources,
  type LoadedCommand,
  loadConfig,
} from "@platform/kernel/config";
import { type GateConfig, gateDefinition, usesTls } from "./document.ts";
import { getStateFolder } from "./state-folder.ts";

/** Sources of the configuration. */
export interface GateSources {
  argv: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
}

/** A loaded configuration. */
export interface LoadedGate {
  config: GateConfig;
  /** Path of the configuration file, even if it does not exist. */
  path: string;
  /** False if the default file does not exist. */
  hasFile: boolean;
}

type Loaded = Pick<LoadedCommand<string, unknown, unknown>, "config" | "file" | "sources">;

/** Validates rules across keys. Throws ConfigError. */
export function checkLoaded(loaded: Loaded): LoadedGate {
  const given = loaded.config as GateConfig;
  const file: ConfigFile | undefined = loaded.file;
  const path = file?.path ?? "config.json";
  const config = {
    ...given,
    ...chooseAddresses(given, loaded.sources.get("addr") === "default"),
    files_roots: given.files_roots ?? [join(dirname(path), "public")],
  };
  const locate = (name: string): string => {
    const source = loaded.sources.get(name);
    return source === undefined || source === "default" ? path : source;
  };
  checkTogether(config, locate);
  checkRoots(config, path, locate);
  return { config, path, hasFile: file?.document !== undefined };
}

/** Reads the configuration again from the same sources. Throws ConfigError, also if the file has been removed. */
export function reloadConfig(
  sources: GateSources,
  before: LoadedGate,
  overrides?: ConfigSources["overrides"],
): LoadedGate {
  const loaded = loadConfig(gateDefinition, {
    ...sources,
    ...(overrides === undefined ? {} : { overrides }),
  });
  if (loaded.kind !== "run") throw new Error("the command line does not start the gateway");
  const next = checkLoaded(loaded);
  if (before.hasFile && !next.hasFile) {
    const message = "cannot be read: no such file (it existed when the gateway started)";
    throw new ConfigError([{ source: next.path, path: "", message }]);
  }
  return next;
}

/** With automatic certificates the gateway listens on the ports of the web. */
function chooseAddresses(
  { auto_tls: isAutomatic, addr, http_addr: plain }: GateConfig,
  isDefault: boolean,
): Pick<GateConfig, "addr" | "http_addr"> {
  if (!isAutomatic) return { addr, http_addr: plain };
  return {
    addr: isDefault ? { host: undefined, port: 443 } : addr,
    http_addr: plain ?? { host: undefined, port: 80 },
  };
}

/** Routes of users must not publish the gateway's own files. */
function checkRoots(
  config: GateConfig & { files_roots: string[] },
  path: string,
  locate: (key: string) => string,
): void {
  const own = [path, getStateFolder(config.data_dir, path)].map((file) => resolve(file));
  const problems = config.files_roots.flatMap((root, index): ConfigProblem[] => {
    const folder = `${resolve(root)}${sep}`.replace(`${sep}${sep}`, sep);
    const held = own.find((file) => `${file}${sep}`.startsWith(folder));
    if (held === undefined) return [];
    const message = `${JSON.stringify(root)} contains ${held}, which users could publish`;
    return [{ source: locate("files_roots"), path: `files_roots[${index}]`, message }];
  });
  if (problems.length > 0) throw new ConfigError(problems);
}

function checkTogether(config: GateConfig, locate: (key: string) => string): void {
  const problems: ConfigProblem[] = [];
  const complain = (path: string, near: string, message: string): void => {
    problems.push({ source: locate(near), path, message });
  };
  if (config.tls_cert !== undefined && config.tls_key === undefined) {
    complain("tls_key", "tls_cert", "is required: tls_cert and tls_key must be set together");
  }
  if (config.tls_key !== undefined && config.tls_cert === undefined) {
    complain("tls_cert", "tls_key", "is required: tls_cert and tls_key must be set together");
  }
  checkAutomaticTls(config, complain);
  if (config.config_store_bucket !== undefined) {
    for (const key of ["config_store_access_key", "config_store_secret_key"] as const)
      if (config[key] === undefined)
        complain(key, "config_store_bucket", "is required with config_store_bucket");
  }
  if (config.secret_url !== undefined && config.secret_api_key === undefined) {
    complain("secret_api_key", "secret_url", "is required with secret_url");
  }
  if (config.jwks_url !== undefined) {
    const why = "is required with jwks_url: tokens for other services must be rejected";
    if (config.jwt_issuer === undefined) complain("jwt_issuer", "jwks_url", why);
    if (config.jwt_audience === undefined) complain("jwt_audience", "jwks_url", why);
  }
  if (config.revocations_url !== undefined) {
    const why = "is required with revocations_url";
    for (const key of ["revocations_token", "jwt_issuer"] as const)
      if (config[key] === undefined) complain(key, "revocations_url", why);
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

function checkAutomaticTls(
  config: GateConfig,
  complain: (path: string, near: string, message: string) => void,
): void {
  if (config.http_addr !== undefined && !usesTls(config)) {
    complain("http_addr", "http_addr", "requires auto_tls, tls_cert or certificates");
  }
  if (config.client_certificates !== undefined && !usesTls(config)) {
    const message = "requires TLS: auto_tls, tls_cert or certificates";
    complain("client_certificates", "client_certificates", message);
  }
  const { acme_eab_kid: kid, acme_eab_hmac_key: hmacKey } = config;
  if ((kid === undefined) !== (hmacKey === undefined)) {
    const missing = kid === undefined ? "acme_eab_kid" : "acme_eab_hmac_key";
    const given = kid === undefined ? "acme_eab_hmac_key" : "acme_eab_kid";
    complain(missing, given, "is required: acme_eab_kid and acme_eab_hmac_key belong together");
  }
  if (config.acme_challenges.includes("dns-01") && config.acme_dns === undefined) {
    complain("acme_dns", "acme_challenges", "is required: acme_challenges contains dns-01");
  }
  for (const [index, name] of config.auto_tls_domain.entries()) {
    if (!name.startsWith("*.") || config.acme_dns !== undefined) continue;
    const path = `auto_tls_domain[${index}]`;
    complain(path, "auto_tls_domain", `"${name}" requires a DNS challenge: set acme_dns`);
  }
}
