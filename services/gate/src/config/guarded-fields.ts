// Fields that name a file, an environment variable or an address: routes that users set may not name all of them.
import type { RouteConfig } from "./route.ts";

/** The kind of thing that a text of the configuration names. */
export type Named = "file" | "folder" | "variable" | "address" | "nothing";

/** A value that names something. */
export interface NamedValue {
  /** The field, as in {@link ROUTE_FIELDS}. */
  field: string;
  kind: Exclude<Named, "nothing">;
  value: string;
}

/** Every text of a route; `[]` stands for the entries of a list, `*` for the members of an object. */
export const ROUTE_FIELDS = {
  prefix: "nothing",
  host: "nothing",
  "methods[]": "nothing",
  "paths[]": "nothing",
  variant: "nothing",
  registered_by: "nothing",
  cache_version: "nothing",
  declared_at: "nothing",
  target: "address",
  "targets[]": "address",
  "targets_weighted[].url": "address",
  "auth.jwks_url": "address",
  "auth.required_scope": "nothing",
  "auth.issuer": "address",
  "auth.audience": "nothing",
  "auth.trust_domain": "nothing",
  "auth.url": "address",
  "auth.request_headers[]": "nothing",
  "auth.upstream_headers[]": "nothing",
  "auth.client_id": "nothing",
  "auth.client_secret_env": "variable",
  "auth.client_secret_file": "file",
  "auth.scopes[]": "nothing",
  "auth.claim_headers.*": "nothing",
  "allowed_tenants[]": "nothing",
  policy: "nothing",
  "client_certificate_names[]": "nothing",
  "cors.origins[]": "nothing",
  "cors.methods[]": "nothing",
  "cors.headers[]": "nothing",
  "cors.expose_headers[]": "nothing",
  "request_headers.set.*": "nothing",
  "request_headers.add.*": "nothing",
  "request_headers.remove[]": "nothing",
  "response_headers.set.*": "nothing",
  "response_headers.add.*": "nothing",
  "response_headers.remove[]": "nothing",
  replace_prefix: "nothing",
  "rewrite[].pattern": "nothing",
  "rewrite[].to": "nothing",
  // Clients follow it, not the gateway.
  "redirect.to": "nothing",
  "respond.body": "nothing",
  "respond.headers.*": "nothing",
  "compress.types[]": "nothing",
  "mirror.target": "address",
  "record.redact[]": "nothing",
  "files.root": "folder",
  // Below `root`.
  "files.index": "nothing",
  "files.fallback": "nothing",
  "files.cache_control": "nothing",
  // A document is an object; a text is the path of its file.
  openapi: "file",
  client_cert_path: "file",
  client_key_path: "file",
  root_ca_path: "file",
  "ip_allowlist[]": "nothing",
  ip_allowlist_file: "file",
  "ip_blocklist[]": "nothing",
  ip_blocklist_file: "file",
  "rate_limits[].name": "nothing",
  "health_check.path": "nothing",
  "sticky.cookie": "nothing",
  "cache_key_cookies[]": "nothing",
  "cache_ignore_cookies[]": "nothing",
  middleware: "nothing",
  response_middleware: "nothing",
  middleware_config: "nothing",
  "wasm_split.sticky": "nothing",
  "wasm_split.targets[].middleware_name": "nothing",
  "upstream_auth.header": "nothing",
  "upstream_auth.env": "variable",
  "upstream_auth.file": "file",
  "upstream_auth.prefix": "nothing",
  "prompt_guard_allow[]": "nothing",
  prompt_guard_url: "address",
  "pii_patterns.*": "nothing",
  "llm_routing.primary.url": "address",
  "llm_routing.primary.model": "nothing",
  "llm_routing.primary.auth.header": "nothing",
  "llm_routing.primary.auth.env": "variable",
  "llm_routing.primary.auth.file": "file",
  "llm_routing.primary.auth.prefix": "nothing",
  "llm_routing.fallback.url": "address",
  "llm_routing.fallback.model": "nothing",
  "llm_routing.fallback.auth.header": "nothing",
  "llm_routing.fallback.auth.env": "variable",
  "llm_routing.fallback.auth.file": "file",
  "llm_routing.fallback.auth.prefix": "nothing",
  "llm_routing.confidence_header": "nothing",
} as const satisfies Readonly<Record<string, Named>>;

/**
 * Every key of the configuration with a text. They come from the configuration file, the environment and the command line:
 * no user can set them.
 */
export const GLOBAL_KEYS = {
  access_log_path: "file",
  acme_ca: "file",
  acme_directory_url: "address",
  acme_dns: "address",
  acme_eab_hmac_key: "nothing",
  acme_eab_kid: "nothing",
  acme_email: "nothing",
  acme_profile: "nothing",
  addr: "address",
  ai_prices: "file",
  admin_addr: "address",
  auth_token: "nothing",
  auto_tls_ask_url: "address",
  auto_tls_domain: "nothing",
  certificates: "file",
  certificates_dir: "folder",
  client_certificates: "file",
  cluster: "nothing",
  config_store_access_key: "nothing",
  config_store_bucket: "address",
  config_store_ca: "file",
  config_store_endpoint: "address",
  config_store_region: "nothing",
  config_store_secret_key: "nothing",
  console_addr: "address",
  console_client_id: "nothing",
  console_client_secret: "nothing",
  console_encryption_keys: "nothing",
  console_issuer: "address",
  console_redis_url: "address",
  console_services: "address",
  console_url: "address",
  cookie_keys: "nothing",
  data_dir: "folder",
  discovery: "address",
  embedding: "address",
  files_roots: "folder",
  "gitops.dir": "folder",
  "gitops.secret": "nothing",
  http_addr: "address",
  local_addr: "address",
  identity_fields: "nothing",
  index_file: "file",
  jwks_url: "address",
  jwt_audience: "nothing",
  jwt_issuer: "nothing",
  jwt_secret: "nothing",
  limits_redis_url: "address",
  metrics_token: "nothing",
  otlp_endpoint: "address",
  private_networks: "nothing",
  record_path: "file",
  region: "nothing",
  registry: "address",
  revocations_token: "nothing",
  revocations_url: "address",
  secret_api_key: "nothing",
  secret_ca: "file",
  secret_certificates_path: "nothing",
  secret_jwt_path: "nothing",
  secret_mount: "nothing",
  secret_tenant_id: "nothing",
  secret_url: "address",
  secret_variables: "variable",
  tls_cert: "file",
  tls_key: "file",
  trusted_proxies: "nothing",
} as const satisfies Readonly<Record<string, Named>>;

const GUARDED = Object.entries(ROUTE_FIELDS).flatMap(([field, kind]) =>
  kind === "nothing" ? [] : [{ field, kind, steps: field.replaceAll("[]", ".[]").split(".") }],
);

/** The values of a route that name something, in the order of {@link ROUTE_FIELDS}. */
export function listNamed(route: RouteConfig): NamedValue[] {
  return GUARDED.flatMap(({ field, kind, steps }) =>
    listTexts(route, steps).map((value) => ({ field, kind, value })),
  );
}

function listTexts(value: unknown, [step, ...rest]: readonly string[]): string[] {
  if (step === undefined) return typeof value === "string" ? [value] : [];
  if (typeof value !== "object" || value === null) return [];
  const inner =
    step === "[]" || step === "*"
      ? Object.values(value)
      : Object.hasOwn(value, step)
        ? [(value as Record<string, unknown>)[step]]
        : [];
  return inner.flatMap((each) => listTexts(each, rest));
}
