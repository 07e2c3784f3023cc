// Modules on objects: their registry, the runs of chains, and the triggers of buckets.
import type { Service } from "@platform/chassis";
import { GuestStreams } from "@platform/wasm/stream";
import type { VaultConfig } from "../config.ts";
import { GuestService } from "../guest/guest-service.ts";
import { ModuleRegistry } from "../guest/module-registry.ts";
import { createTriggerRunner } from "../guest/trigger-runner.ts";
import type { InnerOperations } from "../s3/inner-operations.ts";
import type { Storage } from "./storage.ts";

/** Reads the list of modules. Threads start with the first run. */
export async function openGuests(
  config: VaultConfig,
  { metrics, lifecycle }: Service,
  { store, owner }: Storage,
): Promise<GuestService> {
  const { guest_threads: runs, guest_memory: memoryBytesMax, region } = config;
  // Modules are validated and registered also while none run.
  const streams = new GuestStreams({ runs: Math.max(1, runs), memoryBytesMax });
  lifecycle.onDrain("guests", () => streams.close());
  metrics.collect({
    name: "vault-guests",
    collect: () => {
      const { running, waiting } = streams.counts;
      const samples = Object.entries({ running, waiting }).map(([state, value]) => ({
        labels: [["state", state] as const],
        value,
      }));
      const help = "Chains of modules on objects by their state.";
      return [{ type: "gauge", name: "platform_vault_guest_runs", help, samples }];
    },
  });
  const modules = await ModuleRegistry.open({ store, owner, region, streams });
  return new GuestService({ store, modules, streams, isStopped: runs === 0 });
}

/** Lets the tasks of triggers run, unless no modules run. */
export function startTriggers(
  { log, clock }: Service,
  { store, directory }: Storage,
  { modules, isStopped }: GuestService,
  operations: InnerOperations,
): void {
  if (isStopped) {
    log.warn("no modules run on objects: triggers wait", { guest_threads: 0 });
    return;
  }
  const now = (): number => clock.now();
  const runner = createTriggerRunner({ store, operations, modules, directory, now, log });
  store.tasks.handle("trigger", runner);
}
