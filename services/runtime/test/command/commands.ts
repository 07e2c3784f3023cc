// The commands for a running platform, as an operator types them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CreateBucketCommand,
  S3Client,
  GetObjectCommand,
  ListBucketsCommand,
  PutBucketReplicationCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
} from "@aws-sdk/client-s3";
import { openCommandLine } from "../fixture/collect-answers.ts";
import {
  anyPort,
  find,
  isAlive,
  makeFolder,
  parseEnv,
  run,
  type Started,
} from "@platform/testing/platform-process";
import { createUrlSigner } from "@platform/s3/signature";
import { waitFor } from "@platform/testing/wait";
import { joinPlatform } from "./running-platform.ts";

const SETTLE_MS = 60_000;
let data: string;
let up: ReturnType<typeof run>;
let started: Started;

before(async () => {
  ({ data, up, started } = await joinPlatform());
});

// One process for most commands: each would load the same modules.
const commandLine = openCommandLine();
after(() => commandLine.close());

/** Runs a command to its end. */
async function platform(...args: string[]) {
  const { exitCode: code, out, err } = await commandLine.call([...args, "--data", data]);
  return { code, out, err };
}

/** The status when all services have answered: on a busy machine some are still occupied with their start. */
async function readSettledStatus() {
  const endsMs = performance.now() + SETTLE_MS;
  let status = await platform("status");
  while (status.code !== 0 && performance.now() < endsMs) status = await platform("status");
  return status;
}

test("status shows every service as up, as a table and as JSON", async () => {
  const table = await readSettledStatus();
  assert.equal(table.code, 0, table.out + table.err);
  for (const label of ["gateway", "identity", "storage", "messaging", "sample"])
    assert.match(table.out, new RegExp(`^${label} +up +http://localhost:\\d+ +\\d+ `, "m"));
  const json = await platform("status", "--json");
  const document = JSON.parse(json.out);
  assert.equal(document.status, "up");
  assert.equal(document.pid, up.child.pid);
});

test("a second up on the same folder is refused with the process that holds it, before its ports are", async () => {
  const second = run(["up", "--data", data, ...anyPort]);
  assert.equal(await second.exit, 1);
  assert.match(
    second.output().err,
    new RegExp(
      `another platform is running with the data folder ".*my data"( \\(process ${up.child.pid}\\))?; stop it first, or choose another folder with --data`,
    ),
  );
  assert.equal((await readSettledStatus()).code, 0);
});

test("user add creates an account with a generated password that signs in", async () => {
  const added = await platform(
    "user",
    "add",
    "ann",
    "--email",
    "ann@example.com",
    "--role",
    "admin",
  );
  assert.equal(added.code, 0, added.err);
  const { PLATFORM_USER: username, PLATFORM_PASSWORD: password } = parseEnv(added.out);
  const login = await fetch(`${find(started, "auth").url}/api/v1/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username, password }),
  });
  assert.equal(login.status, 200);
  const { access_token: token } = (await login.json()) as { access_token: string };
  const users = await fetch(`${find(started, "auth").url}/api/v1/users`, {
    headers: { authorization: `Bearer ${token}` },
  });
  assert.equal(users.status, 200, "the role is bound");

  const again = await platform("user", "add", "ann");
  assert.equal(again.code, 1);
  assert.match(again.err, /^platform: there is already a user "ann": choose another name\n$/);
  const unknown = await platform("user", "add", "bob", "--role", "admn");
  assert.match(unknown.err, /there is no role "admn"; known are .*admin/);
  const weak = run(["user", "add", "carl", "--password-stdin", "--data", data], {}, "123\n");
  assert.equal(await weak.exit, 1);
  assert.match(weak.output().err, /identity: .*password/i);
});

test("the first administrator of credentials.env signs in", async () => {
  const { PLATFORM_AUTH_ADMIN_PASSWORD: password } = parseEnv(
    readFileSync(join(data, "credentials.env"), "utf8"),
  );
  const login = await fetch(`${find(started, "auth").url}/api/v1/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "root", password }),
  });
  assert.equal(login.status, 200);
});

test("bucket add creates a bucket once", async () => {
  const added = await platform("bucket", "add", "photos");
  assert.equal(added.code, 0, added.err);
  assert.equal(added.out, `${find(started, "vault").url}/photos\n`);
  assert.match((await platform("bucket", "add", "photos")).err, /already a bucket "photos"/);
  assert.match(
    (await platform("bucket", "add", "No Good")).err,
    /storage: name: 3 to 63 lower-case letters/,
  );
});

