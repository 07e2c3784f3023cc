// Rules of projects at the gateway, on one platform: what they do, how versions change, and who has the last word.
import assert from "node:assert/strict";
import { generateKeyPairSync, sign as signBytes, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { Agent, createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  parseEnv,
  run,
  type Started,
} from "@platform/testing/platform-process";

const ISSUER = "http://issuer.example";
const root = realpathSync(makeFolder());
const data = join(root, "data");
const bounds = join(data, "gate/projects.json");
const agent = new Agent({ keepAlive: true });
let env: Record<string, string>;
let key: KeyObject;
let platform: ReturnType<typeof run>;
let started: Started;

const keys = createServer();
before(async () => {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  key = privateKey;
  const jwk = { ...publicKey.export({ format: "jwk" }), kid: "k", alg: "RS256" };
  const jwks = JSON.stringify({ keys: [jwk] });
  keys.on("request", (_, answer) => answer.setHeader("Content-Type", "application/json").end(jwks));
  keys.listen(0, "127.0.0.1");
  await once(keys, "listening");
  const { port } = keys.address() as AddressInfo;
  env = {
    XDG_STATE_HOME: join(root, "state"),
    PLATFORM_GATE_JWKS_URL: `http://127.0.0.1:${port}/`,
    PLATFORM_GATE_JWT_ISSUER: ISSUER,
    PLATFORM_GATE_JWT_AUDIENCE: "platform",
  };
  await startPlatform();
});
after(async () => {
  await stopPlatform();
  keys.close();
  agent.destroy();
});

async function startPlatform(): Promise<void> {
  const flags = ["--json", "--only", "gateway", "--data", data, ...anyPort];
  platform = run(["up", ...flags], env, "", root);
  started = await platform.waitFor(findStarted);
}

async function stopPlatform(): Promise<void> {
  platform.child.kill("SIGTERM");
  assert.equal(await platform.exit, 0, platform.output().out);
}

/** Writes a project in the language. */
function writeProject(name: string, source: string): string {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, type: "module" }));
  writeFileSync(join(folder, "main.service.ts"), source);
  return folder;
}

async function command(args: string[]) {
  const program = run(args, env, "", root);
  const code = await program.exit;
  return { code, ...program.output() };
}

/** Keeps a project on the platform. */
async function addProject(name: string, source: string): Promise<string> {
  const { code, out, err } = await command(["project", "add", writeProject(name, source)]);
  assert.equal(code, 0, out + err);
  return out;
}

interface Answer {
  status: number;
  text: string;
  headers: IncomingMessage["headers"];
}

