// Several projects on one platform: joined by `up`, kept, removed, and started again after a crash.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  anyPort,
  find,
  findStarted,
  isAlive,
  makeFolder,
  parseEnv,
  run,
  type Started,
} from "@platform/testing/platform-process";

const root = realpathSync(makeFolder());
const data = join(root, "data");
const env = { XDG_STATE_HOME: join(root, "state"), PLATFORM_AUTH_ADMIN_USER: "root" };
const flags = ["--json", "--only", "identity,gateway", "--data", data, ...anyPort];
let platform: ReturnType<typeof run>;
let started: Started;

before(startPlatform);
after(async () => {
  platform.child.kill("SIGTERM");
  assert.equal(await platform.exit, 0, platform.output().out);
});

async function startPlatform(): Promise<void> {
  platform = run(["up", ...flags], env, "", root);
  started = await platform.waitFor(findStarted);
}

const SOURCE = `server { port: 3000 }
database items
export route GET /greeting { return (process.env["GREETING"] ?? "none") + " " + (process.env["PLATFORM_AUTH_ADMIN_USER"] ?? "-"); }
export route GET /fail { throw new Error("s3cret"); }
export route GET /pids { return [process.ppid, process.pid]; }
every 1h { }
`;

/** Creates a project, whose package may have another name than its folder. */
function createProject(folder: string, name = folder): string {
  const path = join(root, folder);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "package.json"), JSON.stringify({ name, type: "module" }));
  writeFileSync(join(path, "main.service.ts"), SOURCE);
  return path;
}

/** Runs a command to its end. */
async function command(args: string[], cwd = root) {
  const program = run(args, env, "", cwd);
  const code = await program.exit;
  return { code, ...program.output() };
}

/** Sends a request to a project through the gateway. */
async function ask(name: string, path = "/greeting"): Promise<{ status: number; text: string }> {
  const { port } = new URL(find(started, "gate").url);
  const headers = { host: `${name}.localhost:${port}` };
  const sent = request({ agent: false, host: "127.0.0.1", port, path, headers });
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += String(chunk);
  return { status: answer.statusCode ?? 0, text };
}

interface Listed {
  reloaded_at: string | null;
  reload_failure: string;
  name: string;
  kind: string;
  state: string;
  detail: string;
}

async function list(): Promise<Listed[]> {
  const { PLATFORM_RUNTIME_TOKEN: token } = readCredentials();
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${started.api_url}/api/v1/projects`, { headers });
  return ((await answer.json()) as { items: Listed[] }).items;
}

function readCredentials(): Record<string, string> {
  return parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
}

/** Joins, and resolves when the project answers. */
async function joinPlatform(folder: string, variables: Record<string, string> = {}) {
  const terminal = run(["up"], { ...env, ...variables }, "", folder);
  const beganMs = performance.now();
  const [line] = await terminal.waitFor((text) => /^\S+ has joined .*$/m.exec(text) ?? undefined);
  return { terminal, line, tookMs: performance.now() - beganMs };
}

async function waitForList(test: (items: Listed[]) => boolean): Promise<void> {
  let last: Listed[] = [];
  await waitFor(
    async () => test((last = await list())),
    () => JSON.stringify(last),
  );
}

test("a second project joins with the variables of its terminal, and leaves on ctrl-c", async () => {
  const folder = createProject("shop");
  const variables = { GREETING: "hello", PLATFORM_AUTH_ADMIN_USER: "someone" };
  const { terminal, line } = await joinPlatform(folder, variables);
  assert.match(
    line,
    /^shop has joined the platform in .*data after [\d.]+ s: http:\/\/shop\.localhost:\d+ · ctrl-c leaves$/,
  );
  assert.deepEqual(await ask("shop"), { status: 200, text: "hello -" });
  assert.ok(existsSync(join(data, "projects/shop/items.sqlite")));
  assert.equal(statSync(join(data, "projects/shop")).mode & 0o777, 0o700);
  assert.equal(statSync(join(data, "applications/shop.env")).mode & 0o777, 0o600);
  writeFileSync(join(folder, "main.service.ts"), SOURCE.replace('"none"', '"nothing"'));
  await terminal.waitFor((text) => (text.includes("platform: reloaded") ? true : undefined));
  // An error has its details on the terminal; clients of the gateway get the address of the log.
  const failed = JSON.parse((await ask("shop", "/fail")).text) as Record<string, string>;
  assert.equal(failed["development"], undefined);
  assert.match(
    failed["log"]!,
    new RegExp(`^http://\\S+/ui/runtime/logs\\?q=${failed["trace_id"]}$`),
  );
  const page = await fetch(failed["log"]!);
  assert.deepEqual(
    [page.status, page.headers.get("content-type")],
    [200, "text/html; charset=utf-8"],
  );
  assert.doesNotMatch(JSON.stringify(failed), /s3cret/);
  await terminal.waitFor(
    (text) => /^ +Error: s3cret\n +main\.service\.ts:4:32\n/m.exec(text) ?? undefined,
  );
  // Commands in its folder find the platform.
  let status = "";
  await waitFor(
    async () => /^shop +up /m.test((status = (await command(["status"], folder)).out)),
    () => status,
  );
  const logs = await command(["logs", "shop"], folder);
  assert.match(logs.out, /platform: reloaded/);
  const again = await command(["up"], folder);
  assert.equal(again.code, 1);
  assert.match(
    again.err,
    /There is a project shop already, in .*shop: another terminal has joined .* Another name in package\.json lets both run\./,
  );
  terminal.child.kill("SIGINT");
  assert.equal(await terminal.exit, 0, terminal.output().err);
  await waitForList((items) => items.length === 0);
  assert.equal((await ask("shop")).status, 401, "there is no route any more");
});

