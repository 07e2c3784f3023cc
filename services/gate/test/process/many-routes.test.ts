// Many routes: they load, a reload changes all of them, and requests are answered meanwhile.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { makeFolder, runtimes, startGate } from "../fixture/gate-process.ts";

/** PLATFORM_GATE_ROUTES=50000 is the long form. */
const ROUTES = Number(process.env["PLATFORM_GATE_ROUTES"] ?? 10_000);

test(`${ROUTES} routes load, and requests are answered while a reload replaces them all`, async (context) => {
  const upstream = createServer((request, response) => response.end(request.url));
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  context.after(() => {
    upstream.close();
    upstream.closeAllConnections();
  });
  const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const makeConfig = (path: string): Record<string, unknown> => ({
    workers: 1,
    routes: Array.from({ length: ROUTES }, (_, index) => ({
      prefix: `/r${index}`,
      target: `${target}${path}`,
    })),
  });
  const folder = makeFolder(context);
  const gate = await startGate(context, {
    runtime: runtimes[0]!,
    folder,
    config: makeConfig("/before"),
  });
  const read = async (path: string): Promise<string> => (await fetch(gate.url + path)).text();
  assert.equal(await read("/r0"), "/before/r0");
  assert.equal(await read(`/r${ROUTES - 1}/x`), `/before/r${ROUTES - 1}/x`);

  writeFileSync(
    join(folder, "gate.json"),
    JSON.stringify({ addr: "127.0.0.1:0", ...makeConfig("/after") }),
  );
  const run = { isOver: false };
  const seen = new Set<string>();
  const asking = (async (): Promise<void> => {
    while (!run.isOver) seen.add((await read(`/r${ROUTES - 1}`)).split("/")[1]!);
  })();
  gate.signal("SIGHUP");
  const line = await gate.waitForLine(({ msg }) => msg === "configuration reloaded");
  run.isOver = true;
  await asking;
  assert.ok(Array.isArray(line["updated"]));
  for (const name of seen) assert.ok(name === "before" || name === "after", name);
  assert.equal(await read("/r0"), "/after/r0");
  assert.equal(await read(`/r${ROUTES - 1}/x`), `/after/r${ROUTES - 1}/x`);
});