/** Sends a request to a project through the gateway. */
async function ask(
  name: string,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Answer> {
  const { port } = new URL(find(started, "gate").url);
  const host = `${name}.localhost:${port}`;
  const sent = request({
    agent,
    host: "127.0.0.1",
    port,
    path,
    method,
    headers: { ...headers, host },
  });
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += String(chunk);
  return { status: answer.statusCode ?? 0, text, headers: answer.headers };
}

async function readStatus(...given: Parameters<typeof ask>): Promise<number> {
  return (await ask(...given)).status;
}

function sign(claims: Record<string, unknown>, audience = "platform"): string {
  const now = Math.floor(Date.now() / 1_000);
  const base = { iss: ISSUER, aud: audience, sub: "ada", iat: now, exp: now + 300 };
  const parts = [
    { alg: "RS256", kid: "k", typ: "at+jwt" },
    { ...base, ...claims },
  ];
  const text = parts
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return `${text}.${signBytes("sha256", Buffer.from(text), key).toString("base64url")}`;
}

/** The projects as the platform lists them. */
async function list(): Promise<{ name: string; rules: string[]; cuts: string[] }[]> {
  const { PLATFORM_RUNTIME_TOKEN: token } = parseEnv(
    readFileSync(join(data, "credentials.env"), "utf8"),
  );
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${started.api_url}/api/v1/projects`, { headers });
  return ((await answer.json()) as { items: { name: string; rules: string[]; cuts: string[] }[] })
    .items;
}

async function waitForLog(text: string | RegExp, from = 0): Promise<void> {
  const read = (): string => readFileSync(join(data, "logs/platform.jsonl"), "utf8").slice(from);
  await waitFor(
    () => (typeof text === "string" ? read().includes(text) : text.test(read())),
    () => read().slice(-2_000),
  );
}

const sizeOfLog = (): number => readFileSync(join(data, "logs/platform.jsonl"), "utf8").length;

const SHOP = `server { port: 3000 }
gateway { rate_limit_rpm: 500, auth: { type: "bearer", required_scope: "shop:use" } }
export route GET /status gateway { auth: { type: "none" }, rate_limit_rpm: 3 } { return "up"; }
export route GET /items/new { return "new"; }
export route GET /items/:id gateway { ip_blocklist: ["127.0.0.1"] } { return "item"; }
export route GET /items/:id/parts gateway { auth: { type: "none" } } { return "parts"; }
export route POST /items gateway {
  auth: { type: "none" }, cors: { origins: ["https://app.example"] }, max_body_size: 10
} { return "made"; }
`;

test("rules apply to the routes that they are declared for, the route's before the project's", async () => {
  await addProject("shop", SHOP);
  const pid = "export route GET /pid { return process.pid; }\n";
  await addProject("plain", `export route GET /free { return 1; }\n${pid}`);
  assert.equal(await readStatus("plain", "/free"), 200);
  const token = sign({ scope: "shop:use" });
  const authorization = `Bearer ${token}`;
  assert.equal(await readStatus("shop", "/items/new"), 401);
  assert.equal(await readStatus("shop", "/items/new", { authorization }), 200);
  assert.equal(await readStatus("shop", "/missing"), 401, "paths without a route");
  for (const path of [
    "/items/1",
    "/items/%31",
    "//items/1",
    "/items/./1",
    "/items/1?a=/items/new",
  ]) {
    assert.equal(await readStatus("shop", path, { authorization }), 403, path);
  }
  assert.equal(await readStatus("shop", "/items/1/", { authorization }), 404);
  assert.equal(await readStatus("shop", "/items/1/parts"), 200);
  assert.equal(await readStatus("shop", "/items/1/parts", {}, "HEAD"), 200);
  assert.equal(await readStatus("shop", "/items", {}, "DELETE"), 401, "another method");
  const origin = "https://app.example";
  const preflight = { origin, "access-control-request-method": "POST" };
  const allowed = await ask("shop", "/items", preflight, "OPTIONS");
  assert.equal(allowed.headers["access-control-allow-origin"], origin);
  const listed = (await list()).find(({ name }) => name === "shop");
  assert.equal(listed?.rules.length, 5, JSON.stringify(listed));
  assert.match(listed.rules[0]!, /^main\.service\.ts:2:1: all routes: rate_limit_rpm, auth$/);
  assert.match(listed.rules[1]!, /^main\.service\.ts:3:1: GET \/status: auth, rate/);
});

test("tokens of another audience or scope open nothing, and no field of the client avoids a rule", async () => {
  const foreign = [
    sign({ scope: "shop:use" }, "another"),
    sign({ scope: "notes:use" }),
    "nonsense",
  ];
  for (const token of foreign) {
    const authorization = `Bearer ${token}`;
    const status = await readStatus("shop", "/items/new", { authorization });
    assert.ok(status === 401 || status === 403, `${token} ${status}`);
  }
  const limited: number[] = [];
  for (let turn = 1; turn <= 5; turn++) {
    const headers = { "X-Forwarded-For": `10.0.0.${turn}`, "Platform-Rules": "forged" };
    limited.push(await readStatus("shop", "/status", headers));
  }
  assert.deepEqual(limited.slice(-2), [429, 429], limited.join());
  const token = sign({ scope: "shop:use" });
  const spoofed = { authorization: `Bearer ${token}`, "X-Forwarded-For": "10.0.0.1" };
  assert.equal(await readStatus("shop", "/items/1", spoofed), 403);
});

/** The rule is in the gateway, or in the code. */
function guarded(place: "gateway" | "code", version: number): string {
  const clause =
    place === "gateway" ? "gateway { policy: 'deny * /guarded if header.X-Guest == yes' } " : "";
  const check =
    place === "code"
      ? 'if (req.headers.get("x-guest") === "yes") throw new HttpError(403, "no guests"); '
      : "";
  return `import { HttpError } from "@platform/service";
export route GET /guarded (req) ${clause}{ ${check}return "version ${version}" + (HttpError && ""); }
`;
}

test("a rule that moves between gateway and code leaves no gap under load, and no request fails", async () => {
  await addProject("moving", guarded("code", 0));
  const ending = new AbortController();
  const wrong: string[] = [];
  let requests = 0;
  const load = async (headers: Record<string, string>, expected: number): Promise<void> => {
    while (!ending.signal.aborted) {
      const { status, text } = await ask("moving", "/guarded", headers);
      requests += 1;
      await sleep(2);
      if (status !== expected) wrong.push(`${expected}: ${status} ${text}`);
    }
  };
  const loads = [
    ...Array.from({ length: 4 }, () => load({ "X-Guest": "yes" }, 403)),
    ...Array.from({ length: 2 }, () => load({}, 200)),
  ];
  for (let version = 1; version <= 4; version++) {
    writeProject("moving", guarded(version % 2 === 1 ? "gateway" : "code", version));
    let text = "";
    await waitFor(
      async () => (text = (await ask("moving", "/guarded")).text) === `version ${version}`,
      () => text,
    );
  }
  ending.abort();
  await Promise.all(loads);
  assert.deepEqual(wrong.slice(0, 5), []);
  assert.ok(requests > 100, String(requests));
});

test("requests wait in the gateway for the process that replaces a killed one", async () => {
  const { text: before } = await ask("plain", "/pid");
  process.kill(Number(before), "SIGKILL");
  const { status, text } = await ask("plain", "/pid");
  assert.equal(status, 200, text);
  assert.notEqual(text, before);
});

test("a response that was stored by other rules is not used", async () => {
  const write = (seconds: number, text: string): string =>
    `export route GET /now gateway { cache_ttl_seconds: ${seconds} } { return "${text}"; }\n`;
  await addProject("cached", write(60, "first"));
  assert.equal((await ask("cached", "/now")).text, "first");
  assert.equal((await ask("cached", "/now")).headers["x-cache"], "HIT");
  writeProject("cached", write(50, "second"));
  await waitFor(async () => (await ask("cached", "/now")).text === "second");
});

test("refused rules keep the running version, and the log says why and where", async () => {
  const from = sizeOfLog();
  const wrong = guarded("gateway", 5).replace("{ policy:", '{ host: "a.example", policy:');
  writeProject("moving", wrong);
  await waitForLog(/main\.service\.ts:2:1: gateway of GET \/guarded: host is not allowed/, from);
  await waitForLog("not started: the running version stays", from);
  assert.equal((await ask("moving", "/guarded")).text, "version 4");
});

test("the operator fixes, caps and forbids fields, and what was cut is said", async () => {
  const document = {
    all: { cap: { rate_limit_rpm: 100 }, forbid: ["cache_ttl_seconds"] },
    projects: { bounded: { fix: { max_body_size: 5 } }, constructor: { forbid: ["policy"] } },
  };
  writeFileSync(bounds, JSON.stringify(document));
  const source = `gateway { rate_limit_rpm: 500, cache_ttl_seconds: 60, cache_methods: ["GET"] }
export route POST /in gateway { max_body_size: 1000, rate_limit_rpm: 50 } { return "in"; }
export route GET /out { return "out"; }
`;
  const out = await addProject("bounded", source);
  assert.match(out, /main\.service\.ts:1:1: gateway: rate_limit_rpm is 100, not 500: the highest/);
  assert.match(out, /cache_ttl_seconds has no effect: it is forbidden/);
  assert.match(out, /gateway of POST \/in: max_body_size is 5, not 1000: it is fixed/);
  const answer = await ask("bounded", "/out");
  assert.match(String(answer.headers["ratelimit-policy"]), /q=100;/);
  assert.equal(answer.headers["x-cache"], undefined);
  const posted = await ask("bounded", "/in", { "content-length": "0" }, "POST");
  assert.match(String(posted.headers["ratelimit-policy"]), /q=50;/);
  const listed = await command(["project", "list", "--data", data]);
  assert.match(
    listed.out,
    /bounded, changed by the operator:\n {2}main\.service\.ts:1:1: gateway: /,
  );

  const from = sizeOfLog();
  writeFileSync(bounds, JSON.stringify({ projects: { moving: { forbid: ["policy"] } } }));
  writeProject("moving", guarded("gateway", 6));
  await waitForLog(/gateway of GET \/guarded: the operator of the platform forbids policy/, from);
  writeFileSync(bounds, "{");
  writeProject("moving", guarded("gateway", 7));
  await waitForLog(/the gateway rules are refused: .*gate\/projects\.json:1:2: /, from);
  assert.equal((await ask("moving", "/guarded")).text, "version 4");
  writeFileSync(bounds, "{}");
  writeProject("moving", guarded("gateway", 8));
  await waitFor(async () => (await ask("moving", "/guarded")).text === "version 8");
});

test("rules survive a kill of the gateway and a start of the platform, and end with the project", async () => {
  const guest = { "X-Guest": "yes" };
  const { pid } = find(started, "gate");
  process.kill(pid, "SIGKILL");
  // Until then connections are refused.
  await waitFor(async () => (await readStatus("moving", "/guarded").catch(() => 0)) === 200);
  assert.equal(await readStatus("moving", "/guarded", guest), 403);
  await stopPlatform();
  await startPlatform();
  const seen = new Set<number>();
  await waitFor(async () => {
    seen.add(await readStatus("moving", "/guarded", guest));
    return (await readStatus("moving", "/guarded")) === 200;
  });
  assert.equal(await readStatus("moving", "/guarded", guest), 403);
  assert.ok(!seen.has(200), [...seen].join());
  assert.equal((await command(["project", "remove", "moving", "--data", data])).code, 0);
  const authorization = `Bearer ${sign({})}`;
  assert.equal(await readStatus("moving", "/guarded", { authorization }), 502);
  assert.equal(await readStatus("shop", "/items/1/parts"), 200);
});
