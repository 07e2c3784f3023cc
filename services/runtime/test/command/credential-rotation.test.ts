// Credentials of a running platform are replaced: no request of a program that has an accepted value is refused.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  parseEnv,
  run,
  type Started,
} from "@platform/testing/platform-process";
import { createUrlSigner } from "@platform/s3/signature";

/** Longer than a command and some requests take on a busy machine. */
const OVERLAP_S = 15;
/** Interval of the requests of one client. */
const PAUSE_MS = 40;
/** Requests with each value, also on a busy machine. */
const REQUESTS_MIN = 11;
/** For the other platforms of a busy machine. */
const SETTLE_MS = 500;

const PROJECT = "export route GET /pid { return String(process.pid) }\n";

interface Answer {
  status: number;
  body: string;
}

/** A request with a value of a credential, as from another machine: no answer but 401 and 403 depends on its rights. */
type Ask = (value: string) => Promise<Answer>;

const data = join(makeFolder(), "data");
let up: ReturnType<typeof run>;
let started: Started;
let firstPids: Readonly<Record<string, number>> = {};

before(async () => {
  up = run(["up", "--json", "--data", data, ...anyPort]);
  started = await up.waitFor(findStarted);
  const folder = join(makeFolder(), "notes");
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "notes", type: "module" }));
  writeFileSync(join(folder, "main.service.ts"), PROJECT);
  const added = run(["project", "add", folder, "--data", data]);
  assert.equal(await added.exit, 0, added.output().err);
  firstPids = await readPids();
});
after(async () => {
  up.child.kill("SIGTERM");
  await up.exit;
});

/** The processes of all services, and the one that answers for the project. */
async function readPids(): Promise<Record<string, number>> {
  const { items } = await listServices();
  const pids = Object.fromEntries(items.map(({ id, pid }) => [id, pid]));
  return { ...pids, worker: Number((await send(`${await findProject()}/pid`, {})).body) };
}

async function listServices() {
  const { body } = await bearer(
    () => started.api_url,
    "/api/v1/services",
  )(readValues()["PLATFORM_RUNTIME_TOKEN"]!);
  return JSON.parse(body) as {
    items: { id: string; pid: number; listeners: { port: number }[] }[];
  };
}

async function findProject(): Promise<string> {
  const project = (await listServices()).items.find(({ id }) => id === "notes");
  return `http://127.0.0.1:${project!.listeners[0]!.port}`;
}

const readValues = (): Record<string, string> =>
  parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));

async function send(
  url: string,
  headers: Record<string, string>,
  { method = "GET", body = "" } = {},
): Promise<Answer> {
  // Programs on this machine may read metrics without a token.
  const sent = request(url, { method, headers: { "x-forwarded-for": "192.0.2.1", ...headers } });
  sent.end(body);
  const [answer] = await once(sent, "response");
  const { statusCode = 0 } = answer;
  if (url.includes("backup")) {
    answer.destroy();
    return { status: statusCode, body: "" };
  }
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += String(chunk);
  return { status: statusCode, body: text };
}

const bearer =
  (base: () => string, path: string): Ask =>
  (value) =>
    send(`${base()}${path}`, { authorization: `Bearer ${value}` });

const requestToken =
  (client: string, form: Record<string, string>): Ask =>
  async (value) => {
    const { status, body } = await send(
      `${find(started, "auth").url}/api/v1/auth/token`,
      {
        authorization: `Basic ${Buffer.from(`${client}:${value}`).toString("base64")}`,
        "content-type": "application/x-www-form-urlencoded",
      },
      { method: "POST", body: new URLSearchParams(form).toString() },
    );
    // A wrong code of a known client.
    return { status: body.includes("invalid_grant") ? 200 : status, body };
  };

const service = (name: string) => (): string => find(started, name).url;

function storageAdmin(): string {
  const admin = find(started, "vault").listeners.find(({ name }) => name === "admin");
  return `http://127.0.0.1:${admin!.port}`;
}

