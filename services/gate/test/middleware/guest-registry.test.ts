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

function start(readNowMs = () => performance.now()) {
  const instances = new Map<string, number>();
  const lines: string[] = [];
  const registry = new GuestRegistry({
    readNowMs,
    log: (_level, text) => lines.push(text),
    report: (figures) => {
      for (const one of figures) instances.set(one.name, one.instances);
    },
  });
  registry.configure(GUEST_LIMITS_DEFAULT);
  const count = (): number => {
    registry.report();
    return instances.get("guest") ?? 0;
  };
  return { registry, count, lines };
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

test("a module logs 100 lines a second, with all of its settings together", () => {
  let nowMs = 5_000;
  const { registry, lines } = start(() => nowMs);
  // Logs 60 lines when it starts.
  const text = writeGuest({
    more: `(func (export "_start") (local $left i32) (local.set $left (i32.const 60))
      (loop $next
        (call $log (i32.const 0) (i32.const 0) (i32.const 1))
        (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))`,
  });
  const versions = [compileHttpModule(assemble(text))];
  registry.change({ set: [{ name: "guest", versions }], removed: [] });
  const begin = (config: string): void =>
    new GuestBinding(registry, "guest", Buffer.from(config)).warm();
  begin("one");
  begin("two");
  assert.equal(lines.length, 100);
  nowMs += 1_000;
  begin("three");
  assert.equal(lines.length, 160);
});
