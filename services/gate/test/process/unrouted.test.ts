// Requests that the gateway itself answers: no route, the index page, documentation, metrics, and their log.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { makeFolder, runtimes } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate } from "../fixture/shared-gate.ts";

const TOKEN = "an-operator-token-of-some-length";
const METRICS_TOKEN = "a-metrics-token-of-some-length";

const gate = shareGate({ runtime: runtimes[0]!, config: { workers: 1, routes: [] } });

// Unlike fetch, it sends any Host.
function ask(url: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    })
      .on("error", reject)
      .end();
  });
}

// First, while no other test has used up the lines of the log.
test("a flood of errors is logged with at most 20 lines a second and worker, and the rest is counted", async () => {
  const { url, lines, waitForLine } = await gate.use({});
  const isRefusal = ({ msg }: { msg: string }): boolean => msg === "request refused";
  const before = lines().filter(isRefusal).length;
  await Promise.all(Array.from({ length: 200 }, () => ask(`${url}/nowhere`)));
  await new Promise((resolve) => setTimeout(resolve, 1100));
  const first = lines().filter(isRefusal).length - before;
  assert.ok(first >= 20 && first <= 60, String(first));
  await ask(`${url}/nowhere`);
  const line = await waitForLine(({ omitted_lines: omitted }) => Number(omitted) > 0);
  assert.ok(Number(line["omitted_lines"]) >= 140 - first);
});

test("every error that the gateway responds with is logged with its trace id", async () => {
  const { url, waitForLine } = await gate.use({
    routes: [{ prefix: "/down", target: "http://127.0.0.1:1" }],
  });
  for (const [path, status, code] of [
    ["/nowhere", 502, "route_not_found"],
    ["/down/x", 502, "upstream_unreachable"],
    ["/nul%00", 400, "bad_request"],
  ] as const) {
    const answer = await fetch(`${url}${path}`);
    assert.equal(answer.status, status);
    const { trace_id: traceId } = (await answer.json()) as { trace_id: string };
    assert.match(traceId, /^[0-9a-f]{32}$/);
    const line = await waitForLine(({ trace_id }) => trace_id === traceId);
    assert.equal(line["level"], status >= 500 ? "warn" : "info");
    assert.deepEqual([line["code"], line["status"], line["path"]], [code, status, path]);
    assert.equal(line["method"], "GET");
  }
});

test("a request without a route is a 502, or a 404 with no_route_status", async () => {
  const plain = await gate.use({});
  assert.equal(await ask(`${plain.url}/nowhere`), 502);
  const chosen = await gate.use({ no_route_status: 404 });
  const answer = await fetch(`${chosen.url}/nowhere`);
  assert.equal(answer.status, 404);
  assert.equal(((await answer.json()) as { code: string }).code, "not_found");
});

test("the index page and the page of the documentation are open to this machine only", async (t) => {
  const index = join(makeFolder(t), "index.html");
  writeFileSync(index, "<title>what runs</title>");
  const { url } = await gate.use({
    auth_token: TOKEN,
    metrics_token: METRICS_TOKEN,
    index_file: index,
  });
  const page = await fetch(url);
  assert.equal(page.status, 200);
  assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
  assert.equal(await page.text(), "<title>what runs</title>");
  assert.equal(await ask(`${url}/?query`), 200);
  assert.equal(await ask(`${url}/other`), 401, "only the root has a page");
  const docs = await (await fetch(`${url}/api/docs`)).text();
  const [, font = ""] = /url\("(\/api\/docs\/fonts\/[^"]+)"\)/.exec(docs) ?? [];
  const open = ["/", "/api/docs", font];
  const foreign = [
    { "x-forwarded-for": "192.0.2.1" },
    { forwarded: "for=192.0.2.1" },
    { host: "example.com" },
    { origin: "https://example.com" },
    { "sec-fetch-site": "cross-site" },
  ];
  for (const path of open) {
    assert.equal(await ask(`${url}${path}`), 200, path);
    for (const headers of foreign)
      assert.equal(await ask(`${url}${path}`, headers), 401, `${path} ${JSON.stringify(headers)}`);
  }
  assert.equal(await ask(`${url}/api/v1/routes`), 401, "the API itself stays closed");
  assert.doesNotMatch(docs, /\/api\/v1\/routes|GATE_VERSION/, "the page holds no data");
  const operator = { authorization: `Bearer ${TOKEN}` };
  for (const path of ["/metrics", "/api/docs/openapi.json"]) {
    assert.equal(await ask(`${url}${path}`), 401, `${path} needs a token on this machine, too`);
    assert.equal(await ask(`${url}${path}`, operator), 200);
  }
  const bearer = { "x-forwarded-for": "192.0.2.1", authorization: `Bearer ${METRICS_TOKEN}` };
  assert.equal(await ask(`${url}/metrics`, bearer), 200);
  for (const path of ["/api/v1/routes", "/api/docs/openapi.json"])
    assert.equal(await ask(`${url}${path}`, bearer), 401, "the token is for metrics only");
});

test("without auth_token, metrics and documentation are open to this machine only", async () => {
  const { url } = await gate.use({});
  for (const path of ["/metrics", "/api/docs", "/api/docs/openapi.json"]) {
    assert.equal(await ask(`${url}${path}`), 200, path);
    assert.equal(await ask(`${url}${path}`, { forwarded: "for=192.0.2.1" }), 403, path);
  }
});

test("a route for / wins over the index page", async (t) => {
  const index = join(makeFolder(t), "index.html");
  writeFileSync(index, "index");
  const upstream = createServer((_request, response) => response.writeHead(404).end());
  const routes = [{ prefix: "/", target: await serve(t, upstream) }];
  const { url } = await gate.use({ index_file: index, routes });
  assert.equal(await ask(url), 404);
});