/** A request for each credential; for one that several services accept, for two of them. */
const CLIENTS: readonly (readonly [name: string, ...asks: Ask[]])[] = [
  ["PLATFORM_PULSE_TOKEN", bearer(service("pulse"), "/api/v1/admin/attention")],
  ["PLATFORM_NOTIFY_TOKEN", bearer(service("notify"), "/api/v1/inbox")],
  ["PLATFORM_TUNNEL_AUTH_TOKEN", bearer(service("tunnel"), "/api/v1/tunnels")],
  ["PLATFORM_GATE_AUTH_TOKEN", bearer(service("gate"), "/api/v1/routes")],
  [
    "PLATFORM_METRICS_TOKEN",
    bearer(service("gate"), "/metrics"),
    bearer(service("pulse"), "/metrics"),
    bearer(() => started.api_url, "/metrics"),
    async (value) => send(`${await findProject()}/metrics`, { authorization: `Bearer ${value}` }),
  ],
  ["PLATFORM_REVOCATIONS_TOKEN", bearer(service("auth"), "/api/v1/auth/revocations")],
  ["PLATFORM_BACKUP_TOKEN", bearer(service("tunnel"), "/api/v1/admin/backup")],
  ["PLATFORM_RUNTIME_TOKEN", bearer(() => started.api_url, "/api/v1/services")],
  ["PLATFORM_CLI_SECRET", requestToken("platform-cli", { grant_type: "client_credentials" })],
  [
    "PLATFORM_CONSOLE_SECRET",
    requestToken("platform-console", {
      grant_type: "authorization_code",
      code: "unknown",
      redirect_uri: "http://localhost/",
    }),
  ],
  [
    "STORE_SECRET_ACCESS_KEY",
    (value) => {
      const url = new URL("/api/v1/buckets", storageAdmin());
      const sign = createUrlSigner({
        accessKey: readValues()["STORE_ACCESS_KEY_ID"]!,
        secret: value,
        region: "us-east-1",
      });
      return send(url.href, sign("GET", url, ""));
    },
    (value) => {
      const url = new URL("/", find(started, "vault").url);
      const sign = createUrlSigner({
        accessKey: readValues()["STORE_ACCESS_KEY_ID"]!,
        secret: value,
        region: "us-east-1",
      });
      return send(url.href, sign("GET", url, ""));
    },
  ],
];

const isRefused = ({ status }: Answer): boolean => status === 401 || status === 403;

/** Sends requests with a value until it is told to stop, and at least some; returns the refused answers. */
function keepAsking(ask: Ask, readValue: () => string) {
  const end = new AbortController();
  let count = 0;
  const refused: Answer[] = [];
  const done = (async () => {
    while (!end.signal.aborted || count < REQUESTS_MIN) {
      const answer = await ask(readValue());
      count += 1;
      if (isRefused(answer) || answer.status === 0) refused.push(answer);
      await sleep(PAUSE_MS);
    }
  })();
  return async () => {
    end.abort();
    await done;
    return { count, refused };
  };
}

async function waitFor(read: () => Promise<string>, wanted: RegExp): Promise<void> {
  let text = "";
  for (let turn = 0; turn < 400; turn++) {
    text = await read();
    if (wanted.test(text)) return;
    await sleep(50);
  }
  assert.match(text, wanted);
}

async function rotate(name: string, overlapS: number) {
  const args = ["credentials", "rotate", name, "--data", data, "--overlap-s", String(overlapS)];
  const rotated = run(args);
  return { code: await rotated.exit, ...rotated.output() };
}

