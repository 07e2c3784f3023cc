// Routes with methods, and the registration of a service's routes by its compiler.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test, type TestContext } from "node:test";
import { runtimesOfRules } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate } from "../fixture/shared-gate.ts";

async function startUpstream(context: TestContext, name: string): Promise<string> {
  const server = createServer((request, response) => response.end(`${name} ${request.method}`));
  return await serve(context, server);
}

async function send(url: string, method: string, body?: unknown) {
  const init = body === undefined ? {} : { body: JSON.stringify(body) };
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(url, { method, headers, ...init });
  return { status: answer.status, allow: answer.headers.get("allow"), text: await answer.text() };
}

for (const runtime of runtimesOfRules) {
  const gates = shareGate({ runtime, config: { workers: 1 } });

  test(`methods of one prefix can belong to different routes (${runtime.name})`, async (context) => {
    const [reads, writes, rest] = await Promise.all(
      ["reads", "writes", "rest"].map((name) => startUpstream(context, name)),
    );
    const gate = await gates.use({
      routes: [
        { prefix: "/notes", target: reads, methods: ["GET"] },
        { prefix: "/notes", target: writes, methods: ["PUT", "POST"], auth: { type: "none" } },
        { prefix: "/files", target: reads, methods: ["GET"] },
        { prefix: "/files", target: rest },
      ],
    });
    const notes = `${gate.url}/notes/1`;
    assert.equal((await send(notes, "GET")).text, "reads GET");
    assert.equal((await send(notes, "HEAD")).status, 200);
    assert.equal((await send(notes, "POST", {})).text, "writes POST");
    const { status, allow, text } = await send(notes, "DELETE");
    assert.deepEqual([status, allow], [405, "GET, HEAD, POST, PUT"]);
    assert.match(text, /"code":"method_not_allowed"/);
    assert.equal((await send(`${notes};a=b`, "POST", {})).text, "writes POST");
    assert.equal((await send(`${gate.url}/files/x`, "GET")).text, "reads GET");
    assert.equal((await send(`${gate.url}/files/x`, "DELETE")).text, "rest DELETE");

    const routes = `${gate.url}/api/v1/routes`;
    const route = { prefix: "/notes", target: rest, methods: ["DELETE"] };
    assert.equal((await send(routes, "POST", route)).status, 200);
    assert.equal((await send(notes, "DELETE")).text, "rest DELETE");
    const shared = await send(routes, "POST", { ...route, methods: ["DELETE", "GET"] });
    assert.equal(shared.status, 400);
    assert.match(shared.text, /same prefix and host have the method/);
    assert.equal((await send(`${routes}?prefix=/notes&methods=delete`, "DELETE")).status, 200);
    assert.equal((await send(notes, "DELETE")).status, 405);
  });

  test(`a registration replaces the previous one of its service, and survives a restart (${runtime.name})`, async (context) => {
    const target = await startUpstream(context, "service");
    const gate = await gates.use({ routes: [{ prefix: "/mine", target }] });
    const register = (url: string, body: unknown) =>
      send(`${url}/api/v1/routes/register`, "POST", body);
    const first = await register(gate.url, {
      service: "notes",
      version: "1",
      base_url: target,
      routes: [
        { method: "GET", path: "/notes" },
        { method: "GET", path: "/notes/:id" },
        { method: "POST", path: "/notes", max_body_size: 10 },
        { path: "/health" },
      ],
    });
    assert.deepEqual([first.status, first.text], [200, '{"registered":3,"removed":0}']);
    assert.equal((await send(`${gate.url}/notes/7`, "GET")).text, "service GET");
    assert.equal((await send(`${gate.url}/notes/7`, "POST", {})).status, 405, "path of GET only");
    assert.equal((await send(`${gate.url}/notes/7/x`, "GET")).status, 502, "no route");
    assert.equal((await send(`${gate.url}/health/x`, "GET")).status, 502, "no route");
    assert.equal((await send(`${gate.url}/notes/7;a=b`, "GET")).text, "service GET");
    assert.equal((await send(`${gate.url}/notes/7;a=b/x`, "GET")).status, 502, "no route");
    assert.equal((await send(`${gate.url}/notes`, "POST", { long: "enough" })).status, 413);
    assert.equal((await send(`${gate.url}/notes`, "DELETE")).status, 405);

    const stolen = { service: "thief", base_url: target, routes: [{ path: "/mine" }] };
    assert.equal((await register(gate.url, stolen)).status, 409);
    const taken = { ...stolen, routes: [{ path: "/health" }] };
    assert.equal((await register(gate.url, taken)).status, 409);
    const wrong = { service: "notes", base_url: target, routes: [{ path: "/a", prefx: 1 }] };
    assert.match((await register(gate.url, wrong)).text, /prefx/);
    const outside = { prefix: "/a", target, paths: ["/ab"] };
    const refused = await send(`${gate.url}/api/v1/routes`, "POST", outside);
    assert.equal(refused.status, 400);
    assert.match(refused.text, /paths.*expected a path at or below the prefix \/a/);
    assert.equal((await send(`${gate.url}/notes/7`, "GET")).status, 200, "nothing has changed");

    const next = { service: "notes", base_url: target, routes: [{ path: "/notes/{id}" }] };
    assert.equal((await register(gate.url, next)).text, '{"registered":1,"removed":3}');
    assert.equal((await send(`${gate.url}/notes/7`, "DELETE")).text, "service DELETE");
    assert.equal((await send(`${gate.url}/health`, "GET")).status, 502);
    const again = await gates.restart();
    assert.equal((await send(`${again.url}/notes/7`, "DELETE")).text, "service DELETE");
    const none = { service: "notes", base_url: target, routes: [] };
    assert.equal((await register(again.url, none)).text, '{"registered":0,"removed":1}');
  });
}
