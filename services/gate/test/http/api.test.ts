// The API's resources over a control plane whose changes go to a list instead of threads.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { openService } from "@platform/chassis";
import { loadConfig } from "@platform/kernel/config";
import { createEmbeddedLifecycle } from "@platform/kernel/lifecycle";
import { createLogger, type Logger } from "@platform/kernel/log";
import { toLiveSecret } from "@platform/kernel/secrets";
import { systemClock } from "@platform/kernel/time";
import { makeCertificate } from "@platform/testing/certificates";
import { type GateConfig, gateDefinition } from "../../src/config/document.ts";
import { checkLoaded } from "../../src/config/load.ts";
import { AccessControl } from "../../src/access/access-control.ts";
import { FolderLock } from "../../src/access/folder-lock.ts";
import { type CertificateView, Certificates } from "../../src/control/certificates.ts";
import type { AiControl } from "../../src/assembly/ai.ts";
import { AiBudgets } from "../../src/control/ai-budgets.ts";
import { AiFigures } from "../../src/control/ai-figures.ts";
import { SemanticIndex } from "../../src/control/semantic-index.ts";
import { AiLedger } from "../../src/control/ai-ledger.ts";
import { Controller } from "../../src/control/controller.ts";
import { MiddlewareStore } from "../../src/control/middleware-store.ts";
import { buildState } from "../../src/control/gate-state.ts";
import { diffRoutes } from "../../src/control/differ.ts";
import { GateMetrics } from "../../src/telemetry/gate-metrics.ts";
import { buildGlobals, type UsedLogs } from "../../src/control/globals.ts";
import { ListenerCertificate } from "../../src/control/listener-certificate.ts";
import { MetricsStream } from "../../src/telemetry/metrics-stream.ts";
import { RouteSeries } from "../../src/telemetry/route-series.ts";
import { createOverlayFile, getOverlayPath } from "../../src/control/overlay-file.ts";
import { NetworkLists } from "../../src/resolve/network-lists.ts";
import { OidcSignIn } from "../../src/sign-in/oidc-sign-in.ts";
import { GitSource } from "../../src/source/git-source.ts";
import { CanaryEngine } from "../../src/resilience/canary-engine.ts";
import { RoutePlanner } from "../../src/control/planner.ts";
import type { Change } from "../../src/worker/worker-handle.ts";
import { createGateApi } from "../../src/http/api.ts";
import { openOperation } from "../../src/http/feeds.ts";
import { listInternalRoutes } from "../../src/http/internal-routes.ts";
import {
  ActiveCounts,
  CONTROL_CALLER_HEADER,
  CONTROL_SECRET_HEADER,
  MetricBlock,
  AI_ACCOUNTS_BYTES,
  AiAccounts,
  SharedCache,
  LinkFigures,
  SharedLinkState,
  SharedTargetState,
  allocateCache,
  allocateMetricBlock,
  allocateSharedBuffers,
} from "../../src/shared-state/index.ts";

const secret = "the secret of this start";

function readGateConfig(path: string): GateConfig {
  const loaded = loadConfig(gateDefinition, { argv: ["--config", path], env: {} });
  assert.ok(loaded.kind === "run" && loaded.command === "");
  return checkLoaded(loaded).config;
}

