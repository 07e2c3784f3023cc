// The configuration's schema: what is accepted, what is refused, and in which words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "@platform/kernel/config";
import { type GateConfig, gateDefinition } from "../../src/config/document.ts";

function load(text: string, env: Record<string, string> = {}, argv: string[] = []): GateConfig {
  const loaded = loadConfig(gateDefinition, {
    argv: ["--config", "gate.json", ...argv],
    env,
    readFile: () => text,
  });
  assert.equal(loaded.kind, "run");
  return loaded.kind === "run" ? (loaded.config as GateConfig) : assert.fail();
}

function loadRoute(route: Record<string, unknown>): GateConfig["routes"][number] {
  const config = load(JSON.stringify({ routes: [{ prefix: "/a", target: "http://t", ...route }] }));
  return config.routes[0] ?? assert.fail();
}

function refuse(text: string, env: Record<string, string> = {}): string {
  try {
    load(text, env);
  } catch (error) {
    return (error as Error).message;
  }
  return assert.fail(`accepted: ${text}`);
}

function refuseRoute(route: Record<string, unknown>): string {
  const text = JSON.stringify({ routes: [{ prefix: "/a", target: "http://t", ...route }] });
  return refuse(text).replace(/^gate\.json:\d+:\d+: routes\[0\]\.?/, "");
}

test("an empty document listens on port 8080 without routes", () => {
  const config = load("{}");
  assert.deepEqual(config.addr, { host: undefined, port: 8080 });
  assert.deepEqual(config.routes, []);
  assert.equal(config.max_body_size, 10_485_760);
  assert.equal(config.workers, "auto");
});

test("a fault is shown with its place in the file, and what is expected there", () => {
  const faults: [why: string, text: string, says: string][] = [
    ["broken JSON", '{\n  "addr": \n}', "gate.json:3:1: expected a value"],
    [
      "a bad address",
      '{"addr": "nine"}',
      'gate.json:1:10: addr: "nine" is not allowed: expected an address such as ":8080", "8080", "host:8080" or "[::1]:8080"',
    ],
    [
      "a field that is not built yet",
      '{"routes": [{"prefix": "/a", "target": "http://t", "semantic_cache_ttl_s": 60}]}',
      "gate.json:1:76: routes[0].semantic_cache_ttl_s: 60 is not allowed: is allowed only with semantic_cache",
    ],
    [
      "a wrong number",
      '{"max_headers": 3}',
      "gate.json:1:17: max_headers: 3 is not allowed: expected an integer from 16 to 4096",
    ],
  ];
  for (const [why, text, says] of faults) assert.equal(refuse(text), says, why);
});

test("a refused URL is shown without its password", () => {
  const text = refuse('{"routes": [{"prefix": "/", "target": "http://me:pass-word@host"}]}');
  assert.match(text, /routes\[0\]\.target: "http:\/\/me:\[redacted\]@host" is not allowed/);
  assert.ok(!text.includes("pass-word"));
});

test("identity_fields has a default, is replaced as a whole and contains only field names", () => {
  assert.deepEqual(load("{}").identity_fields, [
    "X-User",
    "X-Forwarded-User",
    "Remote-User",
    "X-SSL-Client-Cert",
    "X-Forwarded-Uri",
    "X-Forwarded-Method",
    "X-Original-Uri",
    "X-Original-Url",
    "X-Original-Method",
    "X-Rewrite-Url",
  ]);
  const own = load('{"identity_fields": ["X-Me"]}');
  assert.deepEqual(own.identity_fields, ["X-Me"]);
  for (const name of ["", "X Me", "X-Me:", "Host", "content_length", "transfer-encoding"]) {
    assert.match(refuse(JSON.stringify({ identity_fields: [name] })), /identity_fields/, name);
  }
});

test("a prefix with path parameters is refused", () => {
  assert.match(refuseRoute({ prefix: "/a;b" }), /no path parameters/);
});

test("raw_path goes together with strip_prefix, and with no other change of the path", () => {
  const target = "http://t";
  const route = { prefix: "/a", target, raw_path: true };
  assert.equal(
    load(JSON.stringify({ routes: [{ ...route, strip_prefix: true }] })).routes.length,
    1,
  );
  for (const other of [{ replace_prefix: "/b" }, { rewrite: [{ pattern: "a", to: "/b" }] }]) {
    assert.match(refuseRoute({ ...route, ...other }), /is not allowed with raw_path/);
    assert.match(refuseRoute({ ...route, ...other, strip_prefix: true }), /is not allowed with/);
  }
});