test("while each credential is replaced, no request with an accepted value is refused", async (t) => {
  const ended: (() => Promise<void>)[] = [];
  for (const [name, ...asks] of CLIENTS) {
    await t.test(name, async () => {
      const former = readValues()[name]!;
      // One program reads the file for each request, as commands do; the other has the former value.
      const stops = asks.flatMap((ask) => [
        keepAsking(ask, () => readValues()[name]!),
        keepAsking(ask, () => former),
      ]);
      const { code, out, err } = await rotate(name, OVERLAP_S);
      assert.equal(code, 0, err);
      const end = Date.parse(/accepted until (\S+)/.exec(out)?.[1] ?? "");
      assert.ok(end > Date.now(), out);
      const next = readValues()[name]!;
      assert.notEqual(next, former);
      assert.ok(!out.includes(next) && !out.includes(former), "no value is printed");
      await sleep(SETTLE_MS);
      for (const stop of stops) {
        const { count, refused } = await stop();
        assert.deepEqual(refused, [], `of ${count} requests`);
      }
      ended.push(async () => {
        await sleep(Math.max(0, end - Date.now()) + 50);
        for (const ask of asks) {
          assert.ok(isRefused(await ask(former)), `${name}: the former value is refused`);
          assert.ok(!isRefused(await ask(next)), `${name}: the new one is accepted`);
        }
      });
    });
  }
  for (const check of ended) await check();
});

test("services use the new values against each other after the former ones have ended", async () => {
  const log = readFileSync(join(data, "logs", "platform.jsonl"), "utf8");
  assert.doesNotMatch(log, /the revocation feed cannot be read/);
  assert.deepEqual(await readPids(), firstPids, "no process was restarted");
  for (const { name, url } of started.services) {
    if (!["pulse", "notify", "tunnel"].includes(name)) continue;
    const { status, body } = await send(`${url}/readyz`, {});
    assert.equal(status, 200, `${name}: ${body}`);
    assert.doesNotMatch(body, /revocations/);
  }
  const { body } = await send(`${await findProject()}/readyz`, {});
  assert.doesNotMatch(body, /revocations/);
});

test("storage publishes events, and identity sends mails, with tokens that came while they ran", async () => {
  const signed = async (method: "PUT" | "POST", path: string, body: string): Promise<void> => {
    const url = new URL(path, find(started, "vault").url);
    const { STORE_ACCESS_KEY_ID: id, STORE_SECRET_ACCESS_KEY: secret } = readValues();
    const answer = await fetch(url, {
      method,
      body,
      headers: createUrlSigner({ accessKey: id!, secret: secret!, region: "us-east-1" })(
        method,
        url,
        body,
      ),
    });
    assert.equal(answer.status, 200, await answer.text());
  };
  await signed("PUT", "/photos", "");
  const stomp = { url: "stomp://platform", destination: "/topic/store.photos" };
  const subscription = { bucket: "photos", events: ["objstore:ObjectCreated:*"], stomp };
  await signed("PUT", "/photos?notification=", JSON.stringify(subscription));
  await signed("PUT", "/photos/a.jpg", "hello");
  const tail = bearer(service("pulse"), "/api/v1/tail?topic=store.photos");
  await waitFor(async () => (await tail(readValues()["PLATFORM_PULSE_TOKEN"]!)).body, /a\.jpg/);

  const registered = await send(
    `${find(started, "auth").url}/api/auth/register`,
    { "content-type": "application/json" },
    {
      method: "POST",
      body: JSON.stringify({
        username: "ann",
        password: "correct horse battery staple 1",
        email: "ann@example.org",
      }),
    },
  );
  assert.equal(registered.status, 201, registered.body);
  const inbox = bearer(service("notify"), "/api/v1/inbox");
  await waitFor(async () => (await inbox(readValues()["PLATFORM_NOTIFY_TOKEN"]!)).body, /ann@/);
});