test("the list says when a project was reloaded, and why a newer version does not start", async () => {
  const folder = createProject("reloads");
  const { terminal } = await joinPlatform(folder);
  const file = join(folder, "main.service.ts");
  const [before] = await list();
  assert.equal(before!.reload_failure, "");
  writeFileSync(file, SOURCE.replace('"none"', '"nothing"'));
  await waitForList(([one]) => one!.reloaded_at! > before!.reloaded_at!);
  const [reloaded] = await list();
  writeFileSync(file, `${SOURCE}export route GET /open { return (; }\n`);
  await waitForList(([one]) => /main\.service\.ts:7:\d+: /.test(one!.reload_failure));
  writeFileSync(file, `${SOURCE}throw new Error("no licence");\n`);
  await waitForList(([one]) => /no licence\n *main\.service\.ts:7:\d+/.test(one!.reload_failure));
  const printed = (await command(["project", "list"], folder)).out;
  assert.match(printed, /^reloads, the newest version does not start:\n {2}Error: no licence$/m);
  const [failed] = await list();
  assert.equal(failed!.reloaded_at, reloaded!.reloaded_at, "the version that serves is the same");
  assert.equal((await ask("reloads")).text, "nothing -");
  writeFileSync(file, SOURCE);
  await waitForList(([one]) => one!.reload_failure === "");
  terminal.child.kill("SIGINT");
  assert.equal(await terminal.exit, 0);
  await waitForList((items) => items.length === 0);
});