async function makeGate(context: TestContext, document: Record<string, unknown> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "gate-api-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "gate.json");
  writeFileSync(path, JSON.stringify(document));
  const config = readGateConfig(path);
  const changes: Change[] = [];
  const refusal: { message?: string } = {};
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    service: "gate",
    format: "json",
    write: (line) => void lines.push(JSON.parse(line)),
  });
  const shared = allocateSharedBuffers(1);
  const active = new ActiveCounts(shared);
  const targets = new SharedTargetState(shared.targets);
  const block = new MetricBlock(allocateMetricBlock());
  const planner = new RoutePlanner({
    routesMax: 100,
    targetsMax: 100,
    linksMax: 1_000,
    reuseDelayMs: 0,
    readNowMs: () => 0,
    onRouteReuse: () => undefined,
    onLinkReuse: () => undefined,
    onTargetReuse: () => undefined,
  });
  const certificate = new ListenerCertificate(log);
  const buildAll = (of: GateConfig, logs: UsedLogs) =>
    buildGlobals(
      of,
      {
        control: { socketPath: "/s", secret },
        hasConsole: false,
        console: undefined,
        internalRoutes: listInternalRoutes("all"),
        configPath: path,
        descriptors: { limit: undefined, workers: 1 },
        certificate,
        followToken: (_name, value) => toLiveSecret(value),
      },
      logs,
    );
  const store = createOverlayFile(getOverlayPath(path));
  const networks = new NetworkLists();
  const state = buildState(config, await store.read(), { buildGlobals: buildAll, networks });
  planner.plan(diffRoutes(new Map(), state.resolved)).commit();
  const lock = new FolderLock(`${path}.state`, false);
  const middleware = new MiddlewareStore({
    folder: `${path}.state`,
    isEphemeral: false,
    lock,
    clock: systemClock,
    log,
    listRoutes: () => controller.state.routes.values(),
    runExclusive: (work) => controller.runExclusive(work),
    apply: (guests) => {
      if (refusal.message !== undefined) return Promise.reject(new Error(refusal.message));
      changes.push({ guests, upsert: [], remove: [] });
      return Promise.resolve();
    },
  });
  await middleware.load();
  const controller: Controller = new Controller(
    {
      planner,
      store,
      networks,
      certificate,
      log,
      loadConfig: () => readGateConfig(path),
      buildGlobals: buildAll,
      apply: (change) => {
        if (refusal.message !== undefined) return Promise.reject(new Error(refusal.message));
        changes.push(change);
        return Promise.resolve();
      },
      hasMiddleware: (reference) => middleware.has(reference),
    },
    state,
  );
  const metrics = new GateMetrics({
    listBlocks: () => [block],
    planner,
    active,
    targets,
    countLiveWorkers: () => 1,
    cache: { entries: 0, bytes: 0, evicted: 0 },
    countRoutes: () => controller.state.routes.size,
    readSharedMs: () => 0,
  });
  const stream = new MetricsStream({
    readTotals: () => metrics.readTotals(),
    readConnections: () => metrics.readConnections(),
    readBreakers: () => ({}),
    readModels: () => ({ requests: 0, tokens: 0, cacheHits: 0 }),
    readNow: () => new Date(0),
    readMonotonicMs: () => 0,
    onError: (error) => {
      throw error;
    },
  });
  const access = new AccessControl({
    folder: `${path}.state`,
    isEphemeral: false,
    lock,
    clock: systemClock,
    log,
    runExclusive: (work) => controller.runExclusive(work),
    apply: (change) => {
      changes.push({ access: change, upsert: [], remove: [] });
      return Promise.resolve();
    },
  });
  await access.load();
  context.after(() => access.close());
  const signIn = new OidcSignIn({
    findClient: (client) => controller.findOidcClient(client),
    access,
    clock: systemClock,
    log,
  });
  const certificates = new Certificates(() => controller.state);
  const lifecycle = createEmbeddedLifecycle(log);
  context.after(() => lifecycle.close());
  const service = openService({ name: "gate", version: "0", config: {}, log, lifecycle });
  service.metrics.collect(metrics);
  const operation = openOperation(service, stream, certificates, () => 0, secret, {
    findSpans: async () => [],
  });
  const ai = await openTestAi(`${path}.state`, log, (change) => changes.push(change));
  const gitOptions = {
    folder: dirname(path),
    configPath: path,
    validate: () => Promise.resolve(undefined),
    reload: () => Promise.resolve(),
  };
  const api = createGateApi({
    controller,
    ai,
    planner,
    canaries: new CanaryEngine({
      readNowMs: () => 0,
      readTimeMs: () => 0,
      stored: {},
      store: () => undefined,
      log: () => undefined,
    }),
    cache: new SharedCache(allocateCache(1_048_576, 1), 1),
    readCircuit: () => "closed",
    readWeight: () => undefined,
    metrics,
    stream,
    series: new RouteSeries({
      planner,
      links: new SharedLinkState(new SharedArrayBuffer(4_096)),
      figures: new LinkFigures(new SharedArrayBuffer(4_096)),
      clock: systemClock,
    }),
    access,
    certificates,
    automatic: undefined,
    listSources: () => [],
    gitops: { git: new GitSource(gitOptions), secret: undefined },
    signIn,
    middleware,
    readConsoleUrl: () => undefined,
    service,
    operation,
  });
  const call = async (method: string, target: string, body?: unknown, headers = {}) => {
    const request = new Request(`http://127.0.0.1${target}`, {
      method,
      headers: {
        [CONTROL_SECRET_HEADER]: secret,
        [CONTROL_CALLER_HEADER]: "operator",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined
        ? {}
        : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const answer = await api.fetch(request);
    const text = await answer.text();
    const type = answer.headers.get("content-type") ?? "";
    return {
      status: answer.status,
      type,
      headers: answer.headers,
      text,
      json: type.includes("json") ? JSON.parse(text) : undefined,
    };
  };
  const rewrite = (next: unknown): void =>
    writeFileSync(path, typeof next === "string" ? next : JSON.stringify(next));
  return {
    call,
    changes,
    refusal,
    lines,
    active,
    block,
    planner,
    controller,
    rewrite,
    path,
    store,
  };
}

const shop = { prefix: "/shop", target: "http://127.0.0.1:9000" };

test("a route is registered, updated, listed and removed, with a one-line response each", async (context) => {
  const { call, changes } = await makeGate(context);
  const added = await call("POST", "/api/v1/routes", shop);
  assert.deepEqual(
    [added.status, added.type.split(";")[0], added.text],
    [200, "text/plain", "route /shop registered\n"],
  );
  const again = await call("POST", "/api/v1/routes", shop);
  assert.equal(again.text, "route /shop unchanged\n");
  const updated = await call("POST", "/api/v1/routes", { ...shop, strip_prefix: true });
  assert.equal(updated.text, "route /shop updated\n");
  const listed = await call("GET", "/api/v1/routes");
  assert.deepEqual(listed.json, [
    {
      ...shop,
      strip_prefix: true,
      status: {
        source: "api",
        etag: listed.json[0].status.etag,
        targets: [
          {
            url: "http://127.0.0.1:9000",
            active: 0,
            ejected: false,
            circuit: "closed",
            share: 100,
          },
        ],
      },
    },
  ]);
  const removed = await call("DELETE", "/api/v1/routes?prefix=/shop");
  assert.deepEqual([removed.status, removed.text], [200, "route /shop removed\n"]);
  assert.deepEqual((await call("GET", "/api/v1/routes")).json, []);
  assert.equal(changes.length, 3, "an unchanged route must not reach the workers");
});

test("the response of GET can be sent back without any change: status is ignored", async (context) => {
  const { call, changes } = await makeGate(context, { routes: [{ ...shop, host: "X.org" }] });
  const [route] = (await call("GET", "/api/v1/routes")).json;
  assert.equal((await call("POST", "/api/v1/routes", route)).text, "route x.org/shop unchanged\n");
  assert.equal(changes.length, 0);
});

test("a change contains only the changed route", async (context) => {
  const others = ["/a", "/b", "/c"].map((prefix) => ({ prefix, target: "http://t" }));
  const { call, changes } = await makeGate(context, { routes: others });
  await call("POST", "/api/v1/routes", shop);
  assert.deepEqual(
    changes.map(({ upsert, remove, globals }) => [upsert.map((it) => it.prefix), remove, globals]),
    [[["/shop"], [], undefined]],
  );
});

test("DELETE requires a prefix, responds with 404 for an unknown one, and suggests hosts", async (context) => {
  const { call } = await makeGate(context, { routes: [{ ...shop, host: "x.org" }] });
  assert.equal((await call("DELETE", "/api/v1/routes")).status, 400);
  const unknown = await call("DELETE", "/api/v1/routes?prefix=/nowhere");
  assert.deepEqual([unknown.status, unknown.json.code], [404, "not_found"]);
  const hostless = await call("DELETE", "/api/v1/routes?prefix=/shop");
  assert.equal(hostless.status, 404);
  assert.match(hostless.json.detail, /add &host= with one of: x\.org/);
  const right = await call("DELETE", "/api/v1/routes?prefix=/shop&host=X.org");
  assert.equal(right.text, "route x.org/shop removed\n");
});

test("differently escaped prefixes are the same route", async (context) => {
  const { call } = await makeGate(context);
  await call("POST", "/api/v1/routes", { ...shop, prefix: "/caf%c3%a9" });
  const again = await call("POST", "/api/v1/routes", { ...shop, prefix: "/%63af%C3%A9" });
  assert.equal(again.text, "route /caf%C3%A9 unchanged\n");
  const removed = await call("DELETE", "/api/v1/routes?prefix=/caf%25c3%25a9");
  assert.equal(removed.text, "route /caf%C3%A9 removed\n");
});

test("If-Match refuses a change of routes that others changed in between", async (context) => {
  const { call } = await makeGate(context);
  const etag = (await call("GET", "/api/v1/routes")).headers.get("etag") ?? "";
  const first = await call("POST", "/api/v1/routes", shop, { "if-match": etag });
  assert.equal(first.status, 200);
  const late = await call("DELETE", "/api/v1/routes?prefix=/shop", undefined, { "if-match": etag });
  assert.deepEqual([late.status, late.json.code], [412, "precondition_failed"]);
  const fresh = await call("DELETE", "/api/v1/routes?prefix=/shop", undefined, {
    "if-match": `"other", ${first.headers.get("etag")}`,
  });
  assert.equal(fresh.status, 200);
});

test("tags of two routes: a change of one does not refuse a change of the other", async (context) => {
  const other = { ...shop, prefix: "/other" };
  const { call } = await makeGate(context, { routes: [shop, other] });
  const readTags = async (): Promise<string[]> =>
    (await call("GET", "/api/v1/routes")).json.map(
      ({ status }: { status: { etag: string } }) => status.etag,
    );
  const [ofShop = "", ofOther = ""] = await readTags();
  assert.notEqual(ofShop, ofOther);
  const theirs = { ...other, raw_path: true };
  const set = (route: object, headers: Record<string, string>) =>
    call("POST", "/api/v1/routes", route, headers);
  assert.equal((await set(theirs, { "If-Match": ofOther })).status, 200);
  assert.deepEqual((await readTags())[0], ofShop);
  assert.equal((await set({ ...shop, raw_path: true }, { "If-Match": ofShop })).status, 200);
  const late = await set(other, { "If-Match": ofOther });
  assert.deepEqual([late.status, late.json.current], [412, theirs]);
  const check = await call("POST", "/api/v1/routes/check", other);
  assert.equal(check.json.before_etag, late.json.route_etag);
  assert.equal((await set(other, { "If-Match": late.json.route_etag })).status, 200);
  const path = "/api/v1/routes?prefix=/other";
  const mine = { "If-Match": late.json.route_etag };
  assert.equal((await call("DELETE", path, undefined, mine)).status, 412);
  assert.equal((await call("DELETE", path, undefined, { "If-Match": ofOther })).status, 200);
  const gone = await set(theirs, { "If-Match": ofOther });
  assert.deepEqual([gone.status, gone.json.current, gone.json.route_etag], [412, null, null]);
});

test("the tag of a single route is not the tag of all routes", async (context) => {
  const { call } = await makeGate(context, { routes: [shop] });
  const read = await call("GET", "/api/v1/routes");
  assert.notEqual(read.json[0].status.etag, read.headers.get("etag"));
});

test("If-None-Match: * adds a route, and does not replace one", async (context) => {
  const { call } = await makeGate(context);
  const add = () => call("POST", "/api/v1/routes", shop, { "If-None-Match": "*" });
  assert.equal((await add()).status, 200);
  const again = await add();
  assert.deepEqual([again.status, again.json.current], [412, shop]);
});

const badBodies: [what: string, body: unknown, status: number, detail: RegExp][] = [
  ["no JSON", "{", 400, /^body:1:2: /],
  [
    "an unknown key",
    { ...shop, strip_prefx: 1 },
    400,
    /^body:1:\d+: strip_prefx: unknown key; did you mean/,
  ],
  ["no target", { prefix: "/a" }, 400, /target: is required: set exactly one of/],
  [
    "a field of another one",
    { ...shop, semantic_cache_ttl_s: 10 },
    400,
    /semantic_cache_ttl_s: .*only with semantic_cache/,
  ],
  ["a list", [], 400, /^body:1:1: /],
  [
    "a duplicate key",
    '{"prefix":"/a","prefix":"/b","target":"http://t"}',
    400,
    /^body:1:16: duplicate key/,
  ],
  [
    "a missing certificate",
    { ...shop, root_ca_path: "/no/such" },
    400,
    /root_ca_path "\/no\/such" cannot be read/,
  ],
];

for (const [what, body, status, detail] of badBodies) {
  test(`POST of ${what} is refused with its place and changes nothing`, async (context) => {
    const { call, changes } = await makeGate(context);
    const answer = await call("POST", "/api/v1/routes", body);
    assert.equal(answer.status, status);
    assert.equal(answer.type, "application/problem+json");
    assert.match(answer.json.detail, detail);
    assert.equal(changes.length, 0);
  });
}

test("a body of another type and a body that is too large are refused", async (context) => {
  const { call } = await makeGate(context);
  const xml = await call("POST", "/api/v1/routes", "<a/>", { "content-type": "text/xml" });
  assert.equal(xml.status, 415);
  const huge = await call("POST", "/api/v1/routes", `"${"x".repeat(16 * 1024 * 1024)}"`);
  assert.equal(huge.status, 413);
});

test("JSON is accepted under curl's default content type", async (context) => {
  const { call } = await makeGate(context);
  const type = { "content-type": "application/x-www-form-urlencoded" };
  assert.equal((await call("POST", "/api/v1/routes", shop, type)).status, 200);
});

test("a change that the workers refuse is not kept", async (context) => {
  const { call, refusal, store, controller } = await makeGate(context);
  await call("POST", "/api/v1/routes", shop);
  refusal.message = "no";
  const failed = await call("POST", "/api/v1/routes", { prefix: "/b", target: "http://t" });
  assert.equal(failed.status, 500);
  assert.doesNotMatch(failed.text, /"no"/);
  assert.deepEqual([...(await store.read()).upserts.keys()], [" /shop"]);
  assert.deepEqual([...controller.state.routes.keys()], [" /shop"]);
});

test("refused changes release their slots", async (context) => {
  const { call, refusal } = await makeGate(context);
  refusal.message = "no";
  for (let index = 0; index < 120; index++) {
    await call("POST", "/api/v1/routes", { prefix: `/r${index}`, target: `http://t${index}` });
  }
  delete refusal.message;
  assert.equal((await call("POST", "/api/v1/routes", shop)).status, 200);
});

test("concurrent changes are all applied in order", async (context) => {
  const { call, changes } = await makeGate(context);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      call("POST", "/api/v1/routes", { prefix: `/r${index}`, target: "http://t" }),
    ),
  );
  assert.ok(answers.every((answer) => answer.status === 200));
  assert.equal((await call("GET", "/api/v1/routes")).json.length, 20);
  assert.equal(changes.length, 20);
});

