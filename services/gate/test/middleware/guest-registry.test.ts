// Instances of guests over changes of modules and routes: none is left behind.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assemble, writeGuest } from "@platform/testing/guests";
import { waitFor } from "@platform/testing/wait";
import { compileHttpModule } from "@platform/wasm/http";
import { GuestBinding, GuestRegistry } from "../../src/middleware/guest-registry.ts";
import { GUEST_LIMITS_DEFAULT } from "../../src/shared-state/index.ts";

const compile = (marker: string) =>
  compileHttpModule(assemble(writeGuest({ data: { 0: marker } })));

function start() {
  const instances = new Map<string, number>();
  const registry = new GuestRegistry({
    readNowMs: () => performance.now(),
    log: () => undefined,
    report: (figures) => {
      for (const one of figures) instances.set(one.name, one.instances);
    },
  });
  registry.configure(GUEST_LIMITS_DEFAULT);
  const count = (): number => {
    registry.report();
    return instances.get("guest") ?? 0;
  };
  return { registry, count };
}

test("changes of a module leave one instance for each route that uses it", () => {
  const { registry, count } = start();
  const binding = new GuestBinding(registry, "guest", Buffer.from(""));
  const versions = ["a", "b"].map(compile);
  for (let change = 0; change < 1_000; change++) {
    registry.change({ set: [{ name: "guest", versions: [versions[change % 2]!] }], removed: [] });
    assert.equal(binding.find()?.module.sha256, versions[change % 2]!.sha256);
  }
  assert.equal(count(), 1);
  registry.change({ set: [], removed: ["guest"] });
  assert.equal(binding.find(), undefined);
});

test("instances of settings that no route has any more are dropped", async () => {
  const { registry, count } = start();
  registry.change({ set: [{ name: "guest", versions: [compile("a")] }], removed: [] });
  const kept = new GuestBinding(registry, "guest", Buffer.from("kept"));
  kept.warm();
  for (let change = 0; change < 20; change++) {
    const binding = new GuestBinding(registry, "guest", Buffer.from(String(change)));
    binding.warm();
    binding.close();
  }
  assert.equal(count(), 21);
  await waitFor(() => count() === 1);
});
