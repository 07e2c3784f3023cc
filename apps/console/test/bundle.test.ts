// The built page: its size at the first load, and what its Content Security Policy allows.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const ROOT = join(import.meta.dirname, "..");
const DIST = join(ROOT, "dist");
const FIRST_LOAD_BYTES_MAX = 150_000;

execFileSync(process.execPath, [join(ROOT, "build.ts"), "--if-stale"], { stdio: "inherit" });
const html = readFileSync(join(DIST, "index.html"), "utf8");

test("the first load has less than 150 KB: page, script, style and both fonts", () => {
  const named = [...html.matchAll(/(?:src|href)="\/ui\/([^"]+)"/g)].map((match) => match[1]!);
  const fonts = globSync("assets/*-latin-wght-normal-*.woff2", { cwd: DIST });
  assert.equal(fonts.length, 2);
  assert.ok(
    named.some((name) => name.endsWith(".js")) && named.some((name) => name.endsWith(".css")),
  );
  const sizes = ["index.html", ...named, ...fonts].map((name): [string, number] => {
    const bytes = readFileSync(join(DIST, name));
    return [name, name.endsWith(".woff2") ? bytes.length : gzipSync(bytes).length];
  });
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  assert.ok(total < FIRST_LOAD_BYTES_MAX, `${total} bytes: ${JSON.stringify(sizes)}`);
});

test("the page has no inline script and no inline style", () => {
  assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)/);
  assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=/);
});

test("the sources do not write HTML", () => {
  const writes = /dangerouslySetInnerHTML|\.(?:inner|outer)HTML|insertAdjacentHTML|document\.write/;
  const bad = globSync("src/**/*.{ts,tsx}", { cwd: ROOT }).filter((file) =>
    writes.test(readFileSync(join(ROOT, file), "utf8")),
  );
  assert.deepEqual(bad, []);
});