test("a wrong method on an internal route is 405 with the allowed methods", async (context) => {
  const { call } = await makeGate(context);
  const answer = await call("PUT", "/api/v1/routes", shop);
  assert.deepEqual(
    [answer.status, answer.headers.get("allow")],
    [405, "GET, POST, DELETE, HEAD, OPTIONS"],
  );
});

test("budgets are set, corrected, shown and removed, and reach the workers", async (context) => {
  const { call, changes } = await makeGate(context);
  const path = "/api/v1/admin/ai-billing";
  const set = await call("POST", path, { tenant_id: "acme", max_cost_per_day_usd: 1.5 });
  assert.equal(set.status, 200);
  const { resets_at: resetsAt, ...budget } = set.json;
  assert.deepEqual(budget, {
    tenant_id: "acme",
    max_cost_per_day_usd: 1.5,
    max_tokens_per_minute: null,
    spent_today_usd: 0,
    reserved_usd: 0,
  });
  assert.match(String(resetsAt), /^\d{4}-\d{2}-\d{2}T00:00:00\.000Z$/);
  assert.deepEqual(changes.at(-1)?.budgets, [
    { tenant: "acme", maxPicoPerDay: 1_500_000_000_000n },
  ]);
  const corrected = await call("POST", path, { tenant_id: "acme", adjust_usd: 0.25 });
  assert.equal(corrected.json.spent_today_usd, 0.25);
  assert.equal(corrected.json.max_cost_per_day_usd, 1.5, "the limits stay");
  const summary = await call("GET", path);
  assert.deepEqual(summary.json.per_tenant, { acme: { tokens: 0, cost_usd: 0.25 } });
  assert.equal(summary.json.total_cost_usd, 0.25);
  assert.equal((await call("DELETE", `${path}?tenant_id=acme`)).status, 200);
  assert.equal((await call("DELETE", `${path}?tenant_id=acme`)).status, 404);
  assert.deepEqual(changes.at(-1)?.budgets, []);
  assert.equal((await call("GET", path)).json.total_cost_usd, 0.25, "the figures stay");
  const attribution = await call("GET", "/api/v1/admin/ai-cost-attribution");
  assert.deepEqual(attribution.json, {
    routes: [],
    summary: { total_tokens: 0, total_cost_usd: 0, estimated_savings: 0, savings_percent: 0 },
  });
  for (const body of [
    { max_cost_per_day_usd: 1 },
    { tenant_id: "a", max_cost_per_day_usd: -1 },
    { tenant_id: "a", max_tokens_per_minute: 1.5 },
    { tenant_id: "a", max_cost: 1 },
  ])
    assert.equal((await call("POST", path, body)).status, 400, JSON.stringify(body));
  assert.equal((await call("GET", `${path}?from=2026-02-30`)).status, 400);
});

