// Settings of the optional steps of a route. A step without settings is not compiled into the route.

import type { AiSpec } from "./ai-spec.ts";
import type { GuestsSpec } from "./guest-spec.ts";
import type { PolicyRule } from "./access-spec.ts";

/** A compiled list of networks, shared by all threads; see `buildAddressTrie`. */
export interface NetworkListSpec {
  /** Digest of the networks: equal lists have equal digests. */
  digest: string;
  trie: SharedArrayBuffer;
}

/** Client addresses that may use a route. */
export interface AddressesSpec {
  /** Only these addresses may; absent: all. */
  allow: readonly NetworkListSpec[];
  /** These addresses may not, even if they are in `allow`. */
  block: readonly NetworkListSpec[];
}

/** The property of a request that a rate limit counts by. Requests without it are counted by address. */
export type RateKeySpec =
  | { kind: "ip" }
  | { kind: "api_key" }
  | { kind: "tenant" }
  | { kind: "header"; name: string }
  | { kind: "claim"; name: string };

/** One rate limit of a route. */
export interface RateLimitSpec {
  /** Name in response fields, unique on the route; also part of the keys in Redis. */
  name: string;
  by: RateKeySpec;
  /** Maximum requests in any 60 s, up to `RATE_MAX`. */
  perMinute: number;
}

/** Certificates of clients that may use a route. */
export interface ClientCertificateSpec {
  /** Patterns of names that a certificate must contain one of; empty: any certificate. */
  names: readonly string[];
}

/** Bounded concurrency of a route across all workers. */
export interface ConcurrencySpec {
  requestsMax: number;
  /** Requests that wait for a place; 0: none. */
  queueMax: number;
  queueTimeoutMs: number;
}

/** Keeps a client at one target. */
export interface StickySpec {
  /** Name of the cookie. */
  cookie: string;
  /** Life of the cookie; absent: until the browser ends. */
  maxAgeSeconds?: number;
  /** The browser sends the cookie only over TLS. */
  isSecure: boolean;
}

/** Requests of pages of other origins. */
export interface CorsSpec {
  /** `*`, or origins, in which `*.` stands for any subdomain. */
  origins: readonly string[];
  methods: readonly string[];
  headers: readonly string[];
  exposeHeaders: readonly string[];
  allowsCredentials: boolean;
  maxAgeSeconds: number;
}

/** A rule for the forwarded path. */
interface RewriteRule {
  /** Regular expression of RE2. */
  pattern: string;
  to: string;
}

/** A redirect of all requests. */
export interface RedirectSpec {
  to: string;
  status: number;
}

/** A fixed response to all requests. */
interface RespondSpec {
  status: number;
  headers: readonly (readonly [name: string, value: string])[];
  body: string;
}

/** Responses from the files of a folder. */
export interface FilesSpec {
  /** Absolute path of the folder. */
  root: string;
  /** File that stands for a folder. */
  index: string;
  /** File below the root in place of those that do not exist. */
  fallback?: string;
  cacheControl: string;
  /** Sends compressed siblings of files. */
  isPrecompressed: boolean;
}

/** Compression of responses. */
export interface CompressionSpec {
  /** In order of preference. */
  codings: readonly ("br" | "zstd" | "gzip")[];
  /** Media types in lower case; `*` at the end stands for any rest. */
  types: readonly string[];
  /** Smaller responses are not compressed. */
  sizeBytesMin: number;
}

/** Copies of requests for another service. */
export interface MirrorSpec {
  /** Origin of the service; paths are those that the upstream gets. */
  origin: string;
  /** Share of the requests, above 0, up to 100. */
  percent: number;
  /** Requests with larger bodies are not copied. */
  bodyBytesMax: number;
  /** Fields with credentials of the upstream, which are not copied. */
  omittedFields?: readonly string[];
}

/** Recording of requests and responses. */
export interface RecordSpec {
  /** Share of the requests, above 0, up to 100. */
  percent: number;
  /** Larger bodies are not recorded. */
  bodyBytesMax: number;
  /** Header fields, parameters and members of bodies that are redacted, beside those that always are. */
  redactedNames: readonly string[];
}

/** Validation of requests against an OpenAPI document. */
export interface OpenApiSpec {
  document: Readonly<Record<string, unknown>>;
  /** Forwards requests of operations that are not in the document. */
  allowsUnknown: boolean;
  /** Responses that do not conform are counted and logged. */
  reportsResponses: boolean;
}

/** Storing of responses. */
export interface CacheSpec {
  /** Time to live of responses whose upstream states none. */
  ttlMs: number;
  methods: readonly string[];
  /** Cookies do not matter to the responses. */
  ignoresCookies: boolean;
  /** Names of cookies whose values select a response. */
  keyCookies: readonly string[];
  /** Names of cookies that do not matter; `*` at the end stands for any rest. */
  ignoredCookies: readonly string[];
  /** Responses of other versions are not used; absent: there are no versions. */
  version?: string;
}

/** Settings of all optional steps. */
export interface StepSpecs {
  clientCertificate?: ClientCertificateSpec;
  /** Requests must carry an API key that opens the route. */
  requiresApiKey?: true;
  /** Tenants that may use the route; absent: all. */
  tenants?: readonly string[];
  cors?: CorsSpec;
  openapi?: OpenApiSpec;
  rewrite?: readonly RewriteRule[];
  redirect?: RedirectSpec;
  respond?: RespondSpec;
  files?: FilesSpec;
  cache?: CacheSpec;
  mirror?: MirrorSpec;
  record?: RecordSpec;
  compression?: CompressionSpec;
  /** Rules after the global policy. */
  policy?: readonly PolicyRule[];
  addresses?: AddressesSpec;
  rateLimits?: readonly RateLimitSpec[];
  concurrency?: ConcurrencySpec;
  sticky?: StickySpec;
  guests?: GuestsSpec;
  ai?: AiSpec;
}
