// Resolves a validated route: fills in defaults, reads and validates certificate files.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { PlatformError } from "@platform/kernel/errors";
import type { RouteConfig } from "../config/route.ts";
import { stringifySorted } from "./sorted-json.ts";
import {
  type RouteAuthSpec,
  type RouteKey,
  type RouteSpec,
  type RouteTimeouts,
  type TargetSpec,
  type UpstreamTlsSpec,
  makeRouteKey,
  makeRouteLabel,
  makeTargetKey,
} from "../shared-state/index.ts";

const PEM_BYTES_MAX = 1_048_576;
/** Configuration keys that a route's `auth` inherits. */
const INHERITED_KEYS: Readonly<Record<string, string>> = {
  jwks_url: "jwks_url",
  issuer: "jwt_issuer",
  audience: "jwt_audience",
};

/** Defaults of routes. */
export interface RouteDefaults {
  bodyBytesMax: number;
  timeouts: RouteTimeouts;
  jwksUrl: string | undefined;
  issuer: string | undefined;
  audience: string | undefined;
  cutFields: readonly string[];
}

/** A route with all its settings but without slots in shared memory. */
export interface ResolvedRoute {
  key: RouteKey;
  /** The route's label in metrics. */
  label: string;
  config: RouteConfig;
  /** The configuration as canonical JSON: equal for equal configurations. */
  text: string;
  /** The spec without slots, which the planner assigns. */
  spec: Omit<RouteSpec, "slot" | "metricsId" | "targets"> & { targets: Omit<TargetSpec, "slot">[] };
  /** One key per target, equal for equal upstreams. */
  targetKeys: string[];
  /** Hash of the spec: equal for routes with equal behavior. */
  fingerprint: string;
}

/** Reads a PEM file. */
export type ReadPem = (path: string) => string;

/** Resolves one route. Throws `validation_failed` with key and file if a certificate is not usable. */
export function resolveRoute(
  config: RouteConfig,
  defaults: RouteDefaults,
  readPem: ReadPem = readPemFile,
): ResolvedRoute {
  const key = makeRouteKey(config.host, config.prefix);
  const label = makeRouteLabel(config.host, config.prefix);
  const upstreamTls = readUpstreamTls(config, label, readPem);
  const targets = listTargets(config);
  const spec: ResolvedRoute["spec"] = {
    key,
    prefix: config.prefix,
    ...(config.host === undefined ? {} : { host: config.host }),
    targets,
    balancer: config.load_balancer ?? "round_robin",
    stripPrefix: config.strip_prefix ?? false,
    hostHeader: config.host_header ?? "client",
    rawPath: config.raw_path ?? false,
    bodyBytesMax: config.max_body_size ?? defaults.bodyBytesMax,
    timeouts: {
      connectMs: config.connect_timeout_ms ?? defaults.timeouts.connectMs,
      responseHeadMs: config.response_timeout_ms ?? defaults.timeouts.responseHeadMs,
      idleMs: config.idle_timeout_ms ?? defaults.timeouts.idleMs,
      totalMs: config.total_timeout_ms ?? defaults.timeouts.totalMs,
    },
    accessLog: config.access_log ?? false,
    auth: resolveAuth(config, label, defaults),
    cutFields: defaults.cutFields,
    ...(upstreamTls === undefined ? {} : { upstreamTls }),
  };
  return {
    key,
    label,
    config,
    text: stringifySorted(config),
    spec,
    targetKeys: targets.map((target) => makeTargetKey(target.url, upstreamTls)),
    fingerprint: createHash("sha256").update(JSON.stringify(spec)).digest("base64url"),
  };
}

/** Reads a certificate or key file of at most 1 MiB as text. */
export function readPemFile(path: string): string {
  const bytes = readFileSync(path);
  if (bytes.length > PEM_BYTES_MAX)
    throw new Error(`the file is larger than ${PEM_BYTES_MAX} bytes`);
  return bytes.toString("utf8");
}

function listTargets(config: RouteConfig): { url: string; weight: number }[] {
  if (config.targets_weighted !== undefined) {
    return config.targets_weighted.map(({ url, weight }) => ({ url, weight }));
  }
  const urls = config.targets ?? (config.target === undefined ? [] : [config.target]);
  return urls.map((url) => ({ url, weight: 1 }));
}

function resolveAuth(config: RouteConfig, label: string, defaults: RouteDefaults): RouteAuthSpec {
  const auth = config.auth;
  if (auth === undefined) return { type: "inherit" };
  if (auth.type === "none") return { type: "none" };
  const take = (key: string, own: string | undefined, inherited: string | undefined): string => {
    const value = own ?? inherited;
    if (value !== undefined) return value;
    const fault = `is required, or ${INHERITED_KEYS[key]} for all routes: tokens for other services must be rejected`;
    throw refuse(label, `auth.${key}`, undefined, fault);
  };
  return {
    type: "bearer",
    jwksUrl: take("jwks_url", auth.jwks_url, defaults.jwksUrl),
    issuer: take("issuer", auth.issuer, defaults.issuer),
    audience: take("audience", auth.audience, defaults.audience),
    ...(auth.required_scope === undefined ? {} : { requiredScope: auth.required_scope }),
  };
}

function readUpstreamTls(
  config: RouteConfig,
  label: string,
  readPem: ReadPem,
): UpstreamTlsSpec | undefined {
  const { client_cert_path: certPath, client_key_path: keyPath, root_ca_path: caPath } = config;
  if (certPath === undefined && caPath === undefined) return undefined;
  const certPem = readNamed(label, "client_cert_path", certPath, readPem);
  const keyPem = readNamed(label, "client_key_path", keyPath, readPem);
  const caPem = readNamed(label, "root_ca_path", caPath, readPem);
  checkPem(label, "root_ca_path", caPath, caPem === undefined ? undefined : { ca: caPem });
  checkPem(
    label,
    "client_cert_path",
    certPath,
    certPem === undefined || keyPem === undefined ? undefined : { cert: certPem, key: keyPem },
  );
  return {
    ...(certPem === undefined ? {} : { certPem }),
    ...(keyPem === undefined ? {} : { keyPem }),
    ...(caPem === undefined ? {} : { caPem }),
  };
}

function readNamed(
  label: string,
  key: string,
  path: string | undefined,
  readPem: ReadPem,
): string | undefined {
  if (path === undefined) return undefined;
  try {
    return readPem(path);
  } catch (cause) {
    throw refuse(label, key, path, `cannot be read: ${describe(cause)}`);
  }
}

function checkPem(
  label: string,
  key: string,
  path: string | undefined,
  material: { ca?: string; cert?: string; key?: string } | undefined,
): void {
  if (material === undefined) return;
  if (material.ca !== undefined && !material.ca.includes("-----BEGIN CERTIFICATE-----")) {
    throw refuse(label, key, path, "contains no PEM certificate");
  }
  try {
    createSecureContext(material);
  } catch (cause) {
    throw refuse(label, key, path, `is not usable: ${describe(cause)}`);
  }
}

function refuse(
  label: string,
  key: string,
  value: string | undefined,
  fault: string,
): PlatformError {
  const given = value === undefined ? "" : ` ${JSON.stringify(value)}`;
  return new PlatformError("validation_failed", `route ${label}: ${key}${given} ${fault}`);
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