test("legacy paths map to the versioned ones", async (context) => {
  const { call } = await makeGate(context);
  assert.equal((await call("POST", "/api/routes", shop)).status, 200);
  assert.equal((await call("GET", "/api/routes")).json.length, 1);
  assert.equal((await call("GET", "/api/admin/connections")).status, 200);
});

/** Ledger and budgets without workers. */
async function openTestAi(
  folder: string,
  log: Logger,
  onChange: (change: Change) => void,
): Promise<AiControl> {
  const budgets = new AiBudgets({
    folder,
    isEphemeral: false,
    log,
    runExclusive: (work) => work(),
    apply: (list) => {
      onChange({ budgets: list, upsert: [], remove: [] });
      return Promise.resolve();
    },
  });
  const ledger = new AiLedger({
    folder,
    accounts: new AiAccounts(new SharedArrayBuffer(AI_ACCOUNTS_BYTES)),
    seed: 1,
    readTimeMs: Date.now,
    log,
    hasBudget: (tenant) => budgets.has(tenant),
  });
  await ledger.open();
  const index = new SemanticIndex({ embed: () => Promise.resolve(undefined), readNowMs: Date.now });
  return { figures: new AiFigures(), ledger, budgets, index, gateway: "gate" };
}

test("the API serves every internal route except probes", async (context) => {
  const { call } = await makeGate(context);
  const [, font] = /\/fonts\/([\w.-]+)/.exec((await call("GET", "/api/docs")).text) ?? [];
  assert.ok(font !== undefined);
  for (const { path, access, match } of listInternalRoutes("all")) {
    if (access === "probe") continue;
    const isAction = path.endsWith("/canary/") || path.endsWith("/certificates/");
    const below = {
      "/canary/": "x/hold",
      "/certificates/": "x/renew",
      "/oidc/": "login",
      "/fonts/": font,
    };
    const sample = path + (Object.entries(below).find(([end]) => path.endsWith(end))?.[1] ?? "x");
    const answer = await call(isAction ? "POST" : "GET", match === "below" ? sample : path);
    const isKnown = /API key x does not exist|has the ID x|auto_tls is off/.test(
      String(answer.json?.detail),
    );
    assert.ok(answer.status !== 404 || isKnown, path);
  }
});

