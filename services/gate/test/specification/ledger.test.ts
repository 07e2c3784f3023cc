// The ledger SPEC.md: every row of the specification is there, names tests that exist, or is refused as not available yet.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { routeAiFields } from "../../src/config/route-ai.ts";

const FIELDS =
  "prefix target targets load_balancer targets_weighted canary_auto_promote canary_promote_step canary_promote_sec canary_max_error_rate middleware response_middleware wasm_split rate_limit_rpm cache_ttl_seconds cache_methods access_log max_concurrent_requests max_queue_size queue_timeout_ms max_body_size ip_allowlist ip_blocklist client_cert_path client_key_path root_ca_path require_api_key allowed_tenants auth prompt_guard enable_prompt_guard pii_redact semantic_cache enable_semantic_cache semantic_rate_limit semantic_token_limit_per_min llm_routing".split(
    " ",
  );
const KEYS = ["addr", "auth_token", "tls_cert", "tls_key", "routes"];
const VARIABLES =
  "PLATFORM_JWT_SECRET PLATFORM_AUTO_TLS PLATFORM_AUTO_TLS_DOMAIN PLATFORM_CONFIG_STORE_BUCKET PLATFORM_DISCOVERY PLATFORM_SECRET_URL PLATFORM_SECRET_API_KEY PLATFORM_SECRET_TENANT_ID PLATFORM_GATE_LIMITS_REDIS_URL PLATFORM_REGISTRY PLATFORM_CLUSTER PLATFORM_REGION PLATFORM_OTLP_ENDPOINT".split(
    " ",
  );
const ENDPOINTS = [
  "GET /healthz",
  "GET /readyz",
  "GET /metrics",
  "GET /api/v1/routes",
  "POST /api/v1/routes",
  "DELETE /api/v1/routes",
  "POST /api/v1/routes/register",
  "POST /api/v1/admin/middleware/{name}",
  "GET /api/v1/admin/connections",
  "DELETE /api/v1/admin/cache",
  "POST /api/v1/admin/policy/reload",
  "POST /api/v1/admin/policy/revoke",
  "GET /api/v1/admin/ai-billing",
  "POST /api/v1/admin/ai-billing",
  "GET /api/v1/admin/ai-cost-attribution",
  "GET /api/v1/admin/metrics/ws",
  "POST /api/v1/admin/console/sync",
  "GET /api/v1/admin/console/sync",
  "POST /api/v1/gitops/webhook",
  "GET /api/docs",
  "GET /api/docs/openapi.json",
];

const tests = fileURLToPath(new URL("../", import.meta.url));
const rows = readFileSync(`${tests}../SPEC.md`, "utf8")
  .split("\n")
  .filter((line) => /^\| [^|]*`/.test(line))
  .map((line) => line.slice(1, -1).split(" | "))
  .map(([subject = "", covered = ""]) => ({ subject: subject.trim(), covered: covered.trim() }));
const reference = readFileSync(`${tests}../../../docs/reference/gate-configuration.md`, "utf8");

test("every test that the ledger names exists", () => {
  for (const { subject, covered } of rows) {
    if (covered.startsWith("later: ")) continue;
    for (const entry of covered.split("<br>")) {
      const [, file = "", title = ""] = /^`([\w/.-]+)`: (.+)$/.exec(entry) ?? [];
      assert.ok(file !== "" && existsSync(tests + file), `${subject}: ${entry}`);
      const text = readFileSync(tests + file, "utf8");
      const isThere = text.includes(`"${title}"`) || text.includes(`\`${title}\``);
      assert.ok(isThere, `${subject}: ${entry}`);
    }
  }
});

test("every key, field, variable and endpoint of the specification has a row", () => {
  const subjects = new Set(rows.flatMap(({ subject }) => subject.match(/`[^`]+`/g) ?? []));
  for (const name of [...KEYS, ...FIELDS, ...VARIABLES, ...ENDPOINTS]) {
    assert.ok(subjects.has(`\`${name}\``), name);
  }
});

test("every setting of AI routes has a row", () => {
  const subjects = rows.map(({ subject }) => subject).join("\n");
  for (const name of Object.keys(routeAiFields)) assert.ok(subjects.includes(`\`${name}`), name);
});

test("a field is marked as later if and only if it is refused as not available yet", () => {
  for (const field of FIELDS) {
    const row = rows.find(({ subject }) => subject === `\`${field}\``);
    const line = reference.split("\n").find((text) => text.startsWith(`| \`[].${field}\``)) ?? "";
    const isUnavailable = line.includes("Not available yet");
    assert.equal(row?.covered.startsWith("later: "), isUnavailable, field);
  }
});
