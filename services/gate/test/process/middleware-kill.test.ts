// kill -9 while middleware is registered, removed and installed: what was acknowledged is there. PLATFORM_GUEST_KILLS rounds.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { assemble, writeGuest } from "@platform/testing/guests";
import { runRegistryIndex } from "../../src/install/command.ts";
import {
  type GateProcess,
  makeFolder,
  runtimesOfRules,
  startGate,
} from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

const ROUNDS = Number(process.env["PLATFORM_GUEST_KILLS"] ?? 2);
const API = "/api/v1/admin/middleware";
const ENTRY = fileURLToPath(new URL("../../../../bin/platform-gate.js", import.meta.url));
/** The gateway is killed at a random time of at most so long after the first change. */
const LIFE_MS = 400;

const module = (marker: string): Buffer<ArrayBuffer> =>
  Buffer.from(assemble(writeGuest({ data: { 0: marker } })));

/** The digest of a registered middleware; undefined if there is none. */
type Registered = string | undefined;

/** States of one name that are allowed after a crash: the acknowledged one, or that of a change whose answer did not arrive. */
class Expectation {
  acknowledged: Registered;
  #underWay: { readonly to: Registered } | undefined;

  begin(to: Registered): void {
    this.#underWay = { to };
  }

  settle(to: Registered): void {
    this.acknowledged = to;
    this.#underWay = undefined;
  }

  /** After a restart: what was found is the state from now on. */
  check(name: string, found: Registered): void {
    const allowed = [
      this.acknowledged,
      ...(this.#underWay === undefined ? [] : [this.#underWay.to]),
    ];
    assert.ok(allowed.includes(found), `${name}: ${found} instead of ${allowed.join(" or ")}`);
    this.settle(found);
  }
}

async function readDigest(answer: Response): Promise<string> {
  const [, sha256 = ""] = /sha256 ([0-9a-f]{64})/.exec(await answer.text()) ?? [];
  return sha256;
}

/** Registers new versions, and removes each third, until the gateway is gone. */
async function change(url: string, name: string, expected: Expectation): Promise<number> {
  let changes = 0;
  for (;;) {
    const bytes = module(`${name} ${performance.now()} ${changes}`);
    const isRemoval = changes % 3 === 2;
    expected.begin(isRemoval ? undefined : sha256Of(bytes));
    try {
      const answer = await fetch(`${url}${API}/${name}`, {
        headers: { Connection: "close" },
        ...(isRemoval ? { method: "DELETE" } : { method: "POST", body: bytes }),
      });
      const found = await readDigest(answer);
      assert.equal(answer.status, 200);
      expected.settle(isRemoval ? undefined : found);
      changes++;
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return changes;
    }
  }
}

function sha256Of(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Installs by the command, again and again, until the gateway is gone. */
async function install(
  command: string,
  registry: string,
  url: string,
  expected: Expectation,
  digests: readonly string[],
): Promise<number> {
  for (let count = 0; ; count++) {
    const digest = digests[count % digests.length]!;
    expected.begin(digest);
    const version = `1.0.${count % digests.length}`;
    const args = [ENTRY, "install", `installed@${version}`, "--registry", registry, "--url", url];
    const child = spawn(command, args, { stdio: ["ignore", "ignore", "ignore"] });
    const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
    if (code !== 0) return count;
    expected.settle(digest);
  }
}

async function listDigests(url: string): Promise<Map<string, string>> {
  const answer = await fetch(`${url}${API}`, { headers: { Connection: "close" } });
  const listed = (await answer.json()) as { name: string; sha256: string }[];
  return new Map(listed.map(({ name, sha256 }) => [name, sha256]));
}

/** A registry with three versions of one middleware; their digests. */
async function startRegistry(context: TestContext) {
  const folder = makeFolder(context);
  mkdirSync(join(folder, "modules"));
  const versions = ["0", "1", "2"].map((marker) => module(`installed ${marker}`));
  for (const [index, bytes] of versions.entries())
    writeFileSync(join(folder, "modules", `installed@1.0.${index}.wasm`), bytes);
  await runRegistryIndex(
    folder,
    () => undefined,
    () => undefined,
  );
  const url = await serve(
    context,
    createServer((request, response) => {
      response.end(readFileSync(join(folder, decodeURIComponent(request.url ?? ""))));
    }),
  );
  return { url, digests: versions.map(sha256Of) };
}

for (const runtime of runtimesOfRules) {
  test(`${runtime.name}: changes of middleware that were acknowledged survive kill -9`, async (context) => {
    const folder = makeFolder(context);
    const registry = await startRegistry(context);
    const names = ["one", "two", "installed"];
    const expected = new Map(names.map((name) => [name, new Expectation()]));
    let config: Record<string, unknown> | undefined = { workers: 1 };
    let changes = 0;
    for (let round = 0; round <= ROUNDS; round++) {
      const gate: GateProcess & { url: string } = await startGate(context, {
        runtime,
        folder,
        ...(config === undefined ? {} : { config }),
      });
      config = undefined;
      const found = await listDigests(gate.url);
      for (const [name, one] of expected) one.check(name, found.get(name));
      if (round === ROUNDS) break;
      const { url } = gate;
      const running = [
        change(url, "one", expected.get("one")!),
        change(url, "two", expected.get("two")!),
        install(runtime.command, registry.url, url, expected.get("installed")!, registry.digests),
      ];
      await sleep(Math.random() * LIFE_MS + (round === 0 ? LIFE_MS : 0));
      gate.signal("SIGKILL");
      await gate.ended;
      for (const count of await Promise.all(running)) changes += count;
    }
    assert.ok(changes > 0, "nothing was acknowledged");
  });
}