test("all requests without the secret of this start are refused", async (context) => {
  const { call } = await makeGate(context);
  for (const given of ["", "wrong", `${secret}x`]) {
    const answer = await call("GET", "/api/v1/routes", undefined, {
      [CONTROL_SECRET_HEADER]: given,
    });
    assert.equal(answer.status, 403);
  }
});

test("console sync replaces all routes or none", async (context) => {
  const { call, changes, store } = await makeGate(context, {
    routes: [shop, { prefix: "/old", target: "http://t" }],
  });
  const bad = await call("POST", "/api/v1/admin/console/sync", {
    routes: [
      { prefix: "/new", target: "http://t" },
      { prefix: "/new", target: "http://u" },
    ],
  });
  assert.equal(bad.status, 400);
  assert.match(bad.json.detail, /routes\[1\]\.prefix: .*same prefix and host/);
  assert.equal(changes.length, 0);
  const good = await call("POST", "/api/v1/admin/console/sync", {
    routes: [
      { ...shop, access_log: true },
      { prefix: "/new", target: "http://t" },
    ],
  });
  assert.deepEqual(good.json, { applied: true, added: 1, updated: 1, removed: 1 });
  assert.equal(changes.length, 1);
  const snapshot = (await call("GET", "/api/v1/admin/console/sync")).json;
  assert.deepEqual(Object.keys(snapshot), ["version", "routes", "connections", "metrics"]);
  assert.deepEqual(
    snapshot.routes.map((route: { prefix: string }) => route.prefix),
    ["/shop", "/new"],
  );
  assert.deepEqual([...(await store.read()).tombstones.keys()], [" /old"]);
  assert.equal((await call("POST", "/api/v1/admin/console/sync", snapshot)).json.updated, 0);
});