test("a second replacement waits for the end of the former value, unless that ends at once", async () => {
  const name = "PLATFORM_NOTIFY_TOKEN";
  const [first, ask] = [readValues()[name]!, bearer(service("notify"), "/api/v1/inbox")];
  assert.equal((await rotate(name, 3_600)).code, 0);
  const second = readValues()[name]!;
  const refused = await rotate(name, 60);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /A former value of PLATFORM_NOTIFY_TOKEN is accepted until/);
  assert.equal(readValues()[name], second, "nothing has changed");

  const follow = keepAsking(ask, () => readValues()[name]!);
  assert.equal((await rotate(name, 0)).code, 0);
  assert.deepEqual((await follow()).refused, []);
  for (const value of [first, second]) assert.ok(isRefused(await ask(value)));
  assert.ok(!isRefused(await ask(readValues()[name]!)));
  assert.doesNotMatch(
    readFileSync(join(data, "credentials.env"), "utf8"),
    /former PLATFORM_NOTIFY/,
  );
});

test("only the data folder's token replaces credentials, and each replacement is in the log", async () => {
  const body = JSON.stringify({ overlap_seconds: 60 });
  const path = "/api/v1/credentials/PLATFORM_PULSE_TOKEN/rotate";
  const post = (token: string): Promise<Answer> =>
    send(
      `${started.api_url}${path}`,
      { authorization: `Bearer ${token}`, "content-type": "application/json" },
      { method: "POST", body },
    );
  const before = readValues();
  const administrator = await requestToken("platform-cli", { grant_type: "client_credentials" })(
    before["PLATFORM_CLI_SECRET"]!,
  );
  const { access_token: token } = JSON.parse(administrator.body) as { access_token: string };
  assert.equal((await post(token)).status, 403, "an administrator of identity");
  assert.equal((await post(before["PLATFORM_NOTIFY_TOKEN"]!)).status, 401, "another token");
  assert.deepEqual(readValues(), before);

  const lines = readFileSync(join(data, "logs", "platform.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line.includes('"credential rotated"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const [name] of CLIENTS) {
    const entry = lines.find(({ target }) => target === name);
    assert.equal(entry?.["audit"], true, name);
    assert.equal(entry?.["caller"], "operator");
  }
  const values = Object.values(before).filter((value) => value.length > 20);
  for (const value of values) assert.ok(!JSON.stringify(lines).includes(value));
});

test("names that cannot be replaced are explained, and the list has no value", async () => {
  for (const [name, reason] of [
    ["PLATFORM_AUTH_ADMIN_PASSWORD", /the password of a person, who changes it at \/account/],
    ["STORE_ACCESS_KEY_ID", /rotate STORE_SECRET_ACCESS_KEY/],
    ["PLATFORM_PULSE_TOKE", /did you mean "PLATFORM_PULSE_TOKEN"/],
  ] as const) {
    const { code, err } = await rotate(name, 60);
    assert.equal(code, 1);
    assert.match(err, reason);
  }
  const listed = run(["credentials", "list", "--data", data]);
  assert.equal(await listed.exit, 0);
  const { out } = listed.output();
  assert.match(out, /PLATFORM_NOTIFY_TOKEN +mail, as the operator +identity +20\d\d-/);
  for (const value of Object.values(readValues())) assert.ok(!out.includes(value));
});

test("identity's key is replaced: published before it signs, or at once", async () => {
  const rotateKeys = async (...flags: string[]) => {
    const rotated = run(["keys", "rotate", "--data", data, ...flags]);
    return { code: await rotated.exit, ...rotated.output() };
  };
  const planned = await rotateKeys();
  assert.equal(planned.code, 0, planned.err);
  assert.match(
    planned.out,
    /it signs from 20\S+Z\n  tokens of the former key are accepted until 20/,
  );

  const getToken = requestToken("platform-cli", { grant_type: "client_credentials" });
  const { body } = await getToken(readValues()["PLATFORM_CLI_SECRET"]!);
  const { access_token: former } = JSON.parse(body) as { access_token: string };
  const ask = bearer(service("pulse"), "/api/v1/admin/attention");
  assert.notEqual((await ask(former)).status, 401);
  const immediate = await rotateKeys("--now");
  assert.equal(immediate.code, 0, immediate.err);
  assert.match(immediate.out, /known to .*messaging.*gateway/);
  await waitFor(async () => String((await ask(former)).status), /401/);
});