test("bucket add --cors lets pages of these origins use the bucket, and no others", async () => {
  const origin = "https://photos.example";
  const added = await platform("bucket", "add", "albums", "--cors", origin);
  assert.equal(added.code, 0, added.err);
  const ask = async (from: string) => {
    const answer = await fetch(`${find(started, "vault").url}/albums/one`, {
      method: "OPTIONS",
      headers: { origin: from, "access-control-request-method": "PUT" },
    });
    return [answer.status, answer.headers.get("access-control-allow-origin")];
  };
  assert.deepEqual(await ask(origin), [200, origin]);
  assert.deepEqual(await ask("https://other.example"), [403, null]);
  const refused = await platform("bucket", "add", "more", "--cors", "photos.example/x");
  assert.equal(refused.code, 1);
  assert.match(refused.err, /"photos.example\/x" is not an origin/);
});

test("app add prints credentials that reach the application's bucket, and nothing else", async () => {
  const added = await platform(
    "app",
    "add",
    "notes",
    "--bucket",
    "notes-files",
    "--topic",
    "notes.#",
    "--redirect",
    "http://localhost:3000/callback",
  );
  assert.equal(added.code, 0, added.err);
  assert.match(added.err, /shown only once/);
  const env = parseEnv(added.out);
  const s3 = new S3Client({
    endpoint: env["AWS_ENDPOINT_URL_S3"]!,
    region: env["AWS_REGION"]!,
    forcePathStyle: true,
    credentials: {
      accessKeyId: env["AWS_ACCESS_KEY_ID"]!,
      secretAccessKey: env["AWS_SECRET_ACCESS_KEY"]!,
    },
  });
  await s3.send(new PutObjectCommand({ Bucket: "notes-files", Key: "a/b", Body: "hello" }));
  const got = await s3.send(new GetObjectCommand({ Bucket: "notes-files", Key: "a/b" }));
  assert.equal(await got.Body?.transformToString(), "hello");
  await platform("bucket", "add", "foreign");
  const foreign = new PutObjectCommand({ Bucket: "foreign", Key: "a", Body: "x" });
  await assert.rejects(s3.send(foreign), /AccessDenied|Access Denied/);
  await assert.rejects(s3.send(new ListBucketsCommand({})), /AccessDenied|Access Denied/);

  const { client_id, claims, token } = await fetchAppToken(env);
  const exchange = new URLSearchParams({
    Action: "AssumeRoleWithWebIdentity",
    Version: "2011-06-15",
    RoleArn: env["S3_ROLE_ARN"]!,
    RoleSessionName: "test",
    WebIdentityToken: token,
  });
  const assumed = await fetch(env["AWS_ENDPOINT_URL_S3"]!, { method: "POST", body: exchange });
  assert.equal(assumed.status, 200, "the role has a policy in storage");
  const publish = (topic: string) =>
    fetch(`${env["MESSAGING_URL"]}/api/v1/publish`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ topic, payload: "hello" }),
    });
  assert.equal((await publish("notes.new")).status, 200);
  assert.equal((await publish("other")).status, 403);
  assert.equal(client_id, env["OIDC_CLIENT_ID"]);
  assert.deepEqual(claims.roles, ["app-notes"]);
  assert.equal([claims.aud].flat().includes("platform"), true);
  const authorize = new URL(`${env["OIDC_ISSUER"]}/api/v1/auth/authorize`);
  authorize.search = new URLSearchParams({
    client_id: env["OIDC_CLIENT_ID"]!,
    response_type: "code",
    redirect_uri: "http://localhost:3000/callback",
    scope: "openid",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  }).toString();
  const page = await fetch(authorize, { redirect: "manual" });
  assert.match(page.headers.get("location") ?? "", /interaction/, "users can sign in");

  const again = await platform("app", "add", "notes");
  assert.match(again.err, /already an application notes .*platform app remove notes/);
  assert.equal((await platform("app", "remove", "notes")).code, 0);
  await assert.rejects(
    s3.send(new GetObjectCommand({ Bucket: "notes-files", Key: "a/b" })),
    /InvalidAccessKeyId|does not exist/,
  );
  assert.equal((await platform("app", "add", "notes")).code, 0, "nothing was left behind");
});

