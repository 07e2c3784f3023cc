// Resolves a validated route: fills in defaults, reads and validates its files.
import { createHash } from "node:crypto";
import { createSecureContext } from "node:tls";
import { createEtag } from "@platform/kernel/http";
import type { PolicyPlace } from "@platform/kernel/route-rules";
import type { RouteConfig } from "../config/route.ts";
import { isServiceTarget, parseServiceTarget } from "../config/service-target.ts";
import type { FindService } from "../source/discovery.ts";
import { describeUpstreams } from "../source/service-addresses.ts";
import { type Confinement, readAnyFile, type ReadFile } from "./confinement.ts";
import { NetworkLists } from "./network-lists.ts";
import type { OidcClientSpec } from "../sign-in/oidc-provider.ts";
import { resolveAi, withIdentityCoding } from "./resolve-ai.ts";
import { resolveGuests } from "./resolve-guests.ts";
import { resolveGuards } from "./resolve-guards.ts";
import { resolveHealthCheck, resolveResilience } from "./resolve-resilience.ts";
import { resolveLimits } from "./resolve-limits.ts";
import { resolveOpenApi } from "./resolve-openapi.ts";
import { addUpstreamAuth } from "./resolve-upstream-auth.ts";
import { resolveHeaders, resolveTraffic } from "./resolve-traffic.ts";
import { describeCause, refuseField } from "./route-fault.ts";
import { stringifySorted } from "./sorted-json.ts";
import {
  type AiSpec,
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
/** Models of a route with some, a primary and a fallback: the last of its targets. */
const MODELS = 2;
/** Sum of the weights of one target, if a route has several of which some are services. */
const SHARE = 10_000;

/** Defaults of routes. */
export interface RouteDefaults {
  bodyBytesMax: number;
  timeouts: RouteTimeouts;
  jwksUrl: string | undefined;
  issuer: string | undefined;
  audience: string | undefined;
  /** Routes must not accept tokens of any issuer or for any audience. */
  isBindingStrict: boolean;
  place: PolicyPlace;
  /** The listener requests certificates of clients. */
  requestsCertificates?: boolean;
  cutFields: readonly string[];
  /** Longest duration of a streamed answer on AI routes. */
  streamMsMax: number;
  /** Limits of routes with `confined`. */
  confinement: Confinement;
  /** Undefined without service discovery. */
  findService?: FindService | undefined;
}

/** A route with all its settings but without slots in shared memory. */
export interface ResolvedRoute {
  key: RouteKey;
  /** The route's label in metrics. */
  label: string;
  config: RouteConfig;
  /** The configuration as canonical JSON: equal for equal configurations. */
  text: string;
  /** Strong entity tag of the configuration; never the tag of a set of routes. */
  etag: string;
  /** The spec without slots, which the planner assigns. */
  spec: Omit<RouteSpec, "slot" | "metricsId" | "targets"> & {
    targets: Omit<TargetSpec, "slot" | "link">[];
  };
  /** One key per target, equal for equal upstreams. */
  targetKeys: string[];
  /** The client of browser sign-in, which only the control plane uses. */
  oidc?: OidcClientSpec;
  /** Risks of the settings, for the log. */
  warnings: readonly string[];
  /** Hash of the spec: equal for routes with equal behavior. */
  fingerprint: string;
}

/** Resolves one route. Throws `validation_failed` with key and file if a file is not usable. */
export function resolveRoute(
  config: RouteConfig,
  defaults: RouteDefaults,
  lists = new NetworkLists(),
): ResolvedRoute {
  const key = makeRouteKey(config.host, config.prefix, config.methods, config.variant);
  const label = makeRouteLabel(config.host, config.prefix);
  const { confinement } = defaults;
  const isConfined = config.confined === true;
  if (isConfined) confinement.check(config, label);
  const read = isConfined ? confinement.read : readAnyFile;
  const upstreamTls = readUpstreamTls(config, label, read);
  const { targets: upstreams, warnings } = listTargets(config, label, defaults);
  const targets = [...upstreams, ...listModels(config, label, read)];
  const resilience = resolveResilience(config);
  const healthCheck = resolveHealthCheck(config);
  const ai = resolveAi(config, {
    streamMsMax: defaults.streamMsMax,
    firstModel: targets.length - MODELS,
  });
  const openapi = resolveOpenApi(config, label, read);
  const guests = resolveGuests(config);
  const guards = resolveGuards(config, label, defaults, read);
  const text = stringifySorted(config);
  const spec: ResolvedRoute["spec"] = {
    key,
    ...describePlace(config),
    targets,
    balancer: config.load_balancer ?? "round_robin",
    stripPrefix: config.strip_prefix ?? false,
    ...(config.replace_prefix === undefined ? {} : { replacePrefix: config.replace_prefix }),
    ...describeFields(config, ai, label, read),
    hostHeader: config.host_header ?? "client",
    rawPath: config.raw_path ?? false,
    bodyBytesMax: config.max_body_size ?? defaults.bodyBytesMax,
    timeouts: resolveTimeouts(config, defaults.timeouts),
    accessLog: config.access_log ?? false,
    auth: guards.auth,
    cutFields: [...defaults.cutFields, ...guards.cutFields],
    steps: {
      ...resolveLimits(config, label, lists, read),
      ...guards.steps,
      ...resolveTraffic(config, label),
      ...(openapi === undefined ? {} : { openapi }),
      ...(guests && { guests }),
      ...(ai && { ai }),
    },
    ...(upstreamTls === undefined ? {} : { upstreamTls }),
    ...(resilience === undefined ? {} : { resilience }),
    ...(healthCheck === undefined ? {} : { healthCheck }),
    ...(isConfined ? { confined: confinement.spec } : {}),
  };
  return {
    key,
    label,
    config,
    text,
    etag: createEtag(`route\n${text}`),
    spec,
    ...(guards.oidc === undefined
      ? {}
      : {
          oidc: isConfined ? { ...guards.oidc, networks: confinement.spec.networks } : guards.oidc,
        }),
    warnings: [...guards.warnings, ...warnings],
    ...describeTargets(spec),
  };
}

/** Returns the route with the present addresses of its services; the same object if they are the same. */
export function renewServices(route: ResolvedRoute, defaults: RouteDefaults): ResolvedRoute {
  const { config, label } = route;
  if (!listUrls(config).some(isServiceTarget)) return route;
  const { targets: upstreams, warnings } = listTargets(config, label, defaults);
  const models = route.spec.targets.filter(({ model }) => model !== undefined);
  const targets = [...upstreams, ...models];
  if (JSON.stringify(targets) === JSON.stringify(route.spec.targets)) return route;
  const { streamMsMax } = defaults;
  const ai = resolveAi(config, { streamMsMax, firstModel: targets.length - MODELS });
  const steps = { ...route.spec.steps, ...(ai && { ai }) };
  const spec = { ...route.spec, targets, steps };
  return { ...route, spec, warnings, ...describeTargets(spec) };
}

/** Services that a route names. */
export function listServices(config: RouteConfig): string[] {
  return listUrls(config).flatMap((url) => parseServiceTarget(url)?.name ?? []);
}

function describeTargets(
  spec: ResolvedRoute["spec"],
): Pick<ResolvedRoute, "targetKeys" | "fingerprint"> {
  return {
    targetKeys: spec.targets.map(({ url }) => makeTargetKey(url, spec.upstreamTls)),
    fingerprint: createHash("sha256").update(JSON.stringify(spec)).digest("base64url"),
  };
}

function describeFields(
  config: RouteConfig,
  ai: AiSpec | undefined,
  label: string,
  read: ReadFile,
): Pick<RouteSpec, "headers"> {
  const rules = resolveHeaders(config);
  const { upstream_auth: auth } = config;
  const place = { label, field: "upstream_auth" };
  const own = auth === undefined ? rules : addUpstreamAuth(rules, auth, place, read);
  const headers = ai === undefined ? own : withIdentityCoding(own);
  return headers === undefined ? {} : { headers };
}

/** The targets of the models. They get requests of the balancer only if the route has no others. */
function listModels(
  config: RouteConfig,
  label: string,
  read: ReadFile,
): ResolvedRoute["spec"]["targets"] {
  const { llm_routing: routing, host_header: host } = config;
  if (routing === undefined) return [];
  const hasTargets = listUrls(config).length > 0;
  return (["primary", "fallback"] as const).map((name) => {
    const { url, auth = config.upstream_auth } = routing[name];
    const rules = resolveHeaders(config);
    const place = { label, field: `llm_routing.${name}.auth` };
    const own = auth === undefined ? rules : addUpstreamAuth(rules, auth, place, read);
    return {
      url,
      weight: hasTargets || name === "fallback" ? 0 : 1,
      // Providers are other hosts than the gateway, which most clients name.
      model: { keepsHost: host === "client", headers: withIdentityCoding(own) },
    };
  });
}

function resolveTimeouts(config: RouteConfig, defaults: RouteTimeouts): RouteTimeouts {
  return {
    connectMs: config.connect_timeout_ms ?? defaults.connectMs,
    responseHeadMs: config.response_timeout_ms ?? defaults.responseHeadMs,
    idleMs: config.idle_timeout_ms ?? defaults.idleMs,
    totalMs: config.total_timeout_ms ?? defaults.totalMs,
  };
}

type Place = Pick<RouteSpec, "prefix" | "host" | "methods" | "paths" | "variant">;

function describePlace({ prefix, host, methods, paths, variant }: RouteConfig): Place {
  return {
    prefix,
    ...(host === undefined ? {} : { host }),
    ...(methods === undefined ? {} : { methods }),
    ...(paths === undefined ? {} : { paths }),
    ...(variant === undefined ? {} : { variant }),
  };
}

/** Reads a certificate or key file of at most 1 MiB as text. */
function readPemFile(path: string, read: ReadFile = readAnyFile): string {
  return read(path, PEM_BYTES_MAX).toString("utf8");
}

function listUrls(config: RouteConfig): readonly string[] {
  if (config.targets_weighted !== undefined) return config.targets_weighted.map(({ url }) => url);
  return config.targets ?? (config.target === undefined ? [] : [config.target]);
}

/** Targets with the addresses of services in their places. A service without an address has none. */
function listTargets(
  config: RouteConfig,
  label: string,
  defaults: RouteDefaults,
): { targets: { url: string; weight: number }[]; warnings: string[] } {
  if (config.targets_weighted !== undefined) {
    return {
      targets: config.targets_weighted.map(({ url, weight }) => ({ url, weight })),
      warnings: [],
    };
  }
  const urls = listUrls(config);
  if (!urls.some(isServiceTarget)) {
    return { targets: urls.map((url) => ({ url, weight: 1 })), warnings: [] };
  }
  const warnings: string[] = [];
  const found = new Map<string, number>();
  for (const [index, url] of urls.entries()) {
    const field = config.targets === undefined ? "target" : `targets[${index}]`;
    const upstreams = isServiceTarget(url)
      ? findUpstreams(config, url, { label, field }, defaults)
      : { allowed: [{ url, weight: 1 }], refused: 0 };
    const { allowed, refused } = upstreams;
    if (refused > 0) {
      warnings.push(
        `${url} has ${refused} addresses outside of private_networks, which are not used`,
      );
    }
    const sum = allowed.reduce((total, { weight }) => total + weight, 0);
    for (const { url: upstream, weight } of allowed) {
      const share = urls.length === 1 ? weight : Math.max(1, Math.round((SHARE * weight) / sum));
      found.set(upstream, (found.get(upstream) ?? 0) + share);
    }
  }
  return { targets: [...found].map(([url, weight]) => ({ url, weight })), warnings };
}

// Addresses of discovery are checked like those that users write; workers check names of hosts.
function findUpstreams(
  { confined: isConfined }: RouteConfig,
  url: string,
  { label, field }: { label: string; field: string },
  { findService, confinement }: RouteDefaults,
): { allowed: { url: string; weight: number }[]; refused: number } {
  if (findService === undefined) {
    throw refuseField(label, field, url, "requires `discovery`, which is read at startup");
  }
  const service = parseServiceTarget(url)!;
  const all = describeUpstreams(service, findService(service.name));
  const allowed =
    isConfined === true
      ? all.filter(
          (one) => confinement.findFault({ field, kind: "address", value: one.url }) === undefined,
        )
      : all;
  return { allowed, refused: all.length - allowed.length };
}

function readUpstreamTls(
  config: RouteConfig,
  label: string,
  read: ReadFile,
): UpstreamTlsSpec | undefined {
  const { client_cert_path: certPath, client_key_path: keyPath, root_ca_path: caPath } = config;
  if (certPath === undefined && caPath === undefined) return undefined;
  const readNamed = (key: string, path: string | undefined): string | undefined =>
    path === undefined ? undefined : readPemOf(label, key, path, read);
  const certPem = readNamed("client_cert_path", certPath);
  const keyPem = readNamed("client_key_path", keyPath);
  const caPem = readNamed("root_ca_path", caPath);
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

function readPemOf(label: string, key: string, path: string, read: ReadFile): string {
  try {
    return readPemFile(path, read);
  } catch (cause) {
    throw refuseField(label, key, path, `cannot be read: ${describeCause(cause)}`);
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
    throw refuseField(label, key, path, "contains no PEM certificate");
  }
  try {
    createSecureContext(material);
  } catch (cause) {
    throw refuseField(label, key, path, `is not usable: ${describeCause(cause)}`);
  }
}
