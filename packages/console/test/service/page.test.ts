// The page's files: encodings, caching, policy, and the states without a bundle.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startStage } from "../stage.ts";

test("views show the document, with a policy that allows nothing but the page's own files", async (t) => {
  const { call } = await startStage(t);
  for (const path of ["/ui/", "/ui/messaging/topics/a.b/tail?x=1", "/ui/storage/buckets/b/c.txt"]) {
    const answer = await call("GET", path);
    assert.equal(answer.status, 200, path);
    assert.match(answer.text, /<title>Console/);
    assert.equal(answer.headers.get("cache-control"), "no-cache");
    const policy = answer.headers.get("content-security-policy")!;
    assert.match(policy, /^default-src 'none'; script-src 'self';/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.match(policy, /require-trusted-types-for 'script'/);
    assert.doesNotMatch(policy, /unsafe|\*/);
    assert.equal(answer.headers.get("x-frame-options"), "DENY");
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  }
  const redirect = await call("GET", "/ui");
  assert.deepEqual([redirect.status, redirect.headers.get("location")], [308, "/ui/"]);
});

test("hashed files never expire and are sent compressed", async (t) => {
  const { call } = await startStage(t);
  const path = "/ui/assets/index-1a2b.js";
  const plain = await call("GET", path);
  assert.equal(plain.text, "export {};\n");
  assert.equal(plain.headers.get("cache-control"), "public, max-age=31536000, immutable");
  assert.equal(plain.headers.get("vary"), "Accept-Encoding");
  const small = await call("GET", path, undefined, { "accept-encoding": "gzip, br" });
  assert.deepEqual([small.text, small.headers.get("content-encoding")], ["compressed", "br"]);
  const refused = await call("GET", path, undefined, { "accept-encoding": "br;q=0" });
  assert.equal(refused.headers.get("content-encoding"), null);
  const etag = plain.headers.get("etag")!;
  const known = await call("GET", path, undefined, { "if-none-match": etag });
  assert.deepEqual([known.status, known.text], [304, ""]);
});

test("nothing outside of the folder is served", async (t) => {
  const { call } = await startStage(t);
  for (const path of [
    "/ui/assets/missing.js",
    "/ui/assets/../../../package.json",
    "/ui/assets/%2e%2e/%2e%2e/package.json",
    "/ui/assets/..%2f..%2fpackage.json",
    "/ui/assets//etc/passwd",
    "/ui/assets/index-1a2b.js%00.html",
  ]) {
    const answer = await call("GET", path);
    assert.doesNotMatch(answer.text, /"name"|root:/, path);
    assert.notEqual(answer.headers.get("content-type"), "application/json", path);
  }
});

test("without a bundle the page names the command, and waits for a build in flight", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "console-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const page = join(folder, "dist");
  const { advance, call } = await startStage(t, { pageFolder: page });
  const missing = await call("GET", "/ui/");
  assert.equal(missing.status, 503);
  assert.match(missing.text, /npm run build:console/);
  assert.doesNotMatch(missing.text, /http-equiv/);
  writeFileSync(`${page}.building`, "");
  advance(2_000);
  const building = await call("GET", "/ui/");
  assert.equal(building.status, 503);
  assert.match(building.text, /being built/);
  assert.match(building.text, /http-equiv="refresh"/);
  const longAgo = new Date(Date.now() - 600_000);
  utimesSync(`${page}.building`, longAgo, longAgo);
  advance(2_000);
  assert.match((await call("GET", "/ui/")).text, /npm run build:console/, "it was interrupted");
});