test("the tenant of secrets has a default, and alone stops nothing", () => {
  assert.equal(load("{}").secret_tenant_id, "default");
  assert.equal(load("{}", { PLATFORM_SECRET_TENANT_ID: "acme" }).secret_tenant_id, "acme");
});

test("0, an empty string and an empty list mean unset", () => {
  const config = load(
    JSON.stringify({
      addr: "",
      auth_token: "",
      tls_cert: "",
      tls_key: "",
      max_body_size: 0,
      trusted_proxies: [],
      workers: 0,
      routes: [
        {
          prefix: "/a",
          host: "",
          target: "http://t",
          targets: [],
          targets_weighted: [],
          rate_limit_rpm: 0,
          cache_methods: [],
          middleware: "",
          canary_auto_promote: false,
          enable_prompt_guard: false,
          load_balancer: "",
          max_body_size: 0,
          access_log: false,
        },
      ],
    }),
  );
  assert.equal(config.auth_token, undefined);
  assert.equal(config.addr.port, 8080);
  assert.equal(config.workers, "auto");
  assert.equal(config.max_body_size, 10_485_760);
  assert.deepEqual(config.routes, [{ prefix: "/a", target: "http://t" }]);
});

test("the route format of the specification is accepted", () => {
  assert.deepEqual(
    loadRoute({
      target: undefined,
      targets_weighted: [
        { url: "http://a:1/base", weight: 90 },
        { url: "https://b", weight: 10 },
      ],
      load_balancer: "least_conn",
      auth: { type: "bearer", jwks_url: "https://id/jwks", required_scope: "read" },
      status: { anything: ["is", "ignored"] },
    }),
    {
      prefix: "/a",
      targets_weighted: [
        { url: "http://a:1/base", weight: 90 },
        { url: "https://b", weight: 10 },
      ],
      load_balancer: "least_conn",
      auth: { type: "bearer", jwks_url: "https://id/jwks", required_scope: "read" },
    },
  );
});

for (const spelling of ["round_robin", "round-robin", "roundrobin"]) {
  test(`load_balancer ${spelling} is read as round_robin`, () => {
    assert.equal(loadRoute({ load_balancer: spelling }).load_balancer, "round_robin");
  });
}

test("cluster and region have the defaults of the specification", () => {
  const { cluster, region } = load("{}");
  assert.deepEqual([cluster, region], ["default", "us-east"]);
  const env = { PLATFORM_CLUSTER: "blue", PLATFORM_REGION: "eu" };
  const set = load("{}", env);
  assert.deepEqual([set.cluster, set.region], ["blue", "eu"]);
});

test("hosts are compared in lower case and without a trailing dot", () => {
  assert.equal(loadRoute({ host: "API.Example.com." }).host, "api.example.com");
});

test("prefixes are normalized like request paths", () => {
  assert.equal(loadRoute({ prefix: "/%61b%c3%a9/%7Ex" }).prefix, "/ab%C3%A9/~x");
  const routes = [
    { prefix: "/ab", target: "http://t" },
    { prefix: "/%61b", target: "http://t" },
  ];
  assert.match(
    refuse(JSON.stringify({ routes })),
    /routes\[1\]\.prefix: .*routes\[0\] has the same/,
  );
});

test("environment and flags win over the file, in this order", () => {
  const file = JSON.stringify({ addr: ":1", max_headers: 20 });
  assert.equal(load(file, { PLATFORM_GATE_ADDR: ":2" }).addr.port, 2);
  assert.equal(load(file, { PLATFORM_GATE_ADDR: ":2" }, ["--addr", ":3"]).addr.port, 3);
  assert.equal(load(file, { PLATFORM_JWT_SECRET: "s" }).jwt_secret, "s");
  assert.equal(load(file, { PLATFORM_AUTO_TLS: "false" }).auto_tls, false);
});

test("discovery is DNS with a domain, or a URL", () => {
  for (const text of ["dns+srv://svc.test", "dns+srv://svc.test?server=[::1]:53", "https://x/y"]) {
    assert.equal(load("{}", { PLATFORM_DISCOVERY: text }).discovery, text);
  }
  for (const text of ["true", "consul://a", "dns+srv://a..b", "dns+srv://a?server=ns.test"]) {
    const fault = refuse("{}", { PLATFORM_DISCOVERY: text });
    assert.match(fault, /^environment PLATFORM_DISCOVERY: .*expected "dns\+srv:\/\/DOMAIN"/);
  }
});

