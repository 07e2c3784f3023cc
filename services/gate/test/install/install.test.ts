// `platform-gate install` with a registry of static files and a gateway, both real servers.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import { assemble, writeGuest } from "@platform/testing/guests";
import { FolderLock } from "../../src/access/folder-lock.ts";
import { MiddlewareStore, type RegisteredMiddleware } from "../../src/control/middleware-store.ts";
import { runInstall, runRegistryIndex } from "../../src/install/command.ts";
import { serve } from "../fixture/serve.ts";

const guest = (marker: string) => Buffer.from(assemble(writeGuest({ data: { 0: marker } })));

function makeRegistry(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "registry-test-"));
  context.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "modules"));
  for (const version of ["1.9.0", "1.10.0", "2.0.0-rc.1", "1.10.0-rc.2"])
    writeFileSync(join(folder, "modules", `marker@${version}.wasm`), guest(version));
  return folder;
}

async function index(folder: string) {
  const printed: string[] = [];
  const code = await runRegistryIndex(
    folder,
    (text) => printed.push(text),
    (text) => printed.push(text),
  );
  return { code, text: printed.join("") };
}

/** Serves a folder; `change` may answer instead. */
function serveFolder(
  context: TestContext,
  folder: string,
  change: RequestListener = () => undefined,
) {
  return serve(
    context,
    createServer((request, response) => {
      change(request, response);
      if (response.writableEnded || response.headersSent) return;
      try {
        response.end(readFileSync(join(folder, decodeURIComponent(request.url ?? ""))));
      } catch {
        response.writeHead(404).end();
      }
    }),
  );
}

async function start(context: TestContext, change?: RequestListener) {
  const folder = makeRegistry(context);
  assert.deepEqual(await index(folder), { code: 0, text: `${folder}: marker\n` });
  const registered: { url: string; token: string; source: string; body: Buffer }[] = [];
  const gateway = await serve(
    context,
    createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => {
        const { authorization = "", "x-middleware-source": source = "" } = request.headers;
        registered.push({
          url: request.url ?? "",
          token: authorization,
          source: String(source),
          body: Buffer.concat(pieces),
        });
        response.end("middleware marker compiled and registered\n");
      });
    }),
  );
  const registry = await serveFolder(context, folder, change);
  const install = async (name: string, more: object = {}) => {
    const printed: string[] = [];
    const errors: string[] = [];
    const options = {
      registry,
      url: gateway,
      token: "secret-token",
      dry_run: false,
      offline: false,
      config: "config.json",
      ...more,
    };
    const code = await runInstall(
      name,
      options,
      (text) => printed.push(text),
      (text) => errors.push(text),
      {},
    );
    return { code, text: printed.join(""), error: errors.join("") };
  };
  return { folder, registered, install };
}

test("the newest version is registered, and a version by its name", async (context) => {
  const { install, registered, folder } = await start(context);
  const { versions } = JSON.parse(readFileSync(join(folder, "middleware", "marker.json"), "utf8"));
  assert.deepEqual(
    versions.map(({ version }: { version: string }) => version),
    ["2.0.0-rc.1", "1.10.0", "1.10.0-rc.2", "1.9.0"],
  );
  const newest = await install("marker");
  assert.deepEqual(newest, {
    code: 0,
    text: "middleware marker compiled and registered\n",
    error: "",
  });
  assert.equal((await install("marker@1.10.0")).code, 0);
  assert.deepEqual(
    registered.map(({ url, token, source, body }) => [
      url,
      token,
      source,
      body.equals(guest("2.0.0-rc.1")) || body.equals(guest("1.10.0")),
    ]),
    [
      ["/api/v1/admin/middleware/marker", "Bearer secret-token", "registry", true],
      ["/api/v1/admin/middleware/marker", "Bearer secret-token", "registry", true],
    ],
  );
  assert.ok(registered[1]!.body.equals(guest("1.10.0")));
  const dry = await install("marker@1.9.0", { dry_run: true });
  assert.match(dry.text, /^marker 1\.9\.0, sha256 [0-9a-f]{64}, \d+ bytes: not registered/);
  assert.equal(registered.length, 2);
});

const document = (members: object) =>
  JSON.stringify({
    name: "marker",
    version: "1",
    url: "../modules/marker%401.9.0.wasm",
    sha256: "0".repeat(64),
    ...members,
  });
const answerDocument =
  (text: string): RequestListener =>
  (request, response) => {
    if (request.url?.endsWith(".json") === true) response.end(text);
  };