test("a reload applies the file and keeps the API's changes", async (context) => {
  const { call, rewrite, changes } = await makeGate(context, { routes: [shop] });
  await call("POST", "/api/v1/routes", { prefix: "/api-route", target: "http://t" });
  rewrite({ addr: ":1", max_headers: 99, routes: [shop, { prefix: "/two", target: "http://t" }] });
  const answer = await call("POST", "/api/v1/admin/reload");
  assert.deepEqual(answer.json, {
    applied: true,
    added: 1,
    updated: 0,
    removed: 0,
    restart_required: ["addr"],
  });
  assert.equal(changes.at(-1)?.globals?.limits.headersMax, 99);
  assert.deepEqual(
    (await call("GET", "/api/v1/routes")).json.map((route: { prefix: string }) => route.prefix),
    ["/shop", "/two", "/api-route"],
  );
});

test("a reload of an invalid configuration changes nothing and reports the reason", async (context) => {
  const { call, rewrite, changes, lines } = await makeGate(context, { routes: [shop] });
  rewrite('{\n "routes": [{"prefix": "/x", "target": "nonsense"}]\n}');
  const answer = await call("POST", "/api/v1/admin/reload");
  assert.equal(answer.status, 400);
  assert.match(
    answer.json.detail,
    /gate\.json:2:\d+: routes\[0\]\.target: "nonsense" is not allowed/,
  );
  assert.equal(changes.length, 0);
  assert.ok(lines.some((line) => /nothing has changed/.test(String(line["msg"]))));
});

test("changes are logged with caller, before and after", async (context) => {
  const { call, lines } = await makeGate(context, { auth_token: "hunter2", routes: [shop] });
  await call("POST", "/api/v1/routes", { ...shop, strip_prefix: true });
  const line = lines.find((it) => it["audit"] === true) ?? assert.fail();
  assert.equal(line["caller"], "operator");
  assert.deepEqual(line["before"], shop);
  assert.deepEqual(line["after"], { ...shop, strip_prefix: true });
  assert.doesNotMatch(JSON.stringify(lines), /hunter2/);
});

test("connections and metrics are read from the workers' memory", async (context) => {
  const { call, active, block, planner, controller } = await makeGate(context, { routes: [shop] });
  const [key] = controller.state.routes.keys();
  const spec = planner.findSpec(key ?? assert.fail()) ?? assert.fail();
  active.add(0, spec.targets[0]?.slot ?? -1, 1);
  block.addRequest(block.findSeries(spec.metricsId, 1, 200), 0.003);
  assert.deepEqual((await call("GET", "/api/v1/admin/connections")).json, {
    "http://127.0.0.1:9000": 1,
  });
  const text = (await call("GET", "/metrics")).text;
  assert.match(
    text,
    /platform_http_requests_total\{route="\/shop",method="GET",status="200"\} 1\n/,
  );
  assert.match(text, /platform_gate_upstream_active\{upstream="http:\/\/127\.0\.0\.1:9000"\} 1\n/);
});

test("the metrics path responds with 426 without an upgrade", async (context) => {
  const { call } = await makeGate(context);
  assert.equal((await call("GET", "/api/v1/admin/metrics/ws")).status, 426);
});

test("the documentation contains the API and the active routes", async (context) => {
  const { call } = await makeGate(context, {
    routes: [shop, { prefix: "/s/", target: "http://t" }],
  });
  const document = (await call("GET", "/api/docs/openapi.json")).json;
  for (const path of ["/api/v1/routes", "/shop/{path}", "/s/{path}", "/metrics"]) {
    assert.ok(path in document.paths, path);
  }
  const body = document.paths["/api/v1/routes"].post.requestBody.content["application/json"];
  assert.equal(body.schema.properties.prefix.type, "string");
  await call("DELETE", "/api/v1/routes?prefix=/shop");
  const after = (await call("GET", "/api/docs/openapi.json")).json;
  assert.ok(!("/shop/{path}" in after.paths));
  assert.match((await call("GET", "/api/docs")).type, /^text\/html/);
});

test("a check of a route shows its difference, and changes nothing", async (context) => {
  const { call, changes, path } = await makeGate(context, { routes: [shop] });
  const check = async (route: object) => (await call("POST", "/api/v1/routes/check", route)).json;
  const [now] = (await call("GET", "/api/v1/routes")).json;
  assert.deepEqual(await check({ ...shop, strip_prefix: true }), {
    change: "updated",
    before: shop,
    after: { ...shop, strip_prefix: true },
    before_etag: now.status.etag,
    fields: ["strip_prefix"],
    warnings: [],
  });
  assert.equal((await check(shop)).change, "unchanged");
  const added = await check({ prefix: "/new", target: "http://127.0.0.1:1" });
  assert.deepEqual([added.change, added.before], ["added", null]);
  const invalid = await call("POST", "/api/v1/routes/check", { prefix: "/new", target: "x" });
  assert.equal(invalid.status, 400);
  const { json } = await call("GET", "/api/v1/routes");
  assert.deepEqual(
    json.map(({ prefix, strip_prefix: strip }: Record<string, unknown>) => [prefix, strip]),
    [["/shop", undefined]],
  );
  assert.deepEqual([changes.length, existsSync(getOverlayPath(path))], [0, false]);
});