test("app add's environment file has commands that work: publish, mail, store an object", async () => {
  const all = ["--bucket", "letters", "--topic", "letters.*", "--mail"];
  const added = await platform("app", "add", "letters", ...all);
  assert.equal(added.code, 0, added.err);
  assert.match(added.err, /shown only once: save them .* such as letters\.env\n$/);
  const folder = makeFolder();
  writeFileSync(join(folder, "letters.env"), added.out);
  const commands = added.out.split("\n").flatMap((line) => /^# {3}(.*)$/.exec(line)?.[1] ?? []);
  assert.equal(commands.length, 5, added.out);
  const script = ['curl() { command curl -sSf "$@"; }', ...commands].join("\n");
  const shell = spawn("sh", ["-ec", script], { cwd: folder });
  const texts = await Promise.all([text(shell.stdout), text(shell.stderr)]);
  assert.equal(texts[1], "");
  assert.match(texts[0], /"topic":"letters\.new"/);
  const { objects } = JSON.parse(
    (await platform("bucket", "list", "--json")).out
      .trim()
      .split("\n")
      .find((line) => line.includes('"letters"'))!,
  ) as { objects: number };
  assert.equal(objects, 1);
});

test("app add --out writes a file that only its owner can read, also in place of another", async () => {
  const folder = makeFolder();
  const file = join(folder, "quiet.env");
  writeFileSync(file, "old", { mode: 0o644 });
  const refused = await platform("app", "add", "quiet", "--mail", "--out", folder);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /is not a regular file/);
  const added = await platform("app", "add", "quiet", "--mail", "--out", file);
  assert.equal(added.code, 0, added.err);
  assert.equal(added.out, "");
  assert.ok(added.err.includes(file), added.err);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.ok(parseEnv(readFileSync(file, "utf8"))["OIDC_CLIENT_SECRET"]);
  const again = await platform("app", "add", "quiet", "--mail", "--out", file);
  assert.equal(again.code, 1, "the name is taken");
  assert.ok(parseEnv(readFileSync(file, "utf8"))["OIDC_CLIENT_SECRET"], "the file is kept");
  assert.deepEqual(readdirSync(folder), ["quiet.env"]);
});

async function fetchAppToken(env: Record<string, string>) {
  const answer = await fetch(env["OIDC_TOKEN_URL"]!, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`${env["OIDC_CLIENT_ID"]}:${env["OIDC_CLIENT_SECRET"]}`).toString("base64")}`,
    },
    body: new URLSearchParams({ grant_type: "client_credentials" }),
  });
  assert.equal(answer.status, 200);
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const claims = JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString());
  return { token, claims, client_id: claims.client_id };
}

test("logs shows the lines of one service by either name, and follows new ones", async () => {
  const own = await platform("logs", "identity", "--json", "--lines", "1000");
  assert.equal(own.code, 0, own.err);
  const lines = own.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.ok(lines.length > 5);
  assert.ok(lines.every(({ service, part }) => service === "auth" || part === "identity"));
  const few = await platform("logs", "auth", "--lines", "2");
  assert.match(few.out, /^(\S+ \w+ +identity +.*\n){2}$/);
  const quiet = await platform("logs", "identity", "--level", "error");
  assert.deepEqual(quiet, {
    code: 0,
    out: "",
    err: "no line of identity at level error or above\n",
  });
  assert.match(
    (await platform("logs", "identiy")).err,
    /unknown service "identiy"; did you mean "identity"\?/,
  );

  const follower = run(["logs", "gateway", "--follow", "--lines", "0", "--data", data]);
  const traces: string[] = [];
  // Repeated, because the follower begins with what is logged after its start.
  const asking = setInterval(() => {
    void fetch(`${find(started, "gate").url}/nothing-here`).then(async (answer) => {
      const { trace_id: trace } = (await answer.json()) as { trace_id: string };
      traces.push(trace);
    });
  }, 300);
  await follower.waitFor((text) => traces.find((trace) => text.includes(trace)));
  clearInterval(asking);
  follower.child.kill("SIGINT");
  await follower.exit;
});

test("the access log is written and shown", async () => {
  await fetch(`${find(started, "gate").url}/hello?secret=1`);
  await sleep(500);
  const shown = await platform("logs", "--access");
  assert.match(shown.out, / 200 GET \/hello \d+ ms /);
  assert.doesNotMatch(shown.out, /secret/);
});

test("the index page shows services and links to this machine only", async () => {
  const { url } = find(started, "gate");
  const page = await fetch(url);
  assert.equal(page.status, 200);
  const html = await page.text();
  for (const label of ["identity", "storage", "messaging"])
    assert.match(html, new RegExp(`<td>${label}</td><td>running`));
  assert.ok(html.includes(`${find(started, "auth").url}/account`));
  for (const headers of [{ "x-forwarded-for": "192.0.2.1" }, { origin: "https://example.com" }])
    assert.notEqual((await fetch(url, { headers })).status, 200);
});

test("metrics of every service need the token behind a proxy, those of the gateway everywhere", async () => {
  const { PLATFORM_METRICS_TOKEN: token } = parseEnv(
    readFileSync(join(data, "credentials.env"), "utf8"),
  );
  const scrape = readFileSync(join(data, "prometheus.yml"), "utf8");
  const targets = [...scrape.matchAll(/targets: \["([^"]+)"\]/g)].map(
    ([, host]) => `http://${host}/metrics`,
  );
  assert.equal(targets.length, 7);
  for (const url of targets) {
    const isGateway = url.startsWith(find(started, "gate").url);
    assert.equal((await fetch(url)).status, isGateway ? 401 : 200, url);
    const foreign = { "x-forwarded-for": "192.0.2.1" };
    assert.equal((await fetch(url, { headers: foreign })).status, 401, url);
    const authorization = `Bearer ${token}`;
    assert.equal((await fetch(url, { headers: { ...foreign, authorization } })).status, 200, url);
  }
});