test("both spellings of the guard are one, and its settings require it", () => {
  assert.deepEqual(loadRoute({ enable_prompt_guard: true }).prompt_guard, true);
  assert.equal(
    Object.hasOwn(loadRoute({ enable_prompt_guard: true }), "enable_prompt_guard"),
    false,
  );
  const route = { enable_prompt_guard: true, prompt_guard_action: "report" };
  assert.equal(loadRoute(route).prompt_guard_action, "report");
  assert.match(refuseRoute({ prompt_guard_threshold: 0.5 }), /only with prompt_guard/);
  assert.match(refuseRoute({ prompt_guard: true, prompt_guard_threshold: 1.5 }), /threshold/);
  assert.match(refuseRoute({ prompt_guard: true, prompt_guard_allow: ["("] }), /RE2/);
});

test("both spellings of the cache of answers are one, and its settings require it", () => {
  const route = loadRoute({ enable_semantic_cache: true, semantic_cache_ttl_s: 60 });
  assert.equal(route.semantic_cache, true);
  assert.equal(Object.hasOwn(route, "enable_semantic_cache"), false);
  assert.match(refuseRoute({ semantic_cache_threshold: 0.9 }), /only with semantic_cache/);
  assert.match(refuseRoute({ semantic_cache: true, semantic_cache_threshold: 2 }), /threshold/);
  assert.match(refuse('{"embedding": {"url": "http://x"}}'), /embedding\.model/);
  assert.match(refuse('{"embedding": {"url": "x", "model": "m"}}'), /embedding\.url/);
});

test("settings of redaction require it, and their names and patterns are checked", () => {
  const route = { pii_redact: true, pii_patterns: { CUSTOMER_ID: "K-[0-9]{6}" } };
  assert.deepEqual(loadRoute(route).pii_patterns, route.pii_patterns);
  assert.match(refuseRoute({ pii_mode: "mask" }), /^pii_mode: .*only with pii_redact/);
  assert.match(refuseRoute({ pii_redact: true, pii_entities: ["name"] }), /^pii_entities/);
  const bad = { pii_redact: true, pii_patterns: { id: "x" } };
  assert.match(refuseRoute(bad), /pii_patterns.*capital letters/);
  const broken = { pii_redact: true, pii_patterns: { ID: "(?=x)" } };
  assert.match(refuseRoute(broken), /pii_patterns.*RE2/);
});

test("a limit by tokens has a number", () => {
  assert.match(refuseRoute({ semantic_rate_limit: true }), /^semantic_rate_limit: .*requires/);
  const route = { semantic_rate_limit: true, semantic_token_limit_per_min: 100 };
  assert.equal(loadRoute(route).semantic_token_limit_per_min, 100);
  const off = { semantic_rate_limit: false, semantic_token_limit_per_min: 100 };
  assert.equal(loadRoute(off).semantic_rate_limit, false);
});

test("models of a route stand with or without a target, and their settings are checked", () => {
  const model = (name: string) => ({ url: `http://${name}`, model: name });
  const routing = { primary: model("a"), fallback: model("b") };
  assert.deepEqual(loadRoute({ llm_routing: routing }).llm_routing, routing);
  assert.deepEqual(loadRoute({ llm_routing: routing, target: undefined }).llm_routing, routing);
  const refused: [change: object, message: RegExp][] = [
    [{ min_confidence: 0.5 }, /must be set together/],
    [{ confidence_header: "x-a" }, /must be set together/],
    [{ confidence_header: "x a", min_confidence: 1 }, /confidence_header/],
    [{ fallback: undefined }, /fallback/],
    [{ on_status: [200] }, /on_status/],
    [{ primary: { url: "ftp://x", model: "m" } }, /http or https/],
    [{ primary: { url: "http://x", model: "a b" } }, /primary\.model/],
    [{ primary: { ...model("a"), auth: { env: "A", file: "b" } } }, /exactly one of env, file/],
  ];
  for (const [change, message] of refused)
    assert.match(refuseRoute({ llm_routing: { ...routing, ...change } }), message);
  const redirect = { target: undefined, redirect: { to: "/x" }, llm_routing: routing };
  assert.match(refuseRoute(redirect), /^llm_routing: .*redirect, which is no upstream/);
});