test("a change of routes that others have changed shows both versions", async (context) => {
  const { call } = await makeGate(context, { routes: [shop] });
  const read = await call("GET", "/api/v1/routes");
  const etag = read.headers.get("etag") ?? "";
  const mine = { ...shop, raw_path: true };
  const theirs = { ...shop, strip_prefix: true };
  assert.equal((await call("POST", "/api/v1/routes", theirs, { "If-Match": etag })).status, 200);
  for (const target of ["/api/v1/routes", "/api/v1/routes/check"]) {
    const refused = await call("POST", target, mine, { "If-Match": etag });
    assert.equal(refused.status, 412);
    assert.deepEqual([refused.json.current, refused.json.sent], [theirs, mine]);
    assert.equal(refused.headers.get("etag"), refused.json.etag);
    assert.notEqual(refused.json.etag, etag);
  }
});

test("upstreams are listed once, with the routes that use them", async (context) => {
  const { call } = await makeGate(context, {
    routes: [
      shop,
      { prefix: "/other", host: "x.org", target: shop.target, circuit_breaker: false },
    ],
  });
  assert.deepEqual((await call("GET", "/api/v1/admin/upstreams")).json, {
    upstreams: [
      {
        url: shop.target,
        active: 0,
        ejected: false,
        routes: [
          { route: "/shop", weight: 1, circuit: "closed" },
          { route: "x.org/other", weight: 1 },
        ],
      },
    ],
  });
});

test("the last changes are listed, the latest first, with their callers", async (context) => {
  const { call } = await makeGate(context);
  await call("POST", "/api/v1/routes", shop);
  await call("POST", "/api/v1/routes", { ...shop, strip_prefix: true });
  await call("DELETE", "/api/v1/routes?prefix=/shop");
  const list = async (limit: number) =>
    (await call("GET", `/api/v1/admin/changes?limit=${limit}`)).json.changes;
  const [last, before, ...more] = await list(2);
  assert.deepEqual(more, []);
  assert.deepEqual([last.what, last.actor, last.counts.removed], ["route removed", "operator", 1]);
  assert.deepEqual([before.what, before.updated], ["route set", ["/shop"]]);
  assert.equal(last.etag_before, before.etag_after);
  assert.equal((await list(200)).length, 3);
  assert.equal((await call("GET", "/api/v1/admin/changes?limit=201")).status, 400);
});

test("an action on a canary that does not exist is 404", async (context) => {
  const { call } = await makeGate(context, { routes: [shop] });
  for (const action of ["hold", "resume", "promote", "rollback"]) {
    assert.equal((await call("POST", `/api/v1/admin/canary/unknown/${action}`)).status, 404);
  }
});

const READER = { [CONTROL_CALLER_HEADER]: "reader rita" };

test("readers see routes without values that can be secrets, and change nothing", async (context) => {
  const route = {
    ...shop,
    request_headers: {
      set: { Authorization: "Basic up-1", "X-Tier": "up-2" },
      add: { "X-Key": "up-3" },
    },
    response_headers: { set: { "X-Api-Key": "down-1", "X-Frame-Options": "DENY" } },
    policy: 'allow * /shop/* if header.X-Partner == "pass word"\ndeny * *',
    auth: { type: "forward", url: "http://guard/check?key=guard-1" },
    middleware: "webhook",
    middleware_config: { keys: ["hook-1"] },
  };
  const respond = {
    prefix: "/fixed",
    respond: { status: 200, headers: { "Set-Cookie": "a=cookie-1", "X-Note": "seen" } },
  };
  const { call } = await makeGate(context, { routes: [route, respond] });
  const secrets = ["up-1", "up-2", "up-3", "down-1", "pass word", "guard-1", "cookie-1", "hook-1"];
  for (const path of [
    "/api/v1/routes",
    "/api/v1/admin/console/sync",
    "/api/v1/admin/changes",
    "/api/docs/openapi.json",
    "/api/v1/admin/api-keys",
  ]) {
    const { status, text } = await call("GET", path, undefined, READER);
    assert.equal(status, 200, path);
    for (const secret of secrets) assert.ok(!text.includes(secret), `${path} shows ${secret}`);
  }
  // The tags that the operator sees cover the secrets.
  await call("POST", "/api/v1/routes", { ...shop, prefix: "/more" });
  const tags: string[] = (await call("GET", "/api/v1/admin/changes")).json.changes.flatMap(
    ({ etag_before: before, etag_after: after }: Record<string, string>) => [before, after],
  );
  assert.ok(tags.length > 0 && tags.every((tag) => /^"[\w-]{22}"$/.test(tag)), tags.join());
  const bare = tags.map((tag) => tag.replaceAll('"', ""));
  const seen: string[] = [];
  for (const path of ["/api/v1/routes", "/api/v1/admin/console/sync", "/api/v1/admin/changes"]) {
    const { headers, text } = await call("GET", path, undefined, READER);
    const shown = `${headers.get("etag")} ${text}`;
    assert.ok(!bare.some((tag) => shown.includes(tag)), `${path}: a tag covers secrets`);
    seen.push(headers.get("etag") ?? "");
  }
  assert.equal(seen[0], seen[1], "readers have a tag of what they see");
  const [shown, fixed] = (await call("GET", "/api/v1/routes", undefined, READER)).json;
  assert.equal(shown.status.etag, undefined, "a tag covers secrets");
  assert.deepEqual(shown.request_headers.set, {
    Authorization: "[redacted]",
    "X-Tier": "[redacted]",
  });
  assert.equal(shown.response_headers.set["X-Frame-Options"], "DENY");
  assert.equal(shown.policy, "allow * /shop/* if header.X-Partner == [redacted]\ndeny * *");
  assert.equal(shown.auth.url, "http://guard/check?[redacted]");
  assert.equal(fixed.respond.headers["X-Note"], "seen");
  const all = (await call("GET", "/api/v1/routes")).text;
  assert.ok(all.includes("up-1") && all.includes("pass word"), "the operator sees everything");
  for (const [method, path] of [
    ["POST", "/api/v1/routes"],
    ["POST", "/api/v1/routes/check"],
    ["DELETE", "/api/v1/routes?prefix=/shop"],
    ["POST", "/api/v1/admin/reload"],
    ["POST", "/api/v1/admin/api-keys"],
  ] as const) {
    const answer = await call(method, path, method === "POST" ? shop : undefined, READER);
    assert.equal(answer.status, 403, path);
  }
  // A reader's view that an administrator sends back would replace the secrets.
  const back = await call("POST", "/api/v1/routes", shown);
  assert.equal(back.status, 400);
  assert.match(back.text, /placeholder of a hidden value/);
});

