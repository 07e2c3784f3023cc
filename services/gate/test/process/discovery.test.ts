// Service discovery: SRV records of bind9, and an HTTP endpoint.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test, type TestContext } from "node:test";
import { type Bind, bindSkip, startBind } from "@platform/testing/bind";
import { waitFor } from "@platform/testing/wait";
import { findFault } from "../fixture/find-fault.ts";
import { makeFolder, runtimes, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

const [runtime] = runtimes;

interface Source {
  address: string;
  version: string;
  error: string | null;
}

async function readSource(url: string): Promise<Source | undefined> {
  const answer = await fetch(new URL("/api/v1/admin/sources", url));
  const { items } = (await answer.json()) as { items: (Source & { kind: string })[] };
  return items.find(({ kind }) => kind === "discovery");
}

/** The targets of the first route. */
async function listTargets(url: string): Promise<unknown[]> {
  const routes = await (await fetch(new URL("/api/v1/routes", url))).json();
  const [{ status }] = routes as [{ status: { targets: unknown[] } }];
  return status.targets;
}

/** Starts an upstream that answers with its name; its port. */
async function startUpstream(context: TestContext, name: string): Promise<number> {
  const server = createServer((request, response) => response.end(`${name} ${request.url}`));
  return Number(new URL(await serve(context, server)).port);
}

async function count(url: string, requests: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let sent = 0; sent < requests; sent++) {
    const answer = await fetch(url);
    const text = answer.status === 200 ? await answer.text() : String(answer.status);
    counts[text] = (counts[text] ?? 0) + 1;
  }
  return counts;
}

const SRV = "_orders._tcp.svc.test";

/** Sets more records than are used, and then one with this port. */
async function tryMany(bind: Bind, url: string, port: number): Promise<void> {
  const many = Array.from({ length: 300 }, (_, at) => `add ${SRV} 1 SRV 0 1 ${at + 1} ns.svc.test`);
  bind.update("svc.test", ...many);
  // A response of this size comes over TCP; 256 of its addresses are used.
  await waitFor(async () => (await listTargets(url)).length === 256, "many addresses");
  bind.update("svc.test", `delete ${SRV} SRV`, `add ${SRV} 1 SRV 0 0 ${port} host.svc.test`);
  await waitFor(async () => (await listTargets(url)).length === 1, "one address");
}

test(
  "SRV records: lowest priority, weights, changes without an error, and a server that is down",
  { skip: bindSkip },
  async (context) => {
    const folder = makeFolder(context);
    const bind = await startBind(folder, ["svc.test"]);
    context.after(() => bind.stop());
    const [one, two, spare] = await Promise.all(
      ["one", "two", "spare"].map((name) => startUpstream(context, name)),
    );
    bind.update(
      "svc.test",
      "add host.svc.test 1 A 127.0.0.1",
      `add ${SRV} 1 SRV 10 3 ${one} host.svc.test`,
      `add ${SRV} 1 SRV 10 1 ${two} host.svc.test`,
      `add ${SRV} 1 SRV 20 9 ${spare} host.svc.test`,
    );
    const gate = await startGate(context, {
      runtime: runtime!,
      folder,
      env: { PLATFORM_DISCOVERY: `dns+srv://svc.test?server=127.0.0.1:${bind.port}` },
      config: { workers: 2, routes: [{ prefix: "/a", target: "service://orders/v1" }] },
    });
    const url = `${gate.url}/a`;
    assert.deepEqual(await count(url, 8), { "one /v1/a": 6, "two /v1/a": 2 });
    assert.equal((await listTargets(gate.url)).length, 2);

    // The server refuses to resolve a host of another zone.
    bind.update("svc.test", `add ${SRV} 1 SRV 10 1 9 host.elsewhere.test`);
    await waitFor(
      async () => ((await readSource(gate.url))?.error ?? "").startsWith("host.elsewhere.test: "),
      "the host that is not resolved",
    );
    assert.deepEqual(await count(url, 8), { "one /v1/a": 6, "two /v1/a": 2 });
    bind.update("svc.test", `delete ${SRV} SRV 10 1 9 host.elsewhere.test`);
    await waitFor(async () => (await readSource(gate.url))?.error === null, "the end of the fault");

    // A change fails no request, and the record of another priority takes over.
    bind.update("svc.test", `delete ${SRV} SRV 10 3 ${one} host.svc.test`);
    await waitFor(async () => {
      const counts = await count(url, 4);
      assert.equal(counts["502"] ?? counts["503"], undefined);
      return counts["two /v1/a"] === 4;
    }, "the other record");
    bind.update("svc.test", `delete ${SRV} SRV 10 1 ${two} host.svc.test`);
    await waitFor(async () => (await count(url, 1))["spare /v1/a"] === 1, "the next priority");

    bind.update("svc.test", `delete ${SRV} SRV`);
    await waitFor(async () => (await fetch(url)).status === 503, "no address");
    const refused = (await (await fetch(url)).json()) as { code: string; detail: string };
    assert.equal(refused.code, "unavailable");
    assert.equal(refused.detail, "The service has no address.");

    bind.update("svc.test", `add ${SRV} 1 SRV 0 0 ${one} host.svc.test`);
    await waitFor(async () => (await count(url, 1))["one /v1/a"] === 1, "an address of weight 0");
    await tryMany(bind, gate.url, one!);
    await bind.stop();
    await waitFor(async () => ((await readSource(gate.url))?.error ?? "") !== "", "the fault");
    assert.deepEqual(await count(url, 4), { "one /v1/a": 4 });
    const source = await readSource(gate.url);
    assert.equal(source?.version, "orders:1");
    assert.match(source?.error ?? "", /^_orders\._tcp\.svc\.test: 127\.0\.0\.1:\d+: /);
  },
);

test("an HTTP endpoint: several services, new routes, confined routes", async (context) => {
  const [one, two] = await Promise.all(["one", "two"].map((name) => startUpstream(context, name)));
  let body = "";
  const endpoint = await serve(
    context,
    createServer((_request, response) => response.end(body)),
  );
  const [first, second] = [`http://127.0.0.1:${one}`, `http://localhost:${two}/base`];
  body = JSON.stringify({ services: { orders: [first], stock: [second] } });
  const gate = await startGate(context, {
    runtime: runtime!,
    config: {
      workers: 1,
      discovery: `${endpoint}/services`,
      private_networks: ["10.0.0.0/8"],
      routes: [
        { prefix: "/a", target: "service://orders" },
        { prefix: "/b", targets: ["service://orders", "service://stock/v2"] },
        { prefix: "/c", target: "service://orders", confined: true },
      ],
    },
  });
  assert.deepEqual(await count(`${gate.url}/a`, 2), { "one /a": 2 });
  assert.deepEqual(await count(`${gate.url}/b`, 4), { "one /b": 2, "two /base/v2/b": 2 });
  // Its address is this machine, which routes of users may not reach.
  assert.equal((await fetch(`${gate.url}/c`)).status, 503);
  // The addresses of a service are known when the answer of the change arrives.
  const set = await fetch(new URL("/api/v1/routes", gate.url), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ prefix: "/new", target: "service://stock" }),
  });
  assert.equal(set.status, 200);
  assert.deepEqual(await count(`${gate.url}/new`, 1), { "two /base/new": 1 });
  assert.equal((await readSource(gate.url))?.version, "orders:1 stock:1");
});

test("a service without discovery is refused by name", async () => {
  const fault = await findFault({ routes: [{ prefix: "/", target: "service://orders" }] });
  assert.match(fault, /target "service:\/\/orders" requires `discovery`/);
});
