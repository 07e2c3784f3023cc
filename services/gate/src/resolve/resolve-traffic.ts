// Resolves the fields of a route that change requests and responses, or answer instead of an upstream.
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { RouteConfig } from "../config/route.ts";
import type {
  CompressionSpec,
  CorsSpec,
  FilesSpec,
  HeaderRules,
  RecordSpec,
  StepSpecs,
  CacheSpec,
} from "../shared-state/index.ts";
import { listAuthFields } from "./resolve-upstream-auth.ts";
import { describeCause, refuseField } from "./route-fault.ts";

const CORS_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const CORS_HEADERS = ["Authorization", "Content-Type"];
const CACHE_METHODS = ["GET", "HEAD"];
const CORS_MAX_AGE_SECONDS = 600;
const REDIRECT_STATUS = 308;
const MIRRORED_BYTES_MAX = 1_048_576;
const RECORDED_BYTES_MAX = 65_536;
const COMPRESSED_SIZE_MIN = 1_024;
const COMPRESSED_TYPES = [
  "text/*",
  "application/json",
  "application/javascript",
  "application/xml",
  "application/x-ndjson",
  "application/manifest+json",
  "application/ld+json",
  "application/problem+json",
  "application/vnd.api+json",
  "application/geo+json",
  "application/atom+xml",
  "application/rss+xml",
  "application/xhtml+xml",
  "application/wasm",
  "image/svg+xml",
  "font/ttf",
  "font/otf",
];
/** Fields of upstreams that know of CORS themselves; two answers would contradict each other. */
const CORS_RESPONSE_FIELDS = [
  "Access-Control-Allow-Origin",
  "Access-Control-Allow-Credentials",
  "Access-Control-Allow-Methods",
  "Access-Control-Allow-Headers",
  "Access-Control-Expose-Headers",
  "Access-Control-Max-Age",
];

/** Settings of the steps that change or answer requests. */
export function resolveTraffic(
  config: RouteConfig,
  label: string,
): Pick<
  StepSpecs,
  | "cors"
  | "rewrite"
  | "redirect"
  | "respond"
  | "files"
  | "cache"
  | "compression"
  | "mirror"
  | "record"
> {
  const { redirect, respond, rewrite, mirror } = config;
  const cors = resolveCors(config);
  const files = resolveFiles(config, label);
  const compression = resolveCompression(config);
  const record = resolveRecord(config);
  const cache = resolveCache(config);
  return {
    ...(cors === undefined ? {} : { cors }),
    ...(files === undefined ? {} : { files }),
    ...(cache === undefined ? {} : { cache }),
    ...(mirror === undefined
      ? {}
      : {
          mirror: {
            origin: new URL(mirror.target).origin,
            percent: mirror.percent ?? 100,
            bodyBytesMax: mirror.max_body_size ?? MIRRORED_BYTES_MAX,
            omittedFields: listAuthFields(config),
          },
        }),
    ...(record === undefined ? {} : { record }),
    ...(compression === undefined ? {} : { compression }),
    ...(rewrite === undefined ? {} : { rewrite }),
    ...(redirect === undefined
      ? {}
      : { redirect: { to: redirect.to, status: redirect.status ?? REDIRECT_STATUS } }),
    ...(respond === undefined
      ? {}
      : {
          respond: {
            status: respond.status,
            headers: Object.entries(
              respond.headers ??
                (respond.body === undefined ? {} : { "Content-Type": "text/plain; charset=utf-8" }),
            ),
            body: respond.body ?? "",
          },
        }),
  };
}

/** Changes of the fields; undefined if there are none. */
export function resolveHeaders(config: RouteConfig): HeaderRules | undefined {
  const { request_headers: request = {}, response_headers: response = {}, cors } = config;
  if (config.request_headers === undefined && config.response_headers === undefined && !cors) {
    return undefined;
  }
  return {
    removeRequest: [...(request.remove ?? []), ...Object.keys(request.set ?? {})],
    addRequest: [...Object.entries(request.set ?? {}), ...Object.entries(request.add ?? {})],
    removeResponse: [
      ...(response.remove ?? []),
      ...Object.keys(response.set ?? {}),
      ...(cors === undefined ? [] : CORS_RESPONSE_FIELDS),
    ],
    addResponse: [...Object.entries(response.set ?? {}), ...Object.entries(response.add ?? {})],
  };
}

function resolveCors({ cors, methods }: RouteConfig): CorsSpec | undefined {
  if (cors === undefined) return undefined;
  return {
    origins: cors.origins,
    methods: cors.methods ?? methods ?? CORS_METHODS,
    headers: cors.headers ?? CORS_HEADERS,
    exposeHeaders: cors.expose_headers ?? [],
    allowsCredentials: cors.credentials ?? false,
    maxAgeSeconds: cors.max_age_s ?? CORS_MAX_AGE_SECONDS,
  };
}

function resolveFiles({ files }: RouteConfig, label: string): FilesSpec | undefined {
  if (files === undefined) return undefined;
  const root = resolve(files.root);
  try {
    if (!statSync(root).isDirectory()) throw new Error("it is not a folder");
  } catch (cause) {
    throw refuseField(label, "files.root", files.root, `cannot be used: ${describeCause(cause)}`);
  }
  return {
    root,
    index: files.index ?? "index.html",
    ...(files.fallback === undefined ? {} : { fallback: files.fallback }),
    cacheControl: files.cache_control ?? "no-cache",
    isPrecompressed: files.precompressed ?? false,
  };
}

function resolveRecord(config: RouteConfig): RecordSpec | undefined {
  const { record } = config;
  if (record === undefined || record === false) return undefined;
  const settings = record === true ? {} : record;
  return {
    percent: settings.percent ?? 100,
    bodyBytesMax: settings.max_body_size ?? RECORDED_BYTES_MAX,
    redactedNames: [...(settings.redact ?? []), ...listAuthFields(config)],
  };
}

function resolveCompression({ compress }: RouteConfig): CompressionSpec | undefined {
  if (compress === undefined || compress === false) return undefined;
  const settings = compress === true ? {} : compress;
  return {
    codings: settings.codings ?? ["br", "zstd", "gzip"],
    types: settings.types ?? COMPRESSED_TYPES,
    sizeBytesMin: settings.min_size ?? COMPRESSED_SIZE_MIN,
  };
}

function resolveCache(config: RouteConfig): CacheSpec | undefined {
  const { cache_ttl_seconds: ttl, cache_version: version, sticky } = config;
  if (ttl === undefined) return undefined;
  return {
    ttlMs: ttl * 1_000,
    methods: config.cache_methods ?? CACHE_METHODS,
    ignoresCookies: config.cache_with_cookies ?? false,
    keyCookies: config.cache_key_cookies ?? [],
    ignoredCookies: [
      ...(config.cache_ignore_cookies ?? []),
      ...(sticky === undefined ? [] : [sticky.cookie]),
    ],
    ...(version === undefined ? {} : { version }),
  };
}
