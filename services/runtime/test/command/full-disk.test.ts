// `platform up` on a disk that is full: it starts, so that data can be deleted through the services.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fillDisk, mountSmallDisk } from "@platform/testing/disks";
import { findFreePort } from "@platform/kernel/testing";
import { findStarted, run } from "../fixture/platform-process.ts";

const SIZE_MIB = 64;

async function waitForFull({ name, url }: { name: string; url: string }): Promise<void> {
  const endsMs = performance.now() + 20_000;
  for (;;) {
    const text = await (await fetch(new URL("/readyz", url))).text();
    if (text.includes("disk_full")) return;
    assert.ok(performance.now() < endsMs, `${name}: ${text}`);
    await sleep(200);
  }
}

test("the platform starts on a full disk, says so, and supervises", async (t) => {
  const disk = mountSmallDisk(t, { mib: SIZE_MIB });
  if (disk === undefined) return t.skip("a file system cannot be mounted here");
  const addresses = [];
  for (const name of ["gateway", "console", "sample", "mail", "identity", "tunnel", "runtime"])
    addresses.push(`--${name}-addr`, `127.0.0.1:${await findFreePort()}`);
  const args = ["up", "--json", "--only", "gateway,mail,identity,tunnel"];
  args.push("--data", join(disk, "data"), ...addresses);
  const first = run(args);
  await first.waitFor(findStarted);
  first.child.kill("SIGTERM");
  await first.exit;
  const ballast = join(disk, "ballast");
  fillDisk(ballast);
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
  fillDisk(join(disk, "more"));
  const refused = await signIn();
  assert.equal(refused.status, 507, await refused.text());
  const services = started.services.filter(({ name }) => name !== "hello");
  await Promise.all(services.map((service) => waitForFull(service)));
  rmSync(ballast);
  rmSync(join(disk, "more"));
  second.child.kill("SIGTERM");
  await second.exit;
});
