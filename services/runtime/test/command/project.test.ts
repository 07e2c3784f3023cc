// `platform up` in the folder of a project.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { join, resolve } from "node:path";
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

const CONTRACT = resolve(
  import.meta.dirname,
  "../../../../packages/service/test/platform/contract.ts",
);
const root = makeFolder();
const folder = join(root, "shop");
const main = join(folder, "main.service.ts");
const flags = [...anyPort, "--project-addr", "127.0.0.1:0"];
let up: ReturnType<typeof run>;
let started: Started;

const SOURCE = `import { auth, mail, messages, objects } from "@platform/service";
server { port: 3000 }
database items
export route GET /version { return "one"; }
export route PUT /all {
  await objects.put("a", "b");
  await messages.publish("shop.added", { n: 1 });
  await mail.send({ to: "ada@example.com", subject: "Hello", text: "there" });
  return (await (await objects.get("a"))!.text()) + (await auth.token()).length;
}
`;

before(async () => {
  const init = run(["init", "shop"], {}, "", root);
  assert.equal(await init.exit, 0, init.output().err);
  writeFileSync(main, SOURCE);
  up = run(["up", "--json", ...flags], {}, "", folder);
  started = await up.waitFor(findStarted);
});
after(async () => {
  up.child.kill("SIGTERM");
  await up.exit;
});

/** Sends a request to the project through the gateway. */
async function ask(path: string, method = "GET"): Promise<{ status: number; text: string }> {
  const { port } = new URL(find(started, "gate").url);
  const headers = { host: `shop.localhost:${port}` };
  const sent = request({ agent: false, host: "127.0.0.1", port, method, path, headers });
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += String(chunk);
  return { status: answer.statusCode ?? 0, text };
}

async function waitForAnswer(expected: string): Promise<void> {
  const endsMs = performance.now() + 120_000;
  for (;;) {
    const { text } = await ask("/version");
    if (text === expected) return;
    assert.ok(performance.now() < endsMs, `${expected} expected, ${text} found`);
    await sleep(100);
  }
}

/** Runs a command to its end, in the folder of the project. */
async function platform(...args: string[]) {
  const program = run(args, {}, "", folder);
  const code = await program.exit;
  return { code, ...program.output() };
}

test("the project is served behind the gateway, and uses the platform with credentials of its own", async () => {
  assert.deepEqual(await ask("/version"), { status: 200, text: "one" });
  const all = await ask("/all", "PUT");
  assert.equal(all.status, 200, all.text);
  assert.match(all.text, /^b\d{3,}$/);
  const path = join(folder, "data/applications/shop.env");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const env = parseEnv(readFileSync(path, "utf8"));
  assert.equal(env["S3_BUCKET"], "app-shop");
  assert.equal(env["MESSAGING_TOPICS"], '"shop,shop.#"');
  const output = up.output().out;
  for (const name of ["OIDC_CLIENT_SECRET", "AWS_SECRET_ACCESS_KEY"])
    assert.ok(!output.includes(env[name]!), `${name} is in the log`);
});

