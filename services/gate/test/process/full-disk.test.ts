// A gateway whose disk is full: changes are refused as such, traffic continues, and nothing that was acknowledged is lost.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { fillDisk, mountSmallDisk } from "@platform/testing/disks";
import { waitFor } from "@platform/testing/wait";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

const SIZE_MIB = 4;

test("on a full disk every change by API is 507, readiness says so, traffic continues, and the state is whole afterwards", async (context) => {
  const disk = mountSmallDisk(context, { mib: SIZE_MIB });
  if (disk === undefined) return context.skip("a file system cannot be mounted here");
  const target = await serve(
    context,
    createServer((_incoming, response) => response.end("here")),
  );
  const start = () =>
    startGate(context, {
      runtime: runtimesOfRules[0]!,
      folder: disk,
      config: { workers: 1, routes: [{ prefix: "/configured", target }] },
    });
  const first = await start();
  const call = async (url: string, method: string, path: string, body?: object) => {
    const response = await fetch(url + path, {
      method,
      headers: { "Content-Type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, text };
  };
  const keys = "/api/v1/admin/api-keys";
  const key = { tenant: "shop", name: "kept" };
  const created = await call(first.url, "POST", keys, key);
  assert.equal(created.status, 201, created.text);
  const { id } = JSON.parse(created.text) as { id: string };
  const route = { prefix: "/kept", target };
  assert.equal((await call(first.url, "POST", "/api/v1/routes", route)).status, 200);

  const ballast = join(disk, "ballast");
  fillDisk(ballast);
  const changes: [method: string, path: string, body?: object][] = [
    ["POST", "/api/v1/routes", { prefix: "/new", target }],
    ["POST", "/api/v1/routes", { ...route, strip_prefix: true }],
    ["DELETE", "/api/v1/routes?prefix=/kept"],
    ["POST", keys, { tenant: "shop", name: "new" }],
    ["DELETE", `${keys}/${id}`],
    ["POST", "/api/v1/admin/policy/reload"],
    ["POST", "/api/v1/admin/policy/revoke", { username: "ada" }],
  ];
  for (const [method, path, body] of changes) {
    const { status, text } = await call(first.url, method, path, body);
    assert.equal(status, 507, `${method} ${path}: ${text}`);
    const problem = JSON.parse(text) as { code: string; detail: string };
    assert.equal(problem.code, "insufficient_storage");
    assert.match(problem.detail, /The disk is full: free some space\.$/);
  }
  const isShown = async (url: string): Promise<boolean> =>
    (await call(url, "GET", "/readyz")).text.includes("disk_full");
  await waitFor(() => isShown(first.url), "readiness to name the disk");
  for (const path of ["/configured", "/kept"])
    assert.equal((await call(first.url, "GET", path)).text, "here");

  first.signal("SIGKILL");
  await first.ended;
  const second = await start();
  const checkState = async (names: string[]): Promise<void> => {
    const listed = JSON.parse((await call(second.url, "GET", keys)).text) as {
      name: string;
      revoked_at: string | null;
    }[];
    assert.deepEqual(
      listed.map((one) => [one.name, one.revoked_at]),
      names.map((name) => [name, null]),
    );
    assert.equal((await call(second.url, "GET", "/kept")).text, "here");
  };
  await checkState(["kept"]);
  rmSync(ballast);
  const later = await call(second.url, "POST", keys, { ...key, name: "later" });
  assert.equal(later.status, 201, later.text);
  await checkState(["kept", "later"]);
  await waitFor(async () => !(await isShown(second.url)), "readiness without the disk");
});