test("flags of the platform, names of services and hosts, and folders without a project are refused", async () => {
  const folder = createProject("flags");
  const flagged = await command(["up", "--gateway-addr", "127.0.0.1:0", "--only", "mail"], folder);
  assert.equal(flagged.code, 1);
  assert.match(flagged.err, /^platform: --only, --gateway-addr: of the platform that runs with/);
  for (const name of ["identity", "gate", "console", "vault"]) {
    const refused = await command(["up"], createProject(`named-${name}`, name));
    assert.equal(refused.code, 1);
    assert.match(refused.err, new RegExp(`${name} is the name of a service of the platform`));
  }
  mkdirSync(join(root, "empty"), { recursive: true });
  const empty = await command(["project", "add", "empty", "--data", data]);
  assert.match(empty.err, /empty has no project: it needs main\.service\.ts and package\.json/);
  const missing = await command(["up", "--keep", "--environment-file", "none.env"], folder);
  assert.equal(missing.code, 1);
  assert.match(missing.err, /the environment file .*none\.env cannot be read/);
  // The command ends before its project is removed.
  await waitForList((items) => items.length === 0);
  const credentials = readCredentials();
  const post = (body: object, token = credentials["PLATFORM_RUNTIME_TOKEN"]) =>
    fetch(`${started.api_url}/api/v1/projects`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  assert.equal((await post({ folder, protocol: 1 }, "wrong")).status, 401);
  const other = await post({ folder, protocol: 99 });
  assert.equal(other.status, 409);
  assert.match(await other.text(), /speaks version 99 .*: update the platform/);
});

test("of two joins of one name at the same time one is refused", async () => {
  const folders = ["one/twin", "two/twin"].map((folder) => createProject(folder, "twin"));
  const terminals = folders.map((folder) => run(["up"], env, "", folder));
  const loser = await Promise.race(
    terminals.map(async (terminal) => {
      assert.equal(await terminal.exit, 1);
      return terminal;
    }),
  );
  assert.match(loser.output().err, /There is a project twin already/);
  const winner = terminals.find((terminal) => terminal !== loser)!;
  await winner.waitFor((text) => /^twin has joined/m.exec(text)?.[0]);
  assert.equal((await ask("twin")).status, 200);
  winner.child.kill("SIGINT");
  assert.equal(await winner.exit, 0);
});

test("a project whose installed version speaks other messages is refused with the command that updates it", async () => {
  const folder = createProject("old");
  const installed = join(folder, "node_modules/@platform/service");
  mkdirSync(installed, { recursive: true });
  const exports = { "./supervised": "./supervised.js" };
  const name = "@platform/service";
  writeFileSync(join(installed, "package.json"), JSON.stringify({ name, type: "module", exports }));
  writeFileSync(
    join(installed, "supervised.js"),
    `process.send({ type: "ready", service: "old", version: "0.9.0", pid: process.pid, listeners: [] });
setInterval(() => {}, 1000);
process.on("disconnect", () => process.exit());
`,
  );
  const refused = await command(["up"], folder);
  assert.equal(refused.code, 1);
  assert.match(
    refused.err,
    /speaks an earlier version of the messages .*: run ".*platform(?:\.js)? project update" in .*old/,
  );
  await waitForList((items) => items.length === 0);
});

test("a project that is removed while it starts leaves nothing behind", async () => {
  const folder = createProject("brief");
  const terminal = run(["up"], env, "", folder);
  await waitForList((items) => items.some(({ name }) => name === "brief"));
  const removed = await command(["project", "remove", "brief", "--data-too", "--data", data]);
  assert.equal(removed.code, 0, removed.err);
  assert.equal(await terminal.exit, 1);
  assert.match(terminal.output().err, /it was removed/);
  assert.deepEqual(await list(), []);
  assert.ok(!existsSync(join(data, "projects/brief")));
  assert.ok(!existsSync(join(data, "applications/brief.env")));
  assert.equal((await ask("brief")).status, 401);
});

test("projects answer while one of them is killed, and another one gets a wrong version", async () => {
  writeFileSync(join(root, "kept.env"), "GREETING=kept\n");
  const [one, two] = ["first", "second"].map((name) => createProject(name));
  const added = await command([
    "project",
    "add",
    one!,
    "--environment-file",
    "kept.env",
    "--data",
    data,
  ]);
  assert.equal(added.code, 0, added.err);
  assert.match(added.out, /^first added: http:\/\/first\.localhost:\d+$/m);
  const kept = run(["up", "--keep"], env, "", two);
  await kept.waitFor((text) => /^second has joined .* it stays when ctrl-c ends/m.exec(text)?.[0]);
  kept.child.kill("SIGINT");
  assert.equal(await kept.exit, 0);
  const { terminal } = await joinPlatform(createProject("third"));
  assert.deepEqual(await ask("first"), { status: 200, text: "kept -" });
  // A kept project runs when its author is away: its answers have neither details nor the console's address.
  const failed = JSON.parse((await ask("first", "/fail")).text) as Record<string, string>;
  assert.deepEqual([failed["development"], failed["log"]], [undefined, undefined]);
  const listed = await command(["project", "list", "--data", data]);
  assert.match(listed.out, /^first +running +http:\/\/first\.localhost:\d+ +kept +\S+first$/m);
  assert.match(listed.out, /^third +running +\S+ +until its terminal leaves +\S+third$/m);

  const over = new AbortController();
  let answers = 0;
  const asking = (async () => {
    for (; !over.signal.aborted; answers += 1) assert.equal((await ask("first")).status, 200);
  })();
  writeFileSync(join(two!, "main.service.ts"), "export route FETCH / { }\n");
  for (const pid of JSON.parse((await ask("third", "/pids")).text) as number[]) {
    process.kill(pid, "SIGKILL");
  }
  await terminal.waitFor((text) => /SIGKILL/.exec(text)?.[0]);
  await waitFor(async () => (await ask("third")).status === 200, readOutput);
  assert.equal((await ask("second")).status, 200);
  const log = await command(["logs", "second", "--data", data]);
  assert.match(log.out, /found FETCH/);
  over.abort();
  await asking;
  assert.ok(answers > 0);
  writeFileSync(join(two!, "main.service.ts"), SOURCE);
});

test("a killed platform leaves no process, and its kept projects are back with the next one", async () => {
  const pids = await Promise.all(
    ["first", "second", "third"].map(
      async (name) => JSON.parse((await ask(name, "/pids")).text) as number[],
    ),
  );
  rmSync(join(root, "second"), { recursive: true });
  platform.child.kill("SIGKILL");
  await platform.exit;
  await waitFor(() => !pids.flat().some(isAlive), "processes of projects");
  await startPlatform();
  await waitForList((items) =>
    items.some(({ name, state }) => name === "first" && state === "running"),
  );
  await waitFor(async () => (await ask("first")).text === "kept -", readOutput);
  assert.equal((await ask("third")).status, 401, "the route of a joined project is gone");
  // Its folder was deleted: it waits for its files.
  const kinds = (await list()).map(({ name, kind }) => `${name} ${kind}`);
  assert.deepEqual(kinds.toSorted(), ["first kept", "second kept"]);
  createProject("second");
  await waitFor(async () => (await ask("second")).status === 200, readLogOf("second"), 120_000);
  const restarted = await command(["project", "restart", "first", "--data", data]);
  assert.equal(restarted.code, 0, restarted.err);
  await waitFor(async () => (await ask("first")).status === 200, readOutput);
});

test("variables of a project are set by command, and its process has them after a restart", async () => {
  const set = run(
    ["project", "set", "first", "GREETING", "--data", data],
    env,
    "from input\n",
    root,
  );
  assert.equal(await set.exit, 0, set.output().err);
  const listed = await command(["project", "env", "first", "--data", data]);
  assert.match(listed.out, /^GREETING +secret +set here by operator$/m);
  assert.match(listed.out, /^OIDC_ISSUER +the platform$/m);
  assert.match(listed.out, /first runs with earlier variables/);
  assert.ok(!listed.out.includes("from input"));
  const taken = run(["project", "set", "first", "OIDC_ISSUER", "--data", data], env, "x", root);
  assert.notEqual(await taken.exit, 0);
  assert.match(taken.output().err, /The platform sets OIDC_ISSUER/);
  // The restart of before may go on.
  await waitForList((items) =>
    items.some(({ name, state }) => name === "first" && state === "running"),
  );
  const restarted = await command(["project", "restart", "first", "--data", data]);
  assert.equal(restarted.code, 0, restarted.err);
  await waitFor(async () => (await ask("first")).text.startsWith("from input"), readOutput);
});

test("a backup names each database, and databases are kept unless they are to go", async () => {
  const backup = await command(["backup", join(root, "saved"), "--data", data]);
  assert.equal(backup.code, 0, backup.err);
  for (const name of ["first", "second"]) {
    assert.match(backup.out, new RegExp(`^database ${name}/items\\.sqlite: saving$`, "m"));
  }
  const restored = join(root, "restored");
  const back = await command(["restore", join(root, "saved"), "--data", restored]);
  assert.equal(back.code, 0, back.err);
  const kept = ["environment/first.json", "environment/environment.key"];
  for (const path of ["projects.json", "projects/first/items.sqlite", ...kept]) {
    assert.ok(existsSync(join(restored, path)), path);
  }
  const removed = await command(["project", "remove", "first", "--data", data]);
  assert.match(removed.out, /^first removed; its databases are kept in .*projects\/first$/m);
  assert.ok(existsSync(join(data, "projects/first/items.sqlite")));
  assert.ok(!existsSync(join(data, "applications/first.env")));
  const unset = await command(["project", "unset", "first", "NOTHING", "--data", data]);
  assert.notEqual(unset.code, 0);
  const gone = await command(["project", "remove", "second", "--data-too", "--data", data]);
  assert.equal(gone.code, 0, gone.err);
  assert.ok(!existsSync(join(data, "projects/second")));
});

test("ports that a platform has are one line, and --alone starts a second one", async () => {
  const { port } = new URL(find(started, "gate").url);
  const other = join(root, "other");
  const ports = anyPort.with(1, `127.0.0.1:${port}`);
  const held = await command(["up", "--data", other, ...ports]);
  assert.equal(held.code, 1);
  const lines = held.err.trim().split("\n");
  assert.equal(lines.length, 1, held.err);
  assert.match(
    lines[0]!,
    /^platform: a platform is running with the data folder .*data since \d{4}-\d\d-\d\d [\d:]+ UTC \(process \d+\): ".*up --data .*" in a project's folder joins it, and ".*down.*" stops it$/,
  );
  const folder = createProject("alone");
  const second = run(["up", "--alone", "--json", "--only", "sample"], env, "", folder);
  await second.waitFor(findStarted);
  const entries = readdirSync(join(root, "state/platform/running"));
  assert.equal(entries.length, 2);
  for (const name of entries) {
    assert.equal(statSync(join(root, "state/platform/running", name)).mode & 0o777, 0o600);
  }
  const asked = await command(["up"], createProject("between"));
  assert.equal(asked.code, 1);
  assert.match(
    asked.err,
    /2 platforms are running; name the one to join, or start another with --alone/,
  );
  assert.equal(asked.err.match(/up --data /g)?.length, 2);
  second.child.kill("SIGKILL");
  await second.exit;
  // The entry of a platform that was killed is ignored.
  const { terminal } = await joinPlatform(join(root, "between"));
  terminal.child.kill("SIGTERM");
  assert.equal(await terminal.exit, 0);
});

/** The lines of the log about a project. */
function readLogOf(name: string): () => string {
  return () => {
    const lines = platform.output().out.split("\n");
    return lines.filter((line) => line.includes(`"service":"${name}"`)).join("\n");
  };
}

function readOutput(): string {
  return platform.output().out.slice(-3_000);
}