test("its credentials reach nothing of another application", async () => {
  const other = await platform("app", "add", "other", "--bucket", "other", "--topic", "other.#");
  assert.equal(other.code, 0, other.err);
  const own = parseEnv(readFileSync(join(folder, "data/applications/shop.env"), "utf8"));
  const theirs = parseEnv(other.out);
  const getToken = async (id = "", secret = "") => {
    const answer = await fetch(own["OIDC_TOKEN_URL"]!, {
      method: "POST",
      headers: { Authorization: `Basic ${btoa(`${id}:${secret}`)}` },
      body: new URLSearchParams({ grant_type: "client_credentials" }),
    });
    return { status: answer.status, body: (await answer.json()) as { access_token?: string } };
  };
  const forged = await getToken(theirs["OIDC_CLIENT_ID"], own["OIDC_CLIENT_SECRET"]);
  assert.equal(forged.status, 401);
  const { body } = await getToken(own["OIDC_CLIENT_ID"], own["OIDC_CLIENT_SECRET"]);
  const publish = (topic: string) =>
    fetch(`${own["MESSAGING_URL"]}/api/v1/publish`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${body.access_token}`,
        "Content-Type": "application/json",
      },
      body: JSON.stringify({ topic, payload: "x" }),
    });
  assert.equal((await publish("shop.x")).status, 200);
  assert.equal((await publish("other.x")).status, 403);
  const { S3Client, PutObjectCommand, ListBucketsCommand } = await import("@aws-sdk/client-s3");
  const s3 = new S3Client({
    endpoint: own["AWS_ENDPOINT_URL_S3"]!,
    region: own["AWS_REGION"]!,
    forcePathStyle: true,
    credentials: {
      accessKeyId: own["AWS_ACCESS_KEY_ID"]!,
      secretAccessKey: own["AWS_SECRET_ACCESS_KEY"]!,
    },
  });
  const put = (Bucket: string) => s3.send(new PutObjectCommand({ Bucket, Key: "k", Body: "x" }));
  await put("app-shop");
  await assert.rejects(put("other"), { name: "AccessDenied" });
  await assert.rejects(s3.send(new ListBucketsCommand({})), { name: "AccessDenied" });
  const users = await fetch(`${find(started, "auth").url}/api/v1/users`, {
    headers: { Authorization: `Bearer ${body.access_token}` },
  });
  assert.equal(users.status, 403);
});

test("the contract that the fakes of tests keep holds for the services", async () => {
  const own = parseEnv(readFileSync(join(folder, "data/applications/shop.env"), "utf8"));
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const contract = spawn(process.execPath, [CONTRACT, "shop"], { env: { ...inherited, ...own } });
  const output: string[] = [];
  for (const stream of [contract.stdout, contract.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => output.push(text));
  }
  const [code] = (await once(contract, "close")) as [number];
  assert.equal(code, 0, output.join(""));
});

test("a change is reloaded, and an error keeps the running version and is logged", async () => {
  writeFileSync(main, SOURCE.replace("one", "two"));
  await waitForAnswer("two");
  // It answers before it has taken over, and a change before that would replace it.
  await up.waitFor((text) => (text.includes("platform: reloaded") ? true : undefined));
  writeFileSync(main, SOURCE.replace("GET /version", "FETCH /version"));
  await up.waitFor((text) => (text.includes("the running version stays") ? true : undefined));
  // The first version, which ends, may take a connection until then.
  await waitForAnswer("two");
  writeFileSync(main, SOURCE.replace("one", "three"));
  await waitForAnswer("three");
  const logs = await platform("logs", "shop", "--lines", "1000");
  assert.equal(logs.code, 0, logs.err);
  assert.match(logs.out, /found FETCH/);
  assert.doesNotMatch(logs.out, / pulse /);
});

test("status lists the project, and it restarts after a crash", async () => {
  const status = await platform("status");
  assert.equal(status.code, 0, status.out + status.err);
  assert.match(status.out, /^shop +up +http:\/\/localhost:\d+/m);
  process.kill(find(started, "shop").pid, "SIGKILL");
  await up.waitFor((text) => /"part":"shop".*SIGKILL|SIGKILL.*"part":"shop"/.exec(text)?.[0]);
  const endsMs = performance.now() + 120_000;
  while ((await ask("/version")).text !== "three") {
    assert.ok(performance.now() < endsMs, "the project is not served again");
    await sleep(200);
  }
});

test("a service that exits and does not start is tried again, without a change of its files", async () => {
  const away = join(root, "away");
  const source = `import { existsSync } from "node:fs";
if (existsSync(${JSON.stringify(away)})) throw new Error("the database is away");
export route POST /exit { setTimeout(() => process.exit(3)); return "answered"; }
${SOURCE.replace("one", "five")}`;
  writeFileSync(main, source);
  await waitForAnswer("five");
  writeFileSync(away, "");
  // A persistent connection of the gateway may still lead to the version before.
  const endsMs = performance.now() + 120_000;
  while ((await ask("/exit", "POST")).text !== "answered") {
    assert.ok(performance.now() < endsMs, "the new version is not served");
    await sleep(100);
  }
  await up.waitFor((text) => /not started: starting it again in 2 s/.exec(text)?.[0]);
  rmSync(away);
  await waitForAnswer("five");
});

test("a service that does not compile does not keep the platform from starting; new ports get new credentials", async () => {
  const path = join(folder, "data/applications/shop.env");
  const before = parseEnv(readFileSync(path, "utf8"));
  up.child.kill("SIGTERM");
  await up.exit;
  writeFileSync(main, "export route FETCH / { }\n");
  // The generated route of the gateway has the earlier port: the gateway keeps the operator's file.
  const { port } = new URL(find(started, "shop").url);
  const again = [...anyPort, "--project-addr", `127.0.0.1:${port}`];
  up = run(["up", "--json", ...again], {}, "", folder);
  started = await up.waitFor(findStarted);
  const status = await platform("status");
  assert.equal(status.code, 1);
  assert.match(status.out, /^shop +degraded/m);
  writeFileSync(main, SOURCE.replace("one", "four"));
  await waitForAnswer("four");
  assert.equal((await ask("/all", "PUT")).status, 200);
  const after_ = parseEnv(readFileSync(path, "utf8"));
  assert.notEqual(after_["OIDC_CLIENT_ID"], before["OIDC_CLIENT_ID"]);
});

test("a project with the name of a service is refused with the reason", async () => {
  const other = makeFolder();
  writeFileSync(join(other, "main.service.ts"), SOURCE);
  writeFileSync(join(other, "package.json"), '{"name":"mail"}');
  const refused = run(["up", ...flags], {}, "", other);
  assert.equal(await refused.exit, 1);
  assert.match(refused.output().err, /mail is the name of a service of the platform/);
});
