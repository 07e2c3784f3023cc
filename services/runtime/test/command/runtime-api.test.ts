// The API of `platform up`: services, schedules and logs, directly and through the web console.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
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

const ADMIN = { username: "root", password: "correct horse battery staple" };
const root = makeFolder();
const folder = join(root, "shop");
const main = join(folder, "main.service.ts");
const SOURCE = `import { HttpError } from "@platform/service";
server { port: 3000 }
let runs = 0;
export route GET /runs { return String(runs); }
every 1h { runs += 1; }
every "0 3 * * *" { throw new HttpError(500, "no orders today"); }
`;

let up: ReturnType<typeof run>;
let started: Started;
let token = "";

interface Service {
  id: string;
  label: string;
  kind: string;
  state: string;
  detail: string;
  pid: number | null;
  restarts: number;
}
interface Schedule {
  id: string;
  service: string;
  timing: string;
  next_run_at: string | null;
  last_run: { outcome: string; error: string | null } | null;
}
interface LogPage {
  items: { id: string; level: string; service: string; msg: string }[];
  next_cursor: string | null;
}

before(async () => {
  assert.equal(await run(["init", "shop"], {}, "", root).exit, 0);
  writeFileSync(main, SOURCE);
  const flags = [...anyPort, "--project-addr", "127.0.0.1:0"];
  const only = ["--only", "identity", "--only", "gateway", "--only", "shop"];
  const env = {
    PLATFORM_AUTH_ADMIN_USER: ADMIN.username,
    PLATFORM_AUTH_ADMIN_PASSWORD: ADMIN.password,
  };
  up = run(["up", "--json", ...only, ...flags], env, "", folder);
  started = await up.waitFor(findStarted);
  const credentials = parseEnv(readFileSync(join(folder, "data/credentials.env"), "utf8"));
  token = credentials["PLATFORM_RUNTIME_TOKEN"]!;
});
after(async () => {
  up.child.kill("SIGTERM");
  assert.equal(await up.exit, 0, up.output().err);
});

