// Configuration from a bucket of storage: precedence, changes, damaged documents, a store that is down.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { StagedVault } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import { createCleanup } from "@platform/testing/cleanup";
import { makeFolder, runtimes, spawnGate, startGate } from "../fixture/gate-process.ts";
import { describeBucket, openBucket } from "../fixture/sources.ts";

const [runtime] = runtimes;

async function prepare(context: Pick<TestContext, "after">) {
  const folder = makeFolder(context);
  const vault = await StagedVault.start({ folder: join(folder, "vault") });
  context.after(() => vault[Symbol.asyncDispose]());
  const put = await openBucket(context, vault);
  const env = describeBucket(vault.port);
  return { folder, vault, put, options: { runtime: runtime!, folder, env } };
}

const route = (prefix: string) => ({ prefix, target: "http://127.0.0.1:9" });

async function listPrefixes(url: string): Promise<string[]> {
  const answer = await fetch(new URL("/api/v1/routes", url));
  const routes = (await answer.json()) as { prefix: string }[];
  return routes.map(({ prefix }) => prefix).sort();
}

const shared = createCleanup();
after(() => shared.run());
const opened = prepare(shared);

test("without object and copy, a start fails with the reason", async (context) => {
  const { options } = await opened;
  const gate = spawnGate(context, { ...options, config: {} });
  const { code, stdout } = await gate.ended;
  assert.equal(code, 1);
  assert.match(stdout, /s3:\/\/configuration\/config\.json is not usable: .*does not exist/);
});

test("a new document reaches all workers, one that is not valid changes nothing", async (context) => {
  const { vault, put, options } = await opened;
  await put({ routes: [route("/remote")], max_headers: 77 });
  const config = { workers: 2, routes: [route("/file")], no_route_status: 404 };
  const gate = await startGate(context, { ...options, config });
  assert.deepEqual(await listPrefixes(gate.url), ["/remote"]);
  // A key that the bucket does not have is that of the file.
  assert.equal((await fetch(new URL("/unknown", gate.url))).status, 404);

  await put({ routes: [route("/remote"), route("/second")] });
  await waitFor(async () => (await listPrefixes(gate.url)).length === 2, "the new document");

  const faults: [document: object | string, says: RegExp][] = [
    ['{"routes": [', /s3:\/\/configuration\/config\.json:1:13: /],
    [`{"index_file": "${"x".repeat(17 * 1_048_576)}"}`, /has 17\d+ bytes, more than 16777216/],
    [{ routes: [{ prefix: "x" }] }, /config\.json:1:22: routes\[0\]\.prefix: /],
  ];
  for (const [document, says] of faults) {
    await put(document);
    const line = await gate.waitForLine(({ reason }) => says.test(String(reason)));
    assert.equal(line["level"], "error");
    assert.deepEqual(await listPrefixes(gate.url), ["/remote", "/second"]);
  }
  const sources = await (await fetch(new URL("/api/v1/admin/sources", gate.url))).text();
  assert.match(sources, /"kind":"bucket","address":"s3:\/\/configuration\/config\.json"/);
  assert.match(sources, /"error":"[^"]*routes\[0\]\.prefix/);

  // The listener is that of the start.
  await put({ routes: [route("/third")], addr: "0.0.0.0:0" });
  await waitFor(
    async () => (await listPrefixes(gate.url)).includes("/third"),
    "the end of the fault",
  );
  const restart = await gate.waitForLine(({ msg }) => msg.endsWith("require a restart"));
  assert.deepEqual(restart["keys"], ["addr"]);
  gate.signal("SIGTERM");
  await gate.ended;
  await vault.kill();
  const next = await startGate(context, { ...options, config });
  await next.waitForLine(({ msg }) => msg === "the copy of the remote configuration is used");
  assert.deepEqual(await listPrefixes(next.url), ["/third"]);
  await vault.start();
  await put({ routes: [route("/fourth")] });
  await waitFor(async () => (await listPrefixes(next.url)).includes("/fourth"), "the store");
});
