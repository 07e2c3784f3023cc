// The table of the specification's rows: every named test exists.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, test } from "node:test";
import { Cleanup, send, startTestRelay } from "./fixture/stage.ts";

const cleanup = new Cleanup();
after(() => cleanup.run());

test("each row of specification.md names a test that exists", () => {
  const table = readFileSync(new URL("specification.md", import.meta.url), "utf8");
  const rows = [...table.matchAll(/^\| .+\| +`(\S+\.test\.ts)` *\| (.+?) +\|$/gm)];
  assert.ok(rows.length >= 30, `${rows.length} rows`);
  for (const [, file = "", name = ""] of rows) {
    const url = new URL(file, import.meta.url);
    assert.ok(existsSync(url), file);
    assert.ok(readFileSync(url, "utf8").includes(`test("${name}"`), `${file}: ${name}`);
  }
});

test("health responses have the specified members", async () => {
  const { port } = await startTestRelay(cleanup);
  for (const path of ["/healthz", "/readyz"]) {
    const { status, body } = await send({ port, host: "localhost", path });
    assert.equal(status, 200);
    const { status: state, service, version } = JSON.parse(String(body)) as Record<string, unknown>;
    assert.deepEqual([state, service, version], ["UP", "tunnel", "0.1.0"]);
  }
});
