// The access log of a gateway with two workers: no line is lost or torn while the file is rotated under it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { makeFolder, runtimes, startGate } from "../fixture/gate-process.ts";

const FILE_BYTES = 4_096;
/** Far beyond what it takes: a busy machine must not look like a defect. */
const ROTATION_TIMEOUT_MS = 30_000;

async function ask(url: string): Promise<number> {
  const sent = request(url, { agent: false });
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "close");
  return answer.statusCode ?? 0;
}

/** Waits until the file has been rotated this often. */
async function waitForRotations(folder: string, count: number): Promise<void> {
  const deadline = performance.now() + ROTATION_TIMEOUT_MS;
  for (;;) {
    const rotated = readdirSync(folder).filter((name) => /^access\.jsonl\.\d+$/.test(name));
    if (rotated.length >= count) return;
    assert.ok(performance.now() < deadline, `${rotated.length} of ${count} rotations`);
    await delay(50);
  }
}

function readPaths(folder: string): string[] {
  const files = readdirSync(folder).filter((name) => name.startsWith("access.jsonl"));
  return files.flatMap((name) => {
    const lines = readFileSync(join(folder, name), "utf8").split("\n").filter(Boolean);
    return lines.map((line) => (JSON.parse(line) as { path: string }).path);
  });
}

for (const runtime of runtimes) {
  test(`${runtime.name}: every request is in the log once, over rotations and workers`, async (context) => {
    const upstream = createServer((_request, response) => response.end("ok"));
    upstream.listen(0, "127.0.0.1");
    await once(upstream, "listening");
    context.after(() => {
      upstream.close();
      upstream.closeAllConnections();
    });
    const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const folder = makeFolder(context);
    const gate = await startGate(context, {
      runtime,
      folder,
      config: {
        workers: 2,
        access_log_max_size: FILE_BYTES,
        access_log_files: 50,
        routes: [{ prefix: "/", target, access_log: true }],
      },
    });
    const wanted: string[] = [];
    for (let round = 0; round < 3; round++) {
      const paths = Array.from({ length: 20 }, (_, at) => `/${round}/${at}`);
      wanted.push(...paths);
      await Promise.all(paths.map((path) => ask(gate.url + path)));
      await waitForRotations(folder, round + 1);
    }
    assert.deepEqual(readPaths(folder).sort(), wanted.sort());
  });
}