const refusedRoutes: [why: string, route: Record<string, unknown>, message: RegExp][] = [
  ["a bad name of middleware", { middleware: "../m" }, /^middleware: .*expected the name/],
  ["a digest that is too short", { middleware: "m@12ab" }, /^middleware: .*expected the name/],
  [
    "a split beside middleware",
    { middleware: "m", wasm_split: { targets: [{ middleware_name: "m", weight: 1 }] } },
    /^wasm_split: .*is not allowed with middleware/,
  ],
  [
    "a split without weight",
    { wasm_split: { targets: [{ middleware_name: "m", weight: 0 }] } },
    /^wasm_split.targets: .*sum above 0/,
  ],
  [
    "a split that is sticky by nothing known",
    { wasm_split: { targets: [{ middleware_name: "m", weight: 1 }], sticky: "user" } },
    /^wasm_split.sticky: .*expected none, ip, cookie/,
  ],
  [
    "settings without middleware",
    { middleware_config: "a" },
    /^middleware_config: .*is allowed only/,
  ],
  ["no target", { target: undefined }, /^target: is required: set exactly one of target, targets/],
  ["two kinds of target", { targets: ["http://b"] }, /^targets: .*exactly one of target, targets/],
  ["a target without scheme", { target: "localhost:9000" }, /^target: "localhost:9000" is not/],
  ["another scheme", { target: "ftp://x" }, /^target: "ftp:\/\/x" .*http or https URL/],
  ["a service without a name", { target: "service://-" }, /^target: .*expected a service such as/],
  [
    "a service elsewhere",
    { mirror: { target: "service://a" } },
    /^mirror.target: .*only target and targets can name a service/,
  ],
  ["HTTP/2 upstreams", { target: "h2c://x" }, /^target: .*not available yet/],
  ["credentials in a target", { target: "http://u:p@x" }, /without user name and password/],
  ["a query in a target", { target: "http://x/?a=1" }, /^target: .*no query and no fragment/],
  ["a bad port", { target: "http://x:99999" }, /^target: "http:\/\/x:99999" is not allowed/],
  [
    "a repeated target",
    { target: undefined, targets: ["http://x", "http://x"] },
    /expected distinct URLs/,
  ],
  [
    "weights that sum to 0",
    { target: undefined, targets_weighted: [{ url: "http://x", weight: 0 }] },
    /^targets_weighted: .*sum above 0$/,
  ],
  [
    "a negative weight",
    { target: undefined, targets_weighted: [{ url: "http://x", weight: -1 }] },
    /^targets_weighted\[0\]\.weight: -1 is not allowed: expected an integer from 0/,
  ],
  ["an unknown strategy", { load_balancer: "fastest" }, /^load_balancer: "fastest" .*"least_conn"/],
  ["an unknown key", { trget: "http://x" }, /^trget: unknown key; did you mean "target"\?/],
  ["a prefix without slash", { prefix: "api" }, /^prefix: "api" .*starts with "\/"$/],
  ["a prefix with a query", { prefix: "/a?b" }, /^prefix: .*without query/],
  ["a climbing prefix", { prefix: "/a/../b" }, /^prefix: .*segments "\." or "\.\."$/],
  ["an encoded climb", { prefix: "/a/%2e%2e/b" }, /^prefix: .*segments/],
  ["a prefix too deep", { prefix: "/a".repeat(121) }, /^prefix: .*at most 120 segments$/],
  ["an encoded slash", { prefix: "/a%2Fb" }, /^prefix: .*encoded slash/],
  ["a host with a port", { host: "a:80" }, /^host: "a:80" .*without port/],
  [
    "a wrong type",
    { max_body_size: "10MB" },
    /^max_body_size: "10MB" .*expected an integer from 1/,
  ],
  [
    "a header rule for Host",
    { request_headers: { set: { Host: "up.example" } } },
    /^request_headers\.set\.Host: the name "Host" is not allowed: expected a field that requests do not require$/,
  ],
  ["a negative size", { max_body_size: -1 }, /^max_body_size: -1 is not allowed/],
  ["a certificate without its key", { client_cert_path: "c" }, /^client_key_path: is required/],
  ["an unknown kind of auth", { auth: { type: "basic" } }, /^auth\.type: "basic" .*"bearer"/],
  [
    "a scope on an open route",
    { auth: { type: "none", required_scope: "a" } },
    /type "none" does not use it$/,
  ],
  [
    "a limit by header without its name",
    { rate_limits: [{ by: "header", rpm: 1 }] },
    /^rate_limits\[0\]\.name: .*is required with by: "header"/,
  ],
  [
    "a limit by address with a name",
    { rate_limits: [{ by: "ip", name: "x", rpm: 1 }] },
    /^rate_limits\[0\]\.name: .*is not allowed/,
  ],
  [
    "a queue without a concurrency",
    { max_queue_size: 5 },
    /^max_queue_size: .*requires max_concurrent_requests/,
  ],
  [
    "a canary without two weighted targets",
    { canary_auto_promote: true },
    /^canary_auto_promote: .*requires exactly two targets_weighted/,
  ],
  ["an error rate above 1", { canary_max_error_rate: 1.5 }, /^canary_max_error_rate: /],
  [
    "a circuit that is not known",
    { circuit_breaker: { threshold: 1 } },
    /^circuit_breaker\.?(?:threshold)?: /,
  ],
  [
    "a rewrite that is no expression",
    { rewrite: [{ pattern: "(a", to: "/" }] },
    /^rewrite\[0\]\.pattern: .*regular expression/,
  ],
  [
    "a group that its pattern does not have",
    { rewrite: [{ pattern: "^/(a)", to: "/$2" }] },
    /^rewrite\[0\]\.to: .*a group of the pattern, not \$2/,
  ],
  [
    "a named group that its pattern does not have",
    { rewrite: [{ pattern: "^/", to: "/${no}" }] },
    /^rewrite\[0\]\.to: .*not \$\{no\}/,
  ],
  [
    "a query in a rewritten path",
    { rewrite: [{ pattern: "^/", to: "/a?b=1" }] },
    /^rewrite\[0\]\.to: .*without a query/,
  ],
  [
    "credentials for all origins",
    { cors: { origins: ["*"], credentials: true } },
    /^cors\.origins: .*with credentials/,
  ],
  [
    "a header rule for an identity field",
    { request_headers: { set: { "X-User-Id": "x" } } },
    /^request_headers\.set\.X-User-Id: /,
  ],
  [
    "a line break in a header rule",
    { response_headers: { set: { "X-A": "a\r\nb" } } },
    /^response_headers\.set\.X-A: /,
  ],
  ["two rules for its prefix", { strip_prefix: true, replace_prefix: "/x" }, /strip_prefix/],
  ["a target beside a response", { respond: { body: "x" } }, /respond.*is not allowed/],
  ["no origin of responses", { target: undefined }, /exactly one of target/],
  ["a bad CIDR in a list", { ip_allowlist: ["10.0.0.0/33"] }, /^ip_allowlist\[0\]: .*CIDR/],
];

