// Applications through the API of `platform up`: added with rights of their own, renewed with an overlap, and removed.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parseEnv } from "node:util";
import { makeFolder } from "@platform/testing/platform-process";
import { ADA, ADMIN, Platform } from "../identity/platform.ts";

interface Files {
  variables: { name: string; value: string }[];
  files: { language: string; text: string }[];
}

const ROOT = join(import.meta.dirname, "../..");
const PROJECT = `server { port: 3000 }
export route GET /hello () { return "hello" }
`;
const WHOLE = {
  name: "desk",
  redirects: ["http://localhost:4000/callback"],
  bucket: "desk-files",
  topics: ["desk.#"],
  mail: true,
};
const hasBoto = spawnSync("python3", ["-c", "import boto3"]).status === 0;
const hasGo = spawnSync("go", ["version"]).status === 0;

let platform: Platform;
let ada: string;

before(async () => {
  platform = await Platform.start({ project: PROJECT });
  ada = (await platform.signIn(ADA)).access_token;
});
after(() => platform.stop());

async function call(
  method: string,
  path: string,
  { body, token = platform.admin }: { body?: object; token?: string } = {},
): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(new URL(`/api/v1/applications${path}`, platform.runtime), {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
}

/** Adds an application, which must succeed. */
async function add(body: object): Promise<Files> {
  const answer = await call("POST", "", { body });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body as Files;
}

/** Runs a program with the variables of an environment file; fails unless it succeeds. */
async function runProgram(
  [program, ...parameters]: readonly [string, ...string[]],
  folder: string,
): Promise<string> {
  const child = spawn(program, parameters, {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, AWS_EC2_METADATA_DISABLED: "true" },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code] = (await once(child, "exit")) as [number];
  assert.equal(code, 0, output);
  return output;
}

/** The lines of the program in the comments of an environment file. */
function readProgram(text: string): string {
  return text
    .split("\n")
    .filter((line) => line.startsWith("#   "))
    .map((line) => line.slice("#   ".length))
    .join("\n");
}

async function fetchToken(variables: Record<string, string | undefined>): Promise<number> {
  const pair = `${variables["OIDC_CLIENT_ID"]}:${variables["OIDC_CLIENT_SECRET"]}`;
  const answer = await fetch(new URL("/api/v1/auth/token", platform.auth), {
    method: "POST",
    headers: { authorization: `Basic ${btoa(pair)}` },
    body: new URLSearchParams({ grant_type: "client_credentials" }),
  });
  await answer.text();
  return answer.status;
}

async function store(variables: Record<string, string | undefined>, key: string): Promise<number> {
  const { AWS_ACCESS_KEY_ID: id = "", AWS_SECRET_ACCESS_KEY: secret = "" } = variables;
  const url = `${variables["AWS_ENDPOINT_URL_S3"]}/${variables["S3_BUCKET"]}/${key}`;
  const flags = ["--aws-sigv4", "aws:amz:us-east-1:s3", "-u", `${id}:${secret}`, "-d", "hello"];
  const head = ["-H", "x-amz-content-sha256:UNSIGNED-PAYLOAD", "-o", "/dev/null", "-s"];
  const { stdout } = spawnSync("curl", ["-X", "PUT", url, ...flags, ...head, "-w", "%{http_code}"]);
  return Number(stdout.toString());
}

test("only administrators add, see, renew and remove applications", async () => {
  for (const [method, path, body] of [
    ["GET", "", undefined],
    ["POST", "", WHOLE],
    ["POST", "/desk/secret", {}],
    ["DELETE", "/desk", undefined],
  ] as const) {
    const answer = await call(method, path, {
      token: ada,
      ...(body === undefined ? {} : { body }),
    });
    assert.equal(answer.status, 403, `${method} ${path}`);
  }
});

test("an application gets what it needs, and its file has examples that work", async () => {
  const added = await add(WHOLE);
  const find = (language: string): string =>
    added.files.find((file) => file.language === language)!.text;
  const variables = { ...parseEnv(find("curl")) };
  assert.deepEqual(
    variables,
    Object.fromEntries(added.variables.map(({ name, value }) => [name, value])),
  );
  const folder = makeFolder();
  for (const language of ["curl", "node", "python", "go"]) {
    assert.deepEqual({ ...parseEnv(find(language)) }, variables, language);
  }
  writeFileSync(join(folder, "desk.env"), find("curl"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const shell = readProgram(find("curl")).replaceAll("curl ", "curl -sf ");
  await runProgram(["sh", "-ec", shell], folder);
  writeFileSync(join(folder, "example.mjs"), readProgram(find("node")));
  await runProgram(["node", "--env-file=desk.env", "example.mjs"], folder);
  const source = "set -a; . ./desk.env; set +a; exec";
  if (hasBoto) {
    writeFileSync(join(folder, "example.py"), readProgram(find("python")));
    await runProgram(["sh", "-ec", `${source} python3 example.py`], folder);
  }
  if (hasGo) {
    // Without the packages for storage, which are not here.
    const { files } = await add({ ...WHOLE, name: "gopher", bucket: undefined });
    const file = files.find(({ language }) => language === "go")!.text;
    writeFileSync(join(folder, "desk.env"), file);
    writeFileSync(join(folder, "example.go"), readProgram(file));
    const cache = { GOCACHE: join(folder, "cache"), GOFLAGS: "-mod=mod", GO111MODULE: "off" };
    const set = Object.entries(cache).map(([name, value]) => `${name}=${value}`);
    await runProgram(["sh", "-ec", `${source} env ${set.join(" ")} go run example.go`], folder);
    assert.equal((await call("DELETE", "/gopher")).status, 204);
  }
  const list = (await call("GET", "")).body as { items: { name: string; is_project: boolean }[] };
  const found = Object.fromEntries(list.items.map((one) => [one.name, one.is_project]));
  assert.deepEqual(found, { desk: false, shop: true });
  assert.equal((await call("POST", "", { body: WHOLE })).status, 409);
});

test("identity's audit log names the administrator who added it", async () => {
  const answer = await platform.callService(
    platform.auth,
    platform.admin,
    "/audit?action=client.create&limit=5",
  );
  const { events } = answer as { events: { actor: string; actor_name?: string }[] };
  assert.ok(events.length > 0);
  assert.match(JSON.stringify(events[0]), new RegExp(`${ADMIN.username}|user:`));
});

test("new secrets are accepted beside the former ones until the overlap ends", async () => {
  const name = "renewed";
  const added = await add({ ...WHOLE, name, bucket: "renewed-files" });
  const first = parseEnv(added.files[0]!.text);
  const renew = async (seconds: number): Promise<Record<string, string | undefined>> => {
    const body = { overlap_seconds: seconds };
    const answer = await call("POST", `/${name}/secret`, { body });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return { ...first, ...parseEnv((answer.body as Files).files[0]!.text) };
  };
  const second = await renew(3_600);
  assert.deepEqual(
    [await fetchToken(first), await fetchToken(second)],
    [200, 200],
    "both secrets of the client",
  );
  assert.deepEqual([await store(first, "a"), await store(second, "b")], [200, 200]);
  const third = await renew(0);
  assert.deepEqual(
    [await fetchToken(first), await fetchToken(second), await fetchToken(third)],
    [401, 401, 200],
  );
  assert.deepEqual(
    [await store(first, "a"), await store(second, "b"), await store(third, "c")],
    [403, 403, 200],
  );
  assert.equal((await call("DELETE", `/${name}`)).status, 204);
  assert.deepEqual([await fetchToken(third), await store(third, "d")], [401, 403]);
  assert.equal((await call("DELETE", `/${name}`)).status, 404);
  assert.equal((await call("POST", `/${name}/secret`, { body: {} })).status, 404);
});

test("a step that fails undoes those before it, and the application of a project stays", async () => {
  const name = "broken";
  const body = { ...WHOLE, name, bucket: "Not A Bucket" };
  const refused = await call("POST", "", { body });
  assert.equal(refused.status, 422, JSON.stringify(refused.body));
  assert.match((refused.body as { detail: string }).detail, /^storage: /);
  // Nothing of the first attempt is left.
  await add({ ...body, bucket: "a-bucket" });
  assert.equal((await call("DELETE", "/shop")).status, 409);
  assert.equal((await call("POST", "/shop/secret", { body: {} })).status, 409);
  for (const bad of [{ name: "Bad Name" }, { name: "x", redirects: ["ftp://a"] }, { name: "" }]) {
    assert.equal((await call("POST", "", { body: bad })).status, 400);
  }
});
