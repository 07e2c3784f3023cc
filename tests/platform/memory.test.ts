// Memory and form of a platform that has just started and is idle.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { anyPort, findStarted, makeFolder, run } from "@platform/testing/platform-process";

const PSS_MIB_MAX = 420;
const SETTLE_MS = 60_000;

/** Proportional set size of a process in MiB: what it shares with others is divided between them. */
function readPss(pid: number): number {
  const [, kib = ""] = /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))!;
  return Number(kib) / 1024;
}

function readScript(pid: number): string {
  const [, ...args] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  return args.find((arg) => !arg.startsWith("-")) ?? "";
}

// Other programs of a busy machine keep the services from becoming idle.
const wanted = process.env["PLATFORM_FORM"] === "built" ? false : "only with PLATFORM_FORM=built";
const skip = process.platform === "linux" ? wanted : "memory is read from /proc";

test(`all services in their built form take at most ${PSS_MIB_MAX} MiB`, { skip }, async () => {
  const platform = run(["up", "--json", "--data", makeFolder(), ...anyPort], {
    PLATFORM_FORM: "built",
  });
  const started = await platform.waitFor(findStarted);
  const services = started.services.map(({ name, pid }) => ({ name, pid }));
  for (const { name, pid } of services) {
    const form = name === "hello" ? /examples\/hello\/main\.ts$/ : /dist\/services\/\w+\/\w+\.js$/;
    assert.match(readScript(pid), form, name);
  }
  const processes = [{ name: "platform", pid: platform.child.pid! }, ...services];
  const measure = () => processes.map(({ name, pid }) => [name, readPss(pid)] as const);
  const sum = (parts: ReturnType<typeof measure>) => parts.reduce((all, [, mib]) => all + mib, 0);
  const endsMs = performance.now() + SETTLE_MS;
  let parts = measure();
  // They return memory when they have been idle for a moment.
  while (sum(parts) > PSS_MIB_MAX && performance.now() < endsMs) {
    await sleep(500);
    parts = measure();
  }
  assert.ok(sum(parts) <= PSS_MIB_MAX, JSON.stringify(Object.fromEntries(parts)));
});
