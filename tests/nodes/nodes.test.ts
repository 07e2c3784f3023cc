// The page "Several nodes": two gateways, two identity nodes on PostgreSQL, and Redis. Each but PostgreSQL is killed in turn while users sign in.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  findPostgresSkip,
  startPostgresCluster,
  type PostgresCluster,
} from "@platform/kernel/db-testing";
import { every } from "@platform/kernel/time";
import { RedisClient } from "@platform/redis";
import { findRedisSkip, killRedis, startRedis } from "@platform/redis/testing";
import { Authenticator } from "../../services/auth/test/authenticator.ts";
import { awaitPort, findFreePort, type Launch, type StagedProcess } from "../stage/process.ts";
import { Stage } from "../stage/stage.ts";
import { readBlocks } from "../guides/page.ts";

const skip = findPostgresSkip() ?? findRedisSkip();
const isSkipped = typeof skip === "string";
const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const SECONDS = Number(process.env["PLATFORM_NODES_SECONDS"] ?? "12");
// The long form signs in 50 times a second.
const RATE_PER_SECOND = Number(process.env["PLATFORM_NODES_RATE"] ?? "5");
const USERS = 2 * RATE_PER_SECOND;
/**
 * Concurrent sign-ins. On a machine that cannot bear the rate, further ones do not begin: the test is about lost nodes,
 * and a backlog would make all of them slower than the clients' timeout.
 */
const IN_FLIGHT_MAX = 24;
/** A sign-in has failed if it has not succeeded after this time, repetitions included. */
const PATIENCE_MS = 30_000;
const REQUEST_TIMEOUT_MS = 10_000;
const PAUSE_MS = 200;
const START_TIMEOUT_MS = 60_000;
/** Time without a node, and time with all of them before the next one is killed. */
const DOWN_MS = 1_000;
const UP_MS = SECONDS > 60 ? 4_000 : 500;
const HOST = "identity.example.com";
const ORIGIN = `https://${HOST}`;
// Hashing a password takes about 50 ms of a core.
const PASSWORD_SHARE = 0.06;

interface Node {
  launch: Launch;
  port: number;
  process: StagedProcess;
}

interface User {
  username: string;
  authenticator: Authenticator;
  refreshToken: string;
  /** Its device does one thing at a time. */
  isBusy: boolean;
  /** The gateway that it uses until a connection breaks, and then the other one. */
  gateway: number;
  address: string;
}

interface Answer {
  status: number;
  body: Record<string, unknown>;
}

/** Users that register at the same time. */
const REGISTRATIONS = 4;

const stage = new Stage();
/** Ends Redis after the test. */
const endings: (() => void)[] = [];
let redis: { kill: () => Promise<void>; start: () => Promise<void> };
let cluster: PostgresCluster;
const nodes: Node[] = [];
const gateways: Node[] = [];
const users: User[] = [];
const METHODS = { password: usePassword, refresh, passkey: usePasskey };
const counts = { password: 0, passkey: 0, refresh: 0, kills: 0, skipped: 0 };
/** Requests that were repeated, by the response that they had; 0: the connection broke. */
const retries: Record<string, number> = {};
const failures: string[] = [];

before(async () => {
  if (isSkipped) return;
  const [postgres, redisUrl] = await Promise.all([startPostgresCluster(), startSharedRedis()]);
  cluster = postgres;
  const [identityEnv = "", , gatewayConfig = ""] = readBlocks("several-nodes.md").map(
    ({ text }) => text,
  );
  const env = createIdentityEnv(identityEnv, await cluster.createDatabase());
  for (const name of ["identity-1", "identity-2"]) {
    const port = await findFreePort();
    const own = { ...env, PLATFORM_AUTH_ADDR: `127.0.0.1:${port}` };
    nodes.push(start(name, "platform-auth.js", [], own, port));
  }
  for (const name of ["gateway-1", "gateway-2"]) {
    const port = await findFreePort();
    const path = join(stage.folder, `${name}.json`);
    writeFileSync(path, localizeConfig(gatewayConfig, port, redisUrl));
    gateways.push(start(name, "platform-gate.js", ["--config", path], {}, port));
  }
  await Promise.all([...nodes, ...gateways].map(awaitReady));
  const numbers = Array.from({ length: USERS }, (_, number) => number).values();
  await Promise.all(
    Array.from({ length: REGISTRATIONS }, async () => {
      for (const number of numbers) users.push(await register(number));
    }),
  );
  assert.ok((await countRedisKeys(redisUrl)) >= USERS, "the gateways count clients in Redis");
});
after(async () => {
  if (isSkipped) return;
  for (const end of endings) end();
  await stage[Symbol.asyncDispose]();
  await cluster.stop();
});

