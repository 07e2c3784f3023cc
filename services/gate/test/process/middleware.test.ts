// WebAssembly middleware at the real gateway: registration, roll-out to all workers, restarts.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { assemble, type GuestText, writeGuest } from "@platform/testing/guests";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimesOfRules, spawnGate, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

const API = "/api/v1/admin/middleware";

/** A module that answers with one character. */
const answering = (text: string): Buffer =>
  build({
    data: { 0: text },
    request: `(call $write_body (i32.const 1) (i32.const 0) (i32.const 1)) (i64.const 0)`,
  });
const build = (text: GuestText): Buffer => Buffer.from(assemble(writeGuest(text)));

async function ask(url: string, init: RequestInit = {}) {
  const answer = await fetch(url, { headers: { Connection: "close" }, ...init });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

const post = (url: string, body: Buffer | string, type = "application/wasm") =>
  ask(`${url}${API}/guest`, {
    method: "POST",
    body,
    headers: { "Content-Type": type, Connection: "close" },
  });

async function startUpstream(context: TestContext): Promise<string> {
  return await serve(
    context,
    createServer((_request, response) => response.end("upstream")),
  );
}

type SetRoute = (route: object) => Promise<{ status: number }>;

/** The last five versions can be named, earlier ones cannot. */
async function checkVersions(
  url: string,
  setRoute: SetRoute,
  versions: readonly string[],
  first: string,
): Promise<void> {
  const pinned = await setRoute({ middleware: `guest@${versions[4]!.slice(0, 12)}` });
  assert.equal(pinned.status, 200);
  assert.equal((await ask(`${url}/a`)).text, "3");
  assert.equal((await setRoute({ middleware: `guest@${first.slice(0, 12)}` })).status, 400);
}

/** A middleware that a route names cannot be removed. */
async function removeGuest(url: string): Promise<void> {
  const used = await ask(`${url}${API}/guest`, { method: "DELETE" });
  assert.equal(used.status, 409);
  assert.deepEqual(JSON.parse(used.text).routes, ["/a"]);
  await waitFor(async () => {
    const { text } = await ask(`${url}/metrics`);
    const [, calls] =
      /platform_gate_middleware_total\{name="guest",outcome="answered"\} (\d+)/.exec(text) ?? [];
    return Number(calls) >= 50;
  });
  await ask(`${url}/api/v1/routes?prefix=/a`, { method: "DELETE" });
  const removed = await ask(`${url}${API}/guest`, { method: "DELETE" });
  assert.deepEqual([removed.status, removed.text], [200, "middleware guest removed\n"]);
  assert.equal((await ask(`${url}${API}/guest`, { method: "DELETE" })).status, 404);
}

for (const runtime of runtimesOfRules) {
  test(`${runtime.name}: every worker runs a module before the answer, and versions stay selectable`, async (context) => {
    const target = await startUpstream(context);
    const gate = await startGate(context, { runtime, config: { workers: 2 } });
    const { url } = gate;
    const setRoute = (route: object) =>
      ask(`${url}/api/v1/routes`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ prefix: "/a", target, ...route }),
      });
    const unknown = await setRoute({ middleware: "guest" });
    assert.equal(unknown.status, 400);
    assert.match(unknown.text, /the middleware guest is not registered/);

    const first = answering("1");
    const registered = await post(url, first);
    assert.match(registered.headers.get("content-type") ?? "", /^text\/plain/);
    const [, sha256 = ""] =
      /^middleware guest compiled and registered: sha256 ([0-9a-f]{64}), \d+ bytes\n$/.exec(
        registered.text,
      ) ?? [];
    assert.equal(registered.headers.get("etag"), `"${sha256}"`);
    assert.equal((await setRoute({ middleware: "guest" })).status, 200);
    assert.equal((await ask(`${url}/a`)).text, "1");

    for (let version = 2; version <= 7; version++) {
      assert.equal((await post(url, answering(String(version)))).status, 200);
      const answers = await Promise.all(Array.from({ length: 8 }, () => ask(`${url}/a`)));
      assert.deepEqual(new Set(answers.map(({ text }) => text)), new Set([String(version)]));
    }
    const [listed] = JSON.parse((await ask(`${url}${API}`)).text);
    assert.deepEqual(
      {
        ...listed,
        versions: listed.versions.length,
        registered_at: "",
        sha256: "",
        bytes: 0,
        imports: [],
        calls: 0,
        fuel_p50: 0,
        fuel_p99: 0,
      },
      {
        name: "guest",
        sha256: "",
        bytes: 0,
        versions: 5,
        imports: [],
        source: "api",
        registered_at: "",
        routes: ["/a"],
        calls: 0,
        failures: 0,
        fuel_p50: 0,
        fuel_p99: 0,
      },
    );
    assert.ok(listed.imports.includes("http_handler.write_body"));
    await checkVersions(gate.url, setRoute, listed.versions, sha256);
    await removeGuest(url);
  });

  test(`${runtime.name}: with --ephemeral modules run and leave nothing on disk`, async (context) => {
    const target = await startUpstream(context);
    const folder = makeFolder(context);
    const routes = [{ prefix: "/a", target, middleware: "guest" }];
    const options = { runtime, folder, args: ["--ephemeral"] };
    const gate = await startGate(context, { ...options, config: { workers: 1, routes } });
    assert.equal((await post(gate.url, answering("1"))).status, 200);
    assert.equal((await ask(`${gate.url}/a`)).text, "1");
    assert.deepEqual(
      readdirSync(folder, { recursive: true }).filter((path) =>
        /middleware|wasm/.test(String(path)),
      ),
      [],
    );
    gate.signal("SIGTERM");
    await gate.ended;
    const again = await startGate(context, options);
    assert.equal((await ask(`${again.url}/a`)).status, 502);
  });

  test(`${runtime.name}: bad modules and bad requests are refused, and change nothing`, async (context) => {
    const gate = await startGate(context, { runtime, config: { workers: 1 } });
    const { url } = gate;
    const refused: [
      status: number,
      body: Buffer | string,
      type: string | undefined,
      reason: RegExp,
    ][] = [
      [400, "no module", undefined, /not a WebAssembly module/],
      [400, answering("1").subarray(0, 200), undefined, /byte \d+/],
      [400, build({ request: "(i64.const 1)" }).fill(0x7f, 40, 41), undefined, /validation_failed/],
      [415, answering("1"), "text/plain", /application\/wasm/],
      [413, Buffer.alloc(8 * 1024 * 1024 + 1), undefined, /payload_too_large/],
    ];
    for (const [status, body, type, reason] of refused) {
      const answer = await post(url, body, type);
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.text, reason);
    }
    const name = await ask(`${url}${API}/Guest`, { method: "POST", body: answering("1") });
    assert.equal(name.status, 400);
    assert.equal((await ask(`${url}${API}`)).text, "[]");
    const same = await Promise.all(Array.from({ length: 20 }, () => post(url, answering("1"))));
    assert.deepEqual(new Set(same.map(({ status }) => status)), new Set([200]));
    const [listed] = JSON.parse((await ask(`${url}${API}`)).text);
    assert.equal(listed.versions.length, 1);
  });

  test(`${runtime.name}: one name by twenty clients at once, and its removal under load`, async (context) => {
    const target = await startUpstream(context);
    const gate = await startGate(context, { runtime, config: { workers: 2 } });
    const { url } = gate;
    const modules = Array.from({ length: 20 }, (_, index) =>
      answering(String.fromCharCode(65 + index)),
    );
    const posted = await Promise.all(modules.map((module) => post(url, module)));
    assert.deepEqual(new Set(posted.map(({ status }) => status)), new Set([200]));
    const [listed] = JSON.parse((await ask(`${url}${API}`)).text);
    assert.equal(listed.versions.length, 5);
    const last = posted.findIndex(({ text }) => text.includes(listed.sha256));
    const setRoute = (route: object) =>
      ask(`${url}/api/v1/routes`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ prefix: "/a", target, ...route }),
      });
    assert.equal((await setRoute({ middleware: "guest" })).status, 200);
    const answers = await Promise.all(Array.from({ length: 16 }, () => ask(`${url}/a`)));
    const letter = String.fromCharCode(65 + last);
    assert.deepEqual(new Set(answers.map(({ text }) => text)), new Set([letter]));

    const done = new AbortController();
    const found = new Set<string>();
    const load = Array.from({ length: 8 }, async () => {
      while (!done.signal.aborted) {
        const { status, text } = await ask(`${url}/a`);
        found.add(`${status} ${text}`);
      }
    });
    const remove = () => ask(`${url}${API}/guest`, { method: "DELETE" });
    assert.equal((await remove()).status, 409);
    assert.equal((await setRoute({})).status, 200);
    assert.equal((await remove()).status, 200);
    assert.equal((await ask(`${url}/a`)).text, "upstream");
    done.abort();
    await Promise.all(load);
    assert.deepEqual(found, new Set([`200 ${letter}`, "200 upstream"]));
  });

  test(`${runtime.name}: what was acknowledged survives kill -9, and damage is not run`, async (context) => {
    const target = await startUpstream(context);
    const folder = makeFolder(context);
    const config = {
      workers: 1,
      routes: [
        { prefix: "/a", target, middleware: "guest", access_log: true },
        { prefix: "/b", target, middleware: "absent" },
      ],
    };
    const first = await startGate(context, { runtime, folder, config });
    assert.equal((await ask(`${first.url}/a`)).status, 502);
    await waitFor(
      async () =>
        (await ask(`${first.url}/readyz`)).text.includes("absent, guest") ||
        (await ask(`${first.url}/readyz`)).text.includes("guest, absent"),
    );
    assert.equal((await post(first.url, answering("1"))).status, 200);
    assert.equal((await ask(`${first.url}/a`)).text, "1");
    first.signal("SIGKILL");
    await first.ended;

    const second = await startGate(context, { runtime, folder });
    assert.equal((await ask(`${second.url}/a`)).text, "1");
    assert.equal((await ask(`${second.url}/b`)).status, 502);
    const line = await waitFor(() =>
      readFileSync(join(folder, "access.jsonl"), "utf8")
        .trim()
        .split("\n")
        .map((text) => JSON.parse(text))
        .findLast(({ status }) => status === 200),
    );
    assert.equal(line.middleware, "guest");
    assert.equal(typeof line.middleware_us, "number");
    second.signal("SIGKILL");
    await second.ended;

    const modules = join(folder, "gate.json.state", "middleware");
    const [file = ""] = readdirSync(modules);
    writeFileSync(join(modules, file), answering("2"));
    const third = await startGate(context, { runtime, folder });
    assert.equal((await ask(`${third.url}/a`)).status, 502);
    await third.waitForLine(({ msg }) => msg === "middleware cannot be used");
    assert.deepEqual(readdirSync(modules), [file]);
    const validated = await spawnGate(context, { runtime, folder, args: ["validate"] }).ended;
    assert.match(validated.stdout, /route \/b: the middleware absent is not registered/);
    assert.equal(validated.code, 0);
  });
}
