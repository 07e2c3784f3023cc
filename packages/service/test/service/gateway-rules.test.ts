// Gateway rules of a service: what is sent to the platform, and requests that did not come through the gateway.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gateway, route } from "@platform/service";
import { declared, readServiceRules } from "@platform/service/host";
import { startTestService } from "@platform/service/testing";
import { Service } from "../../src/service/service.ts";

gateway({ rate_limit_rpm: 60 });
route("GET", "/open", () => "open");
route("GET", "/notes/new", () => "new");
route("GET", "/notes/:id", { gateway: { ip_allowlist: ["10.0.0.0/8"] } }, () => "note");
route("POST", "/notes/new", () => "other method");
route("GET", "/notes/:id/x", () => "longer");
route("GET", "/:kind/:id", () => "less specific");

test("routes with rules are sent with those that take precedence over them, and no others", async () => {
  const rules = await readServiceRules(declared);
  assert.equal(rules?.restricts, false);
  const sent = rules.endpoints.map(({ path, restricts }) => [path, restricts]);
  assert.deepEqual(sent, [
    ["/notes/new", false],
    ["/notes/:id", true],
  ]);
  assert.match(rules.endpoints[1]!.declaredAt, /gateway-rules\.test\.ts:12:1$/);
  assert.match(rules.service!.declaredAt, /gateway-rules\.test\.ts:9:1$/);
});

test("without the gateway, a route whose rules restrict access admits only programs on this machine", async (context) => {
  const app = await startTestService();
  context.after(() => app.stop());
  const ask = async (path: string, headers: Record<string, string>): Promise<number> => {
    const answer = await app.fetch(path, { headers });
    await answer.body?.cancel();
    return answer.status;
  };
  const forwarded = { "X-Forwarded-For": "10.1.2.3" };
  assert.equal(await ask("/notes/1", {}), 200);
  assert.equal(await ask("/notes/1", forwarded), 403);
  assert.equal(await ask("/notes/1", { ...forwarded, "Platform-Rules": ".1" }), 403);
  assert.equal(await ask("/notes/new", forwarded), 200);
  assert.equal(await ask("/open", forwarded), 200);
});

test("wrong rules are reported with the place of their declaration, all at the same time", async () => {
  const service = new Service();
  service.declareGateway({ rate_limit_rpm: 1 });
  assert.throws(() => service.declareGateway({}), /one gateway: it is declared at .*\.test\.ts:/);
  const wrong = { gateway: { host: "a" } as object };
  service.declareRoute("GET", "/a", wrong, () => "");
  service.declareRoute("GET", "/b", { gateway: { max_queue_size: 1 } }, () => "");
  await assert.rejects(readServiceRules(service), ({ message }: Error) => {
    const lines = message.split("\n");
    assert.match(lines[0]!, /\.test\.ts:\d+:\d+: gateway of GET \/a: host is not allowed/);
    assert.match(lines[1]!, /GET \/b: max_queue_size requires max_concurrent_requests/);
    return lines.length === 2;
  });
});