test("no sign-in fails while each node is killed and started again", { skip }, async (t) => {
  const started: Promise<void>[] = [];
  let tick = 0;
  const load = every(
    1000 / RATE_PER_SECOND,
    () => {
      const user = users.find(({ isBusy }) => !isBusy);
      if (user === undefined || users.filter(({ isBusy }) => isBusy).length >= IN_FLIGHT_MAX) {
        counts.skipped += 1;
        return;
      }
      const number = (tick += 1);
      started.push(
        signIn(user, number).catch((error: unknown) => void failures.push(String(error))),
      );
    },
    (error) => void failures.push(String(error)),
  );
  const startMs = performance.now();
  const endMs = startMs + SECONDS * 1_000;
  const parts = [...nodes.map(toPart), redis, ...gateways.map(toPart)];
  for (let turn = 0; turn < parts.length || performance.now() < endMs; turn += 1) {
    const part = parts[turn % parts.length]!;
    await part.kill();
    counts.kills += 1;
    await sleep(DOWN_MS);
    await part.start();
    await sleep(UP_MS);
  }
  await load.stop();
  await Promise.all(started);
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  const results = { ...counts, retries, seconds, perSecond: Math.round(started.length / seconds) };
  t.diagnostic(JSON.stringify({ ...results, slowestMs: Math.round(slowestMs) }));
  assert.deepEqual(failures.slice(0, 5), [], `${failures.length} of ${started.length} failed`);
  assert.ok(counts.kills >= 5, "each node and Redis were killed");
  const done = counts.password + counts.passkey + counts.refresh;
  assert.equal(done, started.length);
  for (const kind of ["password", "passkey", "refresh"] as const) assert.ok(counts[kind] > 0, kind);
  assert.ok(Object.keys(retries).length > 0, "the kills were noticed");
});

function start(
  name: string,
  bin: string,
  args: readonly string[],
  env: Record<string, string>,
  port: number,
): Node {
  const launch: Launch = {
    name,
    command: process.execPath,
    args: [join(REPOSITORY, "bin", bin), ...args],
    cwd: stage.folder,
    env,
  };
  return { launch, port, process: stage.start(launch) };
}

function toPart(node: Node): typeof redis {
  return {
    kill: async () => node.process.kill("SIGKILL"),
    start: async () => {
      node.process = stage.start(node.launch);
      await awaitReady(node);
    },
  };
}

async function startSharedRedis(): Promise<string> {
  const port = await findFreePort();
  const context = { after: (end: () => void) => void endings.push(end) } as Pick<
    TestContext,
    "after"
  >;
  let server = await startRedis(context, port);
  redis = {
    kill: () => killRedis(server),
    start: async () => void (server = await startRedis(context, port)),
  };
  return server.url;
}

async function countRedisKeys(url: string): Promise<number> {
  const client = new RedisClient({ url, onFailure: () => {}, onRecovery: () => {} });
  while (!client.isReady) await sleep(10);
  const count = await client.send("DBSIZE");
  client.close();
  return Number(count);
}