for (const [why, route, message] of refusedRoutes) {
  test(`a route is refused for ${why}`, () => {
    assert.match(refuseRoute(route), message);
  });
}

test("errors for unknown keys name line, column and the similar key", () => {
  assert.equal(
    refuse('{\n  "adr": ":1"\n}'),
    'gate.json:2:3: adr: unknown key; did you mean "addr"?',
  );
});

test("two routes with the same prefix and host are refused", () => {
  const routes = [
    { prefix: "/a", host: "X.org", target: "http://t" },
    { prefix: "/a", target: "http://t" },
    { prefix: "/a", host: "x.org", target: "http://t" },
  ];
  assert.match(
    refuse(JSON.stringify({ routes })),
    /routes\[2\]\.prefix: .*routes\[0\] has the same/,
  );
});

for (const value of [
  "10.0.0.0/33",
  "300.1.1.1",
  "::/129",
  "10.0.0.0/-1",
  "example.com",
  "fe80::1%eth0",
]) {
  test(`${value} is refused as a trusted proxy`, () => {
    assert.match(
      refuse(JSON.stringify({ trusted_proxies: [value] })),
      /trusted_proxies\[0\]: .*CIDR/,
    );
  });
}

test("the values of secrets are not shown", () => {
  assert.doesNotMatch(refuse(JSON.stringify({ auth_token: ["hunter2"] })), /hunter2/);
});