test("the sample gets no metrics token", { skip: process.platform !== "linux" }, () => {
  const text = readFileSync(join(data, "credentials.env"), "utf8");
  const { PLATFORM_METRICS_TOKEN: token } = parseEnv(text);
  const read = (name: string): string =>
    readFileSync(`/proc/${find(started, name).pid}/environ`, "utf8");
  assert.ok(read("gate").includes(token!));
  assert.ok(!read("hello").includes(token!));
});

test("doctor finds nothing on a healthy platform", async () => {
  const { code, out } = await platform("doctor");
  assert.equal(code, 0, out);
  assert.match(out, /^ok +identity: up$/m);
  assert.match(out, /^ok +command line: identity accepts its credential$/m);
});

test("doctor finds an application without acting roles, and its command mends it", async () => {
  const redirect = ["--redirect", "http://localhost:3000/callback"];
  assert.equal((await platform("app", "add", "shop", ...redirect)).code, 0);
  const secret = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"))[
    "PLATFORM_CLI_SECRET"
  ];
  const { url } = started.services.find(({ name }) => name === "auth")!;
  const granted = await fetch(`${url}/api/v1/auth/token`, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`platform-cli:${secret}`).toString("base64")}`,
    },
    body: new URLSearchParams({ grant_type: "client_credentials" }),
  });
  const { access_token: token } = (await granted.json()) as { access_token: string };
  const ask = async (path: string, method = "GET", body?: object) => {
    const answer = await fetch(`${url}/api/v1/auth/clients${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await answer.json()) as Record<string, unknown>;
  };
  const { clients } = (await ask("")) as {
    clients: { client_id: string; client_name?: string; acting_roles?: string[] }[];
  };
  const { client_id: id, acting_roles: roles } = clients.find(
    ({ client_name: name }) => name === "shop",
  )!;
  assert.deepEqual(roles, ["app-shop"]);
  // As an application that an earlier version has added.
  await ask(`/${id}`, "PATCH", { acting_roles: null, scope: "openid vault:read vault:write" });
  const before = await platform("doctor");
  assert.equal(before.code, 0, before.out);
  assert.match(before.out, /^warn +application shop: .*\n +→ .*platform app allow shop/m);
  const allowed = await platform("app", "allow", "shop", "--role", "writer");
  assert.match(allowed.err, /no role writer/);
  assert.equal((await platform("app", "allow", "shop")).code, 0);
  const after = await ask(`/${id}`);
  assert.deepEqual(after["acting_roles"], ["app-shop"]);
  assert.equal(after["scope"], "openid vault:read vault:write platform:use");
  assert.doesNotMatch((await platform("doctor")).out, /application shop/);
  assert.match((await platform("app", "allow", "nothing")).err, /no application "nothing"/);
});