async function call(path: string, method = "GET", bearer = token) {
  const headers = { authorization: `Bearer ${bearer}` };
  const answer = await fetch(`${started.api_url}/api/v1${path}`, { method, headers });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

async function readService(id: string): Promise<Service> {
  const { items } = (await call("/services")).body as unknown as { items: Service[] };
  return items.find((one) => one.id === id) ?? assert.fail(`${id} is missing`);
}

async function readSchedules(): Promise<Schedule[]> {
  return ((await call("/schedules")).body as unknown as { items: Schedule[] }).items;
}

async function readLog(query: string): Promise<LogPage> {
  return (await call(`/logs?${query}`)).body as unknown as LogPage;
}

const readOutput = (): string => up.output().out.slice(-2_000);

function waitForState(id: string, state: string): Promise<Service> {
  return waitFor(async () => {
    const service = await readService(id);
    return service.state === state ? service : undefined;
  }, readOutput);
}

async function createUser(username: string): Promise<string> {
  const program = run(["user", "add", username, "--password-stdin"], {}, ADMIN.password, folder);
  assert.equal(await program.exit, 0, program.output().err);
  return signIn({ ...ADMIN, username });
}

async function signIn(user: typeof ADMIN): Promise<string> {
  const answer = await fetch(`${find(started, "auth").url}/api/v1/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(user),
  });
  return ((await answer.json()) as { access_token: string }).access_token;
}

test("services are listed for the operator and administrators only", async () => {
  assert.equal((await fetch(`${started.api_url}/api/v1/services`)).status, 401);
  assert.equal((await call("/services", "GET", "wrong")).status, 401);
  const user = await createUser("ada");
  assert.equal((await call("/services", "GET", user)).status, 403);
  assert.equal((await call("/services/hello/stop", "POST", user)).status, 403);
  const admin = await signIn(ADMIN);
  const { status, body } = await call("/services", "GET", admin);
  assert.equal(status, 200, JSON.stringify(body));
  const items = body["items"] as Service[];
  assert.deepEqual(
    items.map(({ id, kind, state, detail }) => [id, kind, state, detail]),
    [
      ["hello", "platform", "up", ""],
      ["auth", "platform", "up", ""],
      ["shop", "project", "up", ""],
      ["gate", "platform", "up", ""],
    ],
  );
  assert.equal(items[0]!.pid, find(started, "hello").pid);
  const { credentials, share } = body["hints"] as { credentials: string; share: string };
  assert.equal(credentials, "./data/credentials.env");
  // Projects of `init` have the command line.
  assert.match(share, /^(?:\.\/)?platform share 3000$/);
});

test("a service is stopped, started and restarted", async () => {
  const { url, pid } = find(started, "hello");
  const stopped = await call("/services/hello/stop", "POST");
  assert.equal(stopped.status, 202);
  assert.equal(stopped.body["state"], "stopping");
  await waitForState("hello", "stopped");
  await assert.rejects(fetch(url));
  assert.equal((await call("/services/hello/stop", "POST")).status, 409);
  const status = run(["status"], {}, "", folder);
  assert.equal(await status.exit, 1);
  assert.match(status.output().out, /sample +stopped/);

  assert.equal((await call("/services/hello/start", "POST")).body["state"], "starting");
  const again = await waitForState("hello", "up");
  assert.notEqual(again.pid, pid);
  assert.equal((await fetch(`${url}/hello`)).status, 200);

  assert.equal((await call("/services/hello/restart", "POST")).status, 202);
  const restarted = await waitFor(async () => {
    const service = await readService("hello");
    return service.state === "up" && service.pid !== again.pid ? service : undefined;
  }, readOutput);
  assert.equal(restarted.restarts, 0);
  process.kill(restarted.pid!, "SIGKILL");
  await waitFor(async () => {
    const { state, restarts } = await readService("hello");
    return state === "up" && restarts === 1 ? true : undefined;
  }, readOutput);
  assert.equal((await call("/services/ghost/stop", "POST")).status, 404);
});

test("a schedule is run on request; its outcome and the changed file show", async () => {
  const [hourly, daily] = await readSchedules();
  assert.equal(hourly!.service, "shop");
  assert.equal(hourly!.timing, "1h");
  assert.equal(hourly!.last_run, null);
  assert.ok(Date.parse(hourly!.next_run_at!) > Date.now() + 3_000_000);
  assert.match(daily!.next_run_at!, /T03:00:00\.000Z$/);

  assert.equal((await call(`/schedules/${hourly!.id}/run`, "POST")).status, 202);
  assert.equal((await call(`/schedules/${daily!.id}/run`, "POST")).status, 202);
  const [done, failed] = await waitFor(async () => {
    const all = await readSchedules();
    return all.every(({ last_run }) => last_run !== null) ? all : undefined;
  }, readOutput);
  assert.equal(done!.last_run!.outcome, "done");
  assert.equal(failed!.last_run!.outcome, "failed");
  assert.match(failed!.last_run!.error!, /no orders today/);
  assert.equal(await (await fetch(`${find(started, "shop").url}/runs`)).text(), "1");
  assert.equal((await call("/schedules/0000/run", "POST")).status, 404);

  writeFileSync(main, SOURCE.replace("every 1h", "every 2h"));
  const changed = await waitFor(async () => {
    const all = await readSchedules();
    return all.some(({ timing }) => timing === "2h") ? all : undefined;
  }, readOutput);
  // The new process continues the daily one.
  assert.deepEqual(
    changed.map(({ timing, last_run }) => [timing, last_run?.outcome]),
    [
      ["2h", undefined],
      ["0 3 * * *", "failed"],
    ],
  );
});

test("the log is filtered, paged backwards and streamed", async () => {
  const failures = await readLog("service=shop&level=error&q=NO%20ORDERS");
  assert.equal(failures.items.length, 1);
  const { service, level, msg } = failures.items[0]!;
  assert.deepEqual([service, level, msg], ["shop", "error", "schedule failed"]);

  const first = await readLog("limit=3");
  const second = await readLog(`limit=3&cursor=${first.next_cursor}`);
  const both = await readLog("limit=6&service=gateway");
  assert.equal(first.items.length, 3);
  assert.equal(second.items.length, 3);
  assert.ok(both.items.every((line) => line.service === "gate" || line.service === "platform"));
  assert.equal((await call("/logs?cursor=nonsense")).status, 400);

  const address = `${started.api_url.replace("http", "ws")}/api/v1/logs/ws?service=shop&q=unmatched`;
  const refused = new WebSocket(address);
  const [, response] = (await once(refused, "unexpected-response")) as [
    unknown,
    { statusCode: number },
  ];
  assert.equal(response.statusCode, 401);
  const socket = new WebSocket(address, { headers: { authorization: `Bearer ${token}` } });
  const messages: { items: LogPage["items"]; missed: number }[] = [];
  socket.on("message", (data: Buffer) => messages.push(JSON.parse(data.toString())));
  await once(socket, "message");
  await fetch(`${find(started, "shop").url}/nowhere`);
  const line = await waitFor(async () => messages.flatMap(({ items }) => items)[0], readOutput);
  assert.equal(line.service, "shop");
  // The same line has the same id in a page.
  const page = await readLog("service=shop&q=unmatched&limit=1");
  assert.equal(page.items[0]!.id, line.id);
  socket.close();
});

test("the web console forwards to it, with the service's own token", async () => {
  const { port } = find(started, "gate").listeners.find(({ name }) => name === "console")!;
  const origin = `http://localhost:${port}`;
  const config = (await (await fetch(`${origin}/console/config`)).json()) as {
    services: { id: string; features: string[]; credentials: string }[];
  };
  const described = config.services.find(({ id }) => id === "runtime")!;
  assert.deepEqual(described.features, [
    "services",
    "schedules",
    "logs",
    "projects",
    "applications",
  ]);
  assert.equal(described.credentials, "token");

  const login = await fetch(`${origin}/console/login`, {
    method: "POST",
    headers: { "content-type": "application/json", origin },
    body: JSON.stringify({ service: "runtime", token }),
  });
  assert.equal(login.status, 200, await login.text());
  const cookie = login.headers.getSetCookie()[0]!.split(";")[0]!;
  const list = await fetch(`${origin}/svc/runtime/api/v1/services`, { headers: { cookie } });
  assert.equal(((await list.json()) as { items: Service[] }).items.length, 4);
  const run = await fetch(`${origin}/svc/runtime/api/v1/services/hello/restart`, {
    method: "POST",
    headers: { cookie, origin },
  });
  assert.equal(run.status, 202, await run.text());
  await waitForState("hello", "up");
  const foreign = request(`${origin}/svc/runtime/api/v1/services/hello/stop`, {
    method: "POST",
    headers: { cookie, origin: "http://example.com" },
  });
  foreign.end();
  const [answer] = (await once(foreign, "response")) as [{ statusCode: number; resume(): void }];
  answer.resume();
  assert.equal(answer.statusCode, 403);

  const socket = new WebSocket(`ws://localhost:${port}/svc/runtime/api/v1/logs/ws`, {
    headers: { cookie },
    origin,
  });
  const [data] = (await once(socket, "message")) as [Buffer];
  assert.deepEqual(JSON.parse(data.toString()), { type: "lines", items: [], missed: 0 });
  socket.close();
});