test("each certificate in use is listed once with its routes, and needs attention before it ends", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "gate-certificates-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const at = (name: string): string => join(folder, name);
  const names = "DNS:front.test,DNS:*.front.test,IP:192.0.2.1";
  makeCertificate(folder, "front", { days: 400, names });
  makeCertificate(folder, "client", { days: 5, names: "DNS:client.test" });
  makeCertificate(folder, "one", { days: 500, names: "DNS:one.test" });
  makeCertificate(folder, "two", { days: 600, names: "DNS:two.test" });
  const bundle = ["one", "two"].map((name) => readFileSync(at(`${name}.crt`), "utf8")).join("");
  writeFileSync(at("ca.pem"), bundle);
  // The chain ends before the certificate itself.
  const front = readFileSync(at("front.crt"), "utf8") + readFileSync(at("client.crt"), "utf8");
  writeFileSync(at("chain.pem"), front);
  const mutual = {
    target: "https://127.0.0.1:9443",
    client_cert_path: at("client.crt"),
    client_key_path: at("client.key"),
    root_ca_path: at("ca.pem"),
  };
  const tls = { tls_cert: at("front.crt"), tls_key: at("front.key") };
  const routes = [{ prefix: "/a", ...mutual }, { prefix: "/b", host: "b.test", ...mutual }, shop];
  const { call, controller, rewrite } = await makeGate(context, { ...tls, routes });
  const { status, json, text } = await call("GET", "/api/v1/admin/certificates", undefined, READER);
  assert.equal(status, 200);
  const summarize = (items: CertificateView[]) =>
    items.map(({ use, subject, status: found }) => `${use} ${subject} ${found}`);
  assert.deepEqual(summarize(json.items), [
    "listener CN=front valid",
    "client CN=client expiring",
    "ca CN=one valid",
    "ca CN=two valid",
  ]);
  const [first, client] = json.items;
  assert.deepEqual(first.names, ["front.test", "*.front.test", "192.0.2.1"]);
  assert.deepEqual([first.routes, first.file], [[], at("front.crt")]);
  assert.ok(first.days_left >= 398 && first.days_left <= 400);
  assert.match(first.fingerprint_sha256, /^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
  assert.deepEqual(client.routes, ["/a", "b.test/b"]);
  assert.equal(new Set(json.items.map(({ id }: CertificateView) => id)).size, 4);
  assert.ok(!text.includes("PRIVATE"));
  const attention = (await call("GET", "/api/v1/admin/attention")).json;
  assert.deepEqual(
    attention
      .filter(({ id }: Record<string, string>) => id?.startsWith("certificate"))
      .map(({ level, title }: Record<string, string>) => [level, title]),
    [["warning", "The certificate CN=client (upstreams) expires in 4 days"]],
  );

  const inDays = (days: number): CertificateView[] =>
    new Certificates(() => controller.state).list(Date.now() + days * 86_400_000);
  assert.deepEqual(summarize(inDays(495)), [
    "listener CN=front expired",
    "client CN=client expired",
    "ca CN=one expiring",
    "ca CN=two valid",
  ]);
  assert.equal(inDays(-1)[0]?.status, "not_yet_valid");

  rewrite({ ...tls, tls_cert: at("chain.pem"), routes });
  assert.equal((await call("POST", "/api/v1/admin/reload")).status, 200);
  const [chained] = inDays(0);
  assert.equal(chained?.status, "expiring");
  assert.match(chained?.detail ?? "", /CN=client of its chain ends at/);
});
