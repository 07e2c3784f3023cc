// `platform up` on a disk that is full: it starts, so that data can be deleted through the services.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";
import { findStarted, makeFolder, run } from "@platform/testing/platform-process";

const SIZE_MIB = 200;

/** Appends to a file until nothing is free. */
function fill(path: string): void {
  const descriptor = openSync(path, "a");
  for (let bytes = 64 * 1024; bytes >= 512; bytes /= 2) {
    try {
      for (;;) if (writeSync(descriptor, Buffer.alloc(bytes)) < bytes) break;
    } catch {
      // Smaller pieces may fit.
    }
  }
  closeSync(descriptor);
}

/** Waits for the warning; space that services give back meanwhile is filled, too. */
async function waitForFull(
  { name, url }: { name: string; url: string },
  ballast: string,
): Promise<void> {
  const endsMs = performance.now() + 20_000;
  for (;;) {
    const text = await (await fetch(new URL("/readyz", url))).text();
    if (text.includes("disk_full")) return;
    fill(ballast);
    assert.ok(performance.now() < endsMs, `${name}: ${text}`);
    await sleep(200);
  }
}

test("the platform starts all services on a full disk, says so, and supervises", async (t) => {
  const disk = join(makeFolder(), "disk");
  mkdirSync(disk);
  const options = ["-t", "tmpfs", "-o", `size=${SIZE_MIB}m`, "tmpfs", disk];
  if (spawnSync("mount", options).status !== 0)
    return t.skip("a file system cannot be mounted here");
  t.after(() => spawnSync("umount", ["-l", disk]));
  const addresses = [];
  for (const name of [
    "gateway",
    "console",
    "sample",
    "mail",
    "identity",
    "tunnel",
    "runtime",
    "vault",
    "vault-admin",
    "pulse",
    "pulse-kafka",
    "pulse-mqtt",
    "pulse-stomp",
  ])
    addresses.push(`--${name}-addr`, `127.0.0.1:${await findFreePort()}`);
  const args = ["up", "--json", "--only", "gateway,mail,identity,tunnel,messaging,storage"];
  args.push("--data", join(disk, "data"), ...addresses);
  const first = run(args);
  await first.waitFor(findStarted);
  first.child.kill("SIGTERM");
  await first.exit;
  const ballast = join(disk, "ballast");
  fill(ballast);
  const second = run(args);
  const started = await second.waitFor(findStarted);
  assert.match(JSON.stringify(started), /disk of .* is full/);
  // Identity has given up its reserve, from which people sign in.
  const { url } = started.services.find(({ name }) => name === "auth")!;
  const [, password] = /ADMIN_PASSWORD=(.+)/.exec(
    readFileSync(join(disk, "data/credentials.env"), "utf8"),
  )!;
  const signIn = () =>
    fetch(new URL("/api/v1/auth/login", url), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ username: "root", password }),
    });
  const signedIn = await signIn();
  assert.equal(signedIn.status, 200, await signedIn.text());
  // Without it, they learn why they cannot.
  const more = join(disk, "more");
  fill(more);
  const refused = await signIn();
  assert.equal(refused.status, 507, await refused.text());
  const services = started.services.filter(({ name }) => name !== "hello");
  await Promise.all(services.map((service) => waitForFull(service, more)));
  rmSync(ballast);
  rmSync(more);
  second.child.kill("SIGTERM");
  await second.exit;
});