const refused: [
  name: string,
  change: RequestListener,
  wanted: string,
  code: number,
  error: RegExp,
][] = [
  [
    "a digest that is not the module's",
    answerDocument(document({})),
    "marker",
    1,
    /has the SHA-256 [0-9a-f]+, not 000/,
  ],
  [
    "a document of another name",
    answerDocument(document({ name: "other" })),
    "marker",
    1,
    /that of other/,
  ],
  ["a document that is no JSON", answerDocument("<html>"), "marker", 1, /not valid/],
  [
    "a version that would control the terminal",
    answerDocument(document({ version: "1\u001b[2J" })),
    "marker",
    1,
    /not valid/,
  ],
  [
    "a module at another origin",
    answerDocument(document({ url: "http://192.0.2.1/x.wasm" })),
    "marker",
    1,
    /neither the registry nor https/,
  ],
  [
    "a redirect",
    (_request, response) => void response.writeHead(302, { Location: "/x" }).end(),
    "marker",
    1,
    /redirects/,
  ],
  ["an unknown version", () => undefined, "marker@9.9.9", 1, /no version 9\.9\.9/],
  ["an unknown name", () => undefined, "unknown", 1, /answers 404/],
  ["a bad name", () => undefined, "../x", 2, /no name of middleware/],
];
for (const [name, change, wanted, code, error] of refused) {
  test(`refuses ${name}, and registers nothing`, async (context) => {
    const { install, registered } = await start(context, change);
    const result = await install(wanted);
    assert.equal(result.code, code);
    assert.match(result.error, error);
    assert.equal(registered.length, 0);
  });
}

test("a registry that streams without end is left at the limit", async (context) => {
  const endless: RequestListener = (request, response) => {
    if (request.url?.endsWith(".json") === true) response.end(document({}));
    else {
      const timer = setInterval(() => response.write(Buffer.alloc(1_000_000)), 1);
      response.on("close", () => clearInterval(timer));
      response.write("x");
    }
  };
  const { install } = await start(context, endless);
  assert.match((await install("marker")).error, /more than 8388608 bytes/);
});

test("a gateway that is not there is trouble", async (context) => {
  const { install } = await start(context);
  const result = await install("marker", { url: "http://127.0.0.1:1" });
  assert.equal(result.code, 2);
});

test("without a gateway the module is written to its state, and another process with it is respected", async (context) => {
  const { install, registered, folder } = await start(context);
  const config = join(folder, "gate.json");
  writeFileSync(config, JSON.stringify({ data_dir: join(folder, "state") }));
  const offline = { offline: true, config };
  const first = await install("marker@1.9.0", offline);
  assert.equal(first.code, 0, first.error);
  assert.match(
    first.text,
    /^middleware marker written to .*state: sha256 [0-9a-f]{64}, \d+ bytes\n$/,
  );
  assert.equal((await install("marker@1.10.0", offline)).code, 0);
  assert.equal(registered.length, 0);
  const lock = new FolderLock(join(folder, "state"), false);
  const store = new MiddlewareStore({
    folder: join(folder, "state"),
    isEphemeral: false,
    lock,
    clock: systemClock,
    log: createLogger({ service: "gate", level: "error" }),
    listRoutes: () => [],
    runExclusive: (work) => work(),
    apply: () => Promise.resolve(),
  });
  await store.load();
  const [{ name, versions, source, module }] = store.listRegistered() as [RegisteredMiddleware];
  assert.deepEqual([name, versions.length, source], ["marker", 2, "registry"]);
  assert.equal(module.bytes, guest("1.10.0").length);
  // A gateway that has changed something holds its folder.
  await store.register("own", guest("own"), "api", "test");
  const refusal = await install("marker", offline);
  assert.deepEqual([refusal.code, refusal.text], [1, ""]);
  assert.match(refusal.error, /state is used by another gateway/);
  lock.release();
  assert.equal(
    (await install("marker", { offline: true, config: join(folder, "no.json") })).code,
    2,
  );
});

test("a gateway takes over what was installed before its first change", async (context) => {
  const { install, folder } = await start(context);
  const config = join(folder, "gate.json");
  writeFileSync(config, "{}");
  const applied: string[] = [];
  const state = `${config}.state`;
  const lock = new FolderLock(state, false);
  context.after(() => lock.release());
  const store = new MiddlewareStore({
    folder: state,
    isEphemeral: false,
    lock,
    clock: systemClock,
    log: createLogger({ service: "gate", level: "error" }),
    listRoutes: () => [],
    runExclusive: (work) => work(),
    apply: ({ set }) => {
      applied.push(set.map(({ name }) => name).join(" "));
      return Promise.resolve();
    },
  });
  await store.load();
  assert.equal((await install("marker", { offline: true, config })).code, 0);
  await store.register("own", guest("own"), "api", "test");
  assert.deepEqual(applied, ["marker", "own"]);
  assert.deepEqual(
    store.listRegistered().map(({ name }) => name),
    ["marker", "own"],
  );
});

test("a module that is no middleware stops the index", async (context) => {
  const folder = makeRegistry(context);
  writeFileSync(join(folder, "modules", "bad@1.wasm"), "no module");
  const { code, text } = await index(folder);
  assert.equal(code, 1);
  assert.match(text, /bad@1\.wasm: .*not a WebAssembly module/);
});