test("doctor finds routes and topics of before services required more", async () => {
  const credentials = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
  const call = async (name: string, path: string, token: string, body: object) => {
    const { url } = started.services.find((service) => service.name === name)!;
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.text()}`);
  };
  // The operator's routes are as those of users were: without limits.
  const route = { prefix: "/old", files: { root: data } };
  await call("gate", "/api/v1/routes", credentials["PLATFORM_GATE_AUTH_TOKEN"]!, route);
  const message = { topic: "of-before", payload: "x" };
  await call("pulse", "/api/v1/publish", credentials["PLATFORM_PULSE_TOKEN"]!, message);
  const { out } = await platform("doctor");
  assert.match(out, /^warn +route \/old: files\.root names something .*\n +→ check who set it/m);
  // The log writes its list of topics when it stops.
  assert.doesNotMatch(out, /^fail/m);
});

test("a service that keeps exiting is reported, and the others continue", async () => {
  const endSample = async (): Promise<void> => {
    const pid = await waitForPid("sample");
    process.kill(pid, "SIGKILL");
    while (isAlive(pid)) await sleep(20);
  };
  let restarts = 0;
  for (; restarts < 4; restarts += 1) await endSample();
  await up.waitFor((text) => (text.includes("keeps exiting") ? true : undefined));
  let status = await platform("status");
  // On a busy machine it may have been started again meanwhile; the pauses become longer.
  for (; status.code === 0 && restarts < 8; restarts += 1) {
    await endSample();
    status = await platform("status");
  }
  const { code, out } = status;
  assert.equal(code, 1);
  assert.match(out, new RegExp(`^sample +restarting .*${restarts} restarts$`, "m"));
  assert.match(
    out,
    /^sample: SIGKILL\n +→ (?:\.\/)?platform logs sample --level warn --data '.*my data'$/m,
  );
  const credentials = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
  const authorization = `Bearer ${credentials["PLATFORM_RUNTIME_TOKEN"]}`;
  const feed = await fetch(`${started.api_url}/api/v1/admin/attention`, {
    headers: { authorization },
  });
  const conditions = (await feed.json()) as { id: string; level: string; title: string }[];
  const condition = conditions.find(({ id }) => id === "failed:hello");
  assert.match(condition?.title ?? "", /^sample (?:keeps exiting|was started again)$/);
  assert.match(out, /^gateway +up/m);
  assert.match(
    (await platform("doctor")).out,
    // It may have been restarted meanwhile.
    /^(?:fail +sample: restarting|warn +sample: up, restarted) .*\n +→ (?:\.\/)?platform logs sample/m,
  );
});

async function waitForPid(label: string): Promise<number> {
  for (let i = 0; i < 200; i += 1) {
    const { out } = await platform("status", "--json");
    const { services } = JSON.parse(out) as { services: { label: string; pid?: number }[] };
    const pid = services.find((service) => service.label === label)?.pid;
    if (pid !== undefined && isAlive(pid)) return pid;
    await sleep(50);
  }
  return assert.fail(`${label} did not start`);
}

test("user, bucket and app list show what there is", async () => {
  const users = await platform("user", "list");
  assert.equal(users.code, 0, users.err);
  assert.match(users.out, /^user +email +name +state\n/);
  assert.match(users.out, /^ann +ann@example\.com +active$/m);
  const buckets = await platform("bucket", "list");
  assert.match(buckets.out, /^bucket +objects +bytes\n/);
  assert.match(buckets.out, /^photos +\d+ +\d+$/m);
  const apps = await platform("app", "list", "--json");
  const listed = apps.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.ok(listed.length > 0 && listed.every(({ client_id: id }) => typeof id === "string"));
  assert.ok(!listed.some(({ name }) => name === "platform-cli"), "applications only");
});

function connectStorage() {
  const credentials = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
  const accessKey = credentials["STORE_ACCESS_KEY_ID"]!;
  const secret = credentials["STORE_SECRET_ACCESS_KEY"]!;
  const region = "us-east-1";
  const { url, listeners } = find(started, "vault");
  const { port } = listeners.find(({ name }) => name === "admin")!;
  const client = new S3Client({
    endpoint: url,
    region,
    forcePathStyle: true,
    credentials: { accessKeyId: accessKey, secretAccessKey: secret },
  });
  const sign = createUrlSigner({ accessKey, secret, region });
  const register = async (path: string, document: object): Promise<void> => {
    const place = new URL(path, `http://127.0.0.1:${port}`);
    const body = JSON.stringify(document);
    const headers = { "content-type": "application/json", ...sign("POST", place, body) };
    const answer = await fetch(place, { method: "POST", headers, body });
    assert.equal(answer.status, 201, await answer.text());
  };
  return { client, register };
}

