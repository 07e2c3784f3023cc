// Rules of projects: the closed list of fields, and values that would leave out who may use a route.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkRules, restrictsAccess, type GatewayRules } from "../../src/route-rules/index.ts";

function listFaults(rules: unknown, inherited?: GatewayRules): string[] {
  return checkRules(rules, inherited).map(({ path, message }) => [...path, message].join(" "));
}

test("rules of all allowed kinds are accepted", () => {
  const rules: GatewayRules = {
    rate_limit_rpm: 60,
    rate_limits: [{ by: "header", name: "X-Plan", rpm: 5 }],
    max_body_size: 1_000,
    response_timeout_ms: 2_000,
    retry: { attempts: 1 },
    cors: { origins: ["https://app.example.com"] },
    cache_ttl_seconds: 60,
    ip_allowlist: ["10.0.0.0/8"],
    policy: "deny POST *",
    require_api_key: true,
    allowed_tenants: ["acme"],
    auth: { type: "bearer", required_scope: "notes:read" },
  };
  assert.deepEqual(listFaults(rules), []);
  assert.deepEqual(listFaults({ max_queue_size: 3 }, { max_concurrent_requests: 5 }), []);
});

test("hosts, targets, files, variables and other services are refused by name", () => {
  const refused: [rules: unknown, message: RegExp][] = [
    [{ host: "a.example" }, /^host is not allowed: the platform chooses host/],
    [{ target: "http://10.0.0.1" }, /^target is not allowed/],
    [{ ip_allowlist_file: "/etc/passwd" }, /^ip_allowlist_file is not allowed: .* no file$/],
    [{ mirror: { target: "http://10.0.0.1" } }, /^mirror is not allowed: .* other service/],
    [{ auth: { type: "bearer", jwks_url: "http://x" } }, /^auth jwks_url is not allowed: .*tokens/],
    [{ auth: { type: "bearer", audience: "x" } }, /^auth audience is not allowed/],
    [{ auth: { type: "forward" } }, /^auth type/],
    [{ rate_limit_rmp: 1 }, /^rate_limit_rmp is not allowed: the fields are .*rate_limit_rpm/],
    [{ policy: "allow" }, /^policy line 1/],
    [{ cache_methods: ["GET"] }, /^cache_methods requires cache_ttl_seconds/],
    [JSON.parse('{"__proto__": {"rate_limit_rpm": 1}}'), /^__proto__ is not allowed/],
    [{ constructor: 1 }, /^constructor is not allowed/],
    [Object.create({ rate_limit_rpm: 1 }), /^expected an object of rules/],
    [[], /^expected an object/],
  ];
  for (const [rules, message] of refused) {
    const faults = listFaults(rules);
    assert.equal(faults.length, 1, JSON.stringify(faults));
    assert.match(faults[0]!, message);
  }
});

test("an access rule that is empty by mistake is refused, as it would restrict nobody", () => {
  for (const rules of [{ ip_allowlist: [] }, { allowed_tenants: [] }, { policy: "" }]) {
    assert.match(listFaults(rules)[0]!, /is empty, and would restrict nobody/);
  }
  assert.deepEqual(listFaults({ ip_allowlist: undefined }), ["ip_allowlist is undefined"]);
  assert.deepEqual(listFaults({ rate_limit_rpm: 0, require_api_key: false }), []);
  assert.equal(restrictsAccess({ auth: { type: "none" }, require_api_key: false }), false);
  assert.equal(restrictsAccess({ ip_blocklist: ["10.0.0.1"] }), true);
});