async function awaitReady({ port, process: staged }: Node): Promise<void> {
  await awaitPort(staged, port, START_TIMEOUT_MS);
  const endMs = performance.now() + START_TIMEOUT_MS;
  while (
    !(await fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    assert.ok(performance.now() < endMs && !staged.hasExited(), staged.readOutput());
    await sleep(25);
  }
}

/** The environment file that the block of the page writes, with the database of this test. */
function createIdentityEnv(block: string, database: string): Record<string, string> {
  execFileSync("bash", ["-c", block], { cwd: stage.folder });
  const text = readFileSync(join(stage.folder, "identity.env"), "utf8");
  const lines = text
    .trim()
    .split("\n")
    .map((line) => /^(\w+)=(.*)$/.exec(line)!.slice(1, 3));
  return {
    ...(Object.fromEntries(lines) as Record<string, string>),
    DATABASE_URL: database,
    // The gateways of this test; clients have other loopback addresses.
    PLATFORM_AUTH_TRUSTED_PROXIES: "127.0.0.1",
    PLATFORM_AUTH_DATA_DIR: join(stage.folder, "auth"),
  };
}

function localizeConfig(text: string, port: number, redisUrl: string): string {
  return text
    .replace("redis://10.0.0.10:6379", redisUrl)
    .replace('":8080"', `"127.0.0.1:${port}"`)
    .replace("http://10.0.0.11:8086", `http://127.0.0.1:${nodes[0]!.port}`)
    .replace("http://10.0.0.12:8086", `http://127.0.0.1:${nodes[1]!.port}`);
}

async function register(number: number): Promise<User> {
  const user = {
    username: `user${number}`,
    authenticator: new Authenticator(ORIGIN),
    refreshToken: "",
    isBusy: false,
    gateway: number % 2,
    address: `127.0.1.${number + 1}`,
  };
  const credentials = { username: user.username, password: passwordOf(user) };
  const deadlineMs = performance.now() + PATIENCE_MS;
  await post(user, deadlineMs, "/api/v1/auth/register", credentials);
  const login = await post(user, deadlineMs, "/api/v1/auth/login", credentials);
  keepTokens(user, login);
  const { id } = login["user"] as { id: string };
  const begin = "/api/v1/auth/passkey/register/begin";
  const { challenge } = await post(
    user,
    deadlineMs,
    begin,
    { user_id: id },
    String(login["access_token"]),
  );
  const { publicKey } = challenge as { publicKey: Parameters<Authenticator["create"]>[0] };
  const finish = "/api/v1/auth/passkey/register/finish";
  await post(user, deadlineMs, finish, user.authenticator.create(publicKey));
  return user;
}

function passwordOf({ username }: Pick<User, "username">): string {
  return `${username} has a long password`;
}

let slowestMs = 0;

/** One sign-in, with repetitions until it succeeds; throws if it does not. */
async function signIn(user: User, number: number): Promise<void> {
  // The next sign-in is that of another user.
  users.push(...users.splice(users.indexOf(user), 1));
  const startedMs = performance.now();
  const deadlineMs = startedMs + PATIENCE_MS;
  user.isBusy = true;
  try {
    const kind = chooseKind(number);
    await METHODS[kind](user, deadlineMs);
    counts[kind] += 1;
  } finally {
    user.isBusy = false;
  }
  slowestMs = Math.max(slowestMs, performance.now() - startedMs);
}

type Kind = keyof typeof METHODS;

function chooseKind(number: number): Kind {
  if (number % Math.round(1 / PASSWORD_SHARE) === 0) return "password";
  return number % 2 === 0 ? "refresh" : "passkey";
}

async function usePassword(user: User, deadlineMs: number): Promise<void> {
  const credentials = { username: user.username, password: passwordOf(user) };
  keepTokens(user, await post(user, deadlineMs, "/api/v1/auth/login", credentials));
}

/** A device continues with the tokens of its last sign-in: a user has at most 100 sessions, the oldest of which end. */
function keepTokens(user: User, { refresh_token: token }: Record<string, unknown>): void {
  assert.ok(typeof token === "string", "a sign-in returns a refresh token");
  user.refreshToken = token;
}

async function refresh(user: User, deadlineMs: number): Promise<void> {
  const form = new URLSearchParams({
    grant_type: "refresh_token",
    client_id: "platform",
    refresh_token: user.refreshToken,
  });
  keepTokens(user, await post(user, deadlineMs, "/api/v1/auth/token", form));
}

/** A lost response may mean that the challenge is used: the sign-in begins again. */
async function usePasskey(user: User, deadlineMs: number): Promise<void> {
  for (;;) {
    const { challenge } = await post(user, deadlineMs, "/api/v1/auth/passkey/login/begin", {});
    const { publicKey } = challenge as { publicKey: { challenge: string; rpId: string } };
    const path = "/api/v1/auth/passkey/login/finish";
    const answer = await ask(user, path, user.authenticator.get(publicKey));
    if (answer.status === 200) return keepTokens(user, answer.body);
    repeatOrThrow(path, answer, deadlineMs);
    await sleep(PAUSE_MS);
  }
}

async function post(
  user: User,
  deadlineMs: number,
  path: string,
  body: object,
  token?: string,
): Promise<Record<string, unknown>> {
  for (;;) {
    const answer = await ask(user, path, body, token);
    if (answer.status === 200 || answer.status === 201) return answer.body;
    repeatOrThrow(path, answer, deadlineMs);
    await sleep(PAUSE_MS);
  }
}

// Status 0: the connection broke.
function repeatOrThrow(path: string, { status, body }: Answer, deadlineMs: number): void {
  const mayRepeat = status === 0 || [502, 503, 504].includes(status);
  assert.ok(
    mayRepeat && performance.now() < deadlineMs,
    `${path}: ${status} ${JSON.stringify(body)}`,
  );
  retries[status] = (retries[status] ?? 0) + 1;
}

/** Sends a request to the user's gateway, as programs do that know its two addresses. */
function ask(user: User, path: string, body: object, token?: string): Promise<Answer> {
  const isForm = body instanceof URLSearchParams;
  const { port } = gateways[user.gateway]!;
  const text = isForm ? body.toString() : JSON.stringify(body);
  return new Promise((resolve) => {
    const broken = (): void => {
      user.gateway = 1 - gateways.findIndex((gateway) => gateway.port === port);
      resolve({ status: 0, body: {} });
    };
    const sent = request(
      {
        host: "127.0.0.1",
        localAddress: user.address,
        port,
        path,
        method: "POST",
        agent: false,
        timeout: REQUEST_TIMEOUT_MS,
        headers: {
          host: HOST,
          "content-type": isForm ? "application/x-www-form-urlencoded" : "application/json",
          "content-length": Buffer.byteLength(text),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
      },
      (response) => {
        let received = "";
        response.setEncoding("utf8").on("data", (part: string) => void (received += part));
        response.on("error", broken);
        response.on("close", () => {
          if (!response.complete) broken();
          else resolve({ status: response.statusCode ?? 0, body: parse(received) });
        });
      },
    );
    sent.on("error", broken);
    sent.on("timeout", () => sent.destroy(new Error("timeout")));
    sent.end(text);
  });
}

function parse(text: string): Record<string, unknown> {
  return text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {};
}