test("remotes and rules of federation are listed, and a remote is tried", async () => {
  const { client, register } = connectStorage();
  client.destroy();
  const endpoint = "http://192.0.2.1:9";
  await register("/admin/remotes", { name: "away", endpoint, access_key: "a", secret_key: "b" });
  await register("/admin/federation", { prefix: "away-", remote: "away" });
  const remotes = await platform("remote", "list");
  assert.match(remotes.out, /^away +http:\/\/192\.0\.2\.1:9 +us-east-1 +unknown +0$/m);
  const check = await platform("remote", "check", "away", "letters");
  assert.equal(check.code, 1, check.err);
  assert.match(check.out, /^bucket +failed +.+$/m);
  assert.match((await platform("remote", "check", "nobody")).err, /nobody does not exist/);
  const federation = await platform("federation", "list", "--json");
  assert.equal((JSON.parse(federation.out) as { prefix: string }).prefix, "away-");
});

test("keys of storage are made, rotated, disabled, enabled, planned for deletion and listed", async () => {
  const ask = async (...args: string[]) => {
    const { code, out, err } = await platform("encryption-key", ...args);
    assert.equal(code, 0, err);
    return { out, err };
  };
  const made = await ask("create", "letters", "--description", "what people write");
  assert.match(made.out, /^arn:objstore:kms:::key\/[0-9a-f-]{36}\n$/);
  await ask("rotate", "letters");
  assert.match((await ask("disable", "letters")).err, /letters is disabled/);
  const late = await ask("delete", "letters", "--days", "7");
  assert.match(late.err, /letters: to be deleted 20\d\d-/);
  assert.match((await ask("enable", "letters")).err, /letters is enabled/);
  const few = await platform("encryption-key", "delete", "letters", "--days", "6");
  assert.match(few.err, /days/);
  assert.notEqual(few.code, 0);
  assert.match((await platform("encryption-key", "rotate", "nobody")).err, /nobody does not exist/);
  assert.match((await ask("rewrap", "--heads")).out, /^rewrite_heads +(?:idle|running) /m);
  const { out } = await ask("list");
  assert.match(
    out,
    /^letters +enabled +local +[12] +0 +20\d\d-.*\nsse-s3 +enabled .*\nmaster +enabled +file /m,
  );
});

test("the replication of a bucket is shown; a bucket without a cold tier is not swept", async () => {
  const { client } = connectStorage();
  for (const Bucket of ["letters", "letters-copy"]) {
    await client.send(new CreateBucketCommand({ Bucket }));
    const VersioningConfiguration = { Status: "Enabled" } as const;
    await client.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration }));
  }
  const none = await platform("replication", "show", "letters");
  assert.equal(none.code, 1);
  assert.match(none.err, /the bucket letters does not exist, or has no replication/);
  const rule = {
    ID: "all",
    Priority: 1,
    Status: "Enabled",
    Filter: { Prefix: "" },
    DeleteMarkerReplication: { Status: "Enabled" },
    Destination: { Bucket: "arn:aws:s3:::letters-copy" },
  } as const;
  const ReplicationConfiguration = { Role: "", Rules: [rule] };
  await client.send(
    new PutBucketReplicationCommand({ Bucket: "letters", ReplicationConfiguration }),
  );
  await client.send(new PutObjectCommand({ Bucket: "letters", Key: "k", Body: "dear" }));
  await waitFor(async () => {
    const { out } = await platform("replication", "show", "letters");
    return /^all +arn:aws:s3:::letters-copy +active +0 +0 +1 +0\nsent since 20\d\d-/m.test(out);
  }, "the replica");
  const sweep = await platform("tier", "sweep", "letters");
  assert.match(sweep.err, /the bucket letters does not exist, or has no cold tier/);
  client.destroy();
});

test("down, which waits, and commands that say how to start a platform that is not running", async () => {
  const pids = started.services.map(({ pid }) => pid);
  const down = await platform("down");
  assert.equal(down.code, 0, down.err);
  assert.match(down.err, new RegExp(`stopping the platform, process ${up.child.pid}\n`));
  assert.match(down.err, /stopped after \d+\.\d s\n$/);
  assert.equal(await up.exit, 0);
  assert.deepEqual(pids.filter(isAlive), []);
  for (const args of [
    ["status"],
    ["down"],
    ["user", "list"],
    ["user", "add", "x"],
    ["bucket", "add", "xyz"],
    ["app", "add", "x"],
  ]) {
    const { code, err } = await platform(...args);
    assert.equal(code, 1);
    assert.match(
      err,
      /^platform: no platform is running with the data folder '.*my data': start it with "(?:\.\/)?platform up --data '.*my data'"/,
    );
  }
});
