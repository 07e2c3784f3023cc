// The webhook of a git server: signatures, valid and invalid commits, hooks of the repository, other branches.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { PlatformError } from "@platform/kernel/errors";
import { GitSource } from "../../src/source/git-source.ts";
import { makeFolder, runtimes, startGate } from "../fixture/gate-process.ts";

const [runtime] = runtimes;
const hasGit = spawnSync("git", ["--version"]).status === 0;
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
const skip = hasGit || isRequired ? false : "git is not installed (Debian: git)";
const SECRET = "secret of the webhook";

function git(folder: string, ...args: string[]): string {
  const user = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
  return execFileSync("git", [...user, "-C", folder, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

const route = (prefix: string) => ({ prefix, target: "http://127.0.0.1:9" });

/** A bare repository, a clone to push from, and the clone of the gateway. */
function prepare(context: TestContext) {
  const root = makeFolder(context);
  const [bare, author, folder] = ["bare", "author", "gate"].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(bare);
  git(bare, "init", "--bare", "--initial-branch", "main");
  git(root, "clone", bare, author);
  const push = (config: object | string, ...more: string[]): void => {
    const text =
      typeof config === "string" ? config : JSON.stringify({ addr: "127.0.0.1:0", ...config });
    writeFileSync(join(author, "gate.json"), text);
    git(author, "add", "-A");
    git(author, "commit", "-m", "change");
    git(author, "push", ...more, "origin", "HEAD:main");
  };
  git(author, "checkout", "-B", "main");
  push({ routes: [route("/first")] });
  git(root, "clone", bare, folder);
  return { author, folder, push };
}

async function call(url: string, body: string, headers: Record<string, string> = {}) {
  const signature = createHmac("sha256", SECRET).update(body).digest("hex");
  const answer = await fetch(new URL("/api/v1/gitops/webhook", url), {
    method: "POST",
    headers: { "X-Hub-Signature-256": `sha256=${signature}`, ...headers },
    body,
  });
  const json = (await answer.json()) as { status?: unknown; detail?: string; message?: string };
  return { status: answer.status, json };
}

async function listPrefixes(url: string): Promise<string[]> {
  const answer = await fetch(new URL("/api/v1/routes", url));
  return ((await answer.json()) as { prefix: string }[]).map(({ prefix }) => prefix).sort();
}

test("a signed push is merged and used; a bad commit is neither", { skip }, async (context) => {
  const { author, folder, push } = prepare(context);
  const env = { PLATFORM_GATE_GITOPS_SECRET: SECRET };
  const gate = await startGate(context, { runtime: runtime!, folder, env });
  const body = JSON.stringify({ ref: "refs/heads/main" });
  // A hook that the gateway's clone has does not run.
  const hook = join(folder, ".git", "hooks", "post-merge");
  writeFileSync(hook, `#!/bin/sh\ntouch ${join(folder, "hooked")}\n`, { mode: 0o755 });

  assert.equal((await call(gate.url, body)).json.status, "unchanged");
  // Its modules are other repositories, of which the gateway reads nothing.
  const bare = git(author, "remote", "get-url", "origin").trim();
  git(author, "-c", "protocol.file.allow=always", "submodule", "add", bare, "module");
  push({ routes: [route("/first"), route("/second")] });
  for (const headers of [
    { "X-Hub-Signature-256": "sha256=00" },
    { "X-Hub-Signature-256": "", "X-Gitlab-Token": "wrong" },
  ]) {
    assert.equal((await call(gate.url, body, headers)).status, 401);
  }
  const other = await call(gate.url, JSON.stringify({ ref: "refs/heads/other" }));
  assert.equal(other.json.status, "ignored");
  assert.deepEqual(await listPrefixes(gate.url), ["/first"]);

  const done = await call(gate.url, body);
  assert.deepEqual([done.status, done.json.status], [200, "reloaded"], JSON.stringify(done.json));
  assert.deepEqual(await listPrefixes(gate.url), ["/first", "/second"]);
  assert.equal(existsSync(join(folder, "hooked")), false);
  assert.equal(existsSync(join(folder, "module", "gate.json")), false);

  const head = git(folder, "rev-parse", "HEAD");
  push({ routes: [{ prefix: "no-slash", target: "http://t" }] });
  const refused = await call(gate.url, body);
  assert.equal(refused.status, 400);
  assert.match(String(refused.json.detail), /^gate\.json:1:\d+: routes\[0\]\.prefix: /);
  assert.equal(git(folder, "rev-parse", "HEAD"), head);
  assert.deepEqual(await listPrefixes(gate.url), ["/first", "/second"]);
  assert.equal(git(folder, "worktree", "list").trim().split("\n").length, 1);

  // A force-push.
  git(author, "reset", "--hard", "HEAD~2");
  push({ routes: [route("/forced")] }, "--force");
  const forced = await call(gate.url, body);
  assert.equal(forced.status, 409);
  assert.match(String(forced.json.detail), /fast-forward/);

  writeFileSync(join(folder, "gate.json"), `${readFileSync(join(folder, "gate.json"), "utf8")}\n`);
  assert.match(String((await call(gate.url, body)).json.detail), /not committed/);
  const sources = await (await fetch(new URL("/api/v1/admin/sources", gate.url))).text();
  assert.match(sources, /"kind":"git".*"error":"[^"]*not committed/);

  // A remote that cannot be reached, without its password.
  git(folder, "checkout", "--", "gate.json");
  git(folder, "remote", "set-url", "origin", "http://ada:hunter2@127.0.0.1:1/repository");
  const { status, json } = await call(gate.url, "");
  assert.equal(status, 502);
  assert.match(String(json.detail), /^git fetch: /);
  assert.equal(JSON.stringify(json).includes("hunter2"), false);
});

test(
  "a clone around a configuration that it does not have is left alone",
  { skip },
  async (context) => {
    const { folder, push } = prepare(context);
    const inside = join(folder, "data");
    mkdirSync(inside);
    writeFileSync(join(inside, "gate.json"), JSON.stringify({ addr: "127.0.0.1:0", routes: [] }));
    const unexpected = (): Promise<never> => Promise.reject(new Error("not expected"));
    const source = new GitSource({
      folder: inside,
      configPath: join(inside, "gate.json"),
      validate: unexpected,
      reload: unexpected,
    });
    push({ routes: [route("/pushed")] });
    const head = git(folder, "rev-parse", "HEAD");
    await assert.rejects(source.pull(undefined), (error: PlatformError) => {
      assert.equal(error.status, 409);
      assert.match(error.message, /data\/gate\.json is not a file of a git repository/);
      return true;
    });
    assert.equal(git(folder, "rev-parse", "HEAD"), head);
  },
);
