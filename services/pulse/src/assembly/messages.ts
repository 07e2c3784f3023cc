// The broker with the sandbox of its transforms.
import type { Service } from "@platform/chassis";
import type { Log } from "@platform/log";
import { GuestPool } from "@platform/wasm";
import { openBroker, type Broker } from "../broker.ts";
import type { PulseConfig } from "../config.ts";
import { TransformRuns } from "../metrics.ts";
import type { Offload } from "../offload/offload.ts";
import { isColdError } from "../store/store.ts";
import type { Journal } from "./journal.ts";

/** The parts. */
export interface Messages {
  readonly journal: Log;
  readonly offload: Offload;
  readonly broker: Broker;
  readonly runs: TransformRuns;
}

/** Opens the broker on a log. */
export async function openMessages(
  config: PulseConfig,
  { log, lifecycle, clock, ids: idSource }: Service,
  { journal, offload }: Journal,
): Promise<Messages> {
  const guests = new GuestPool({
    callMsMax: config.transform_ms_max,
    memoryBytesMax: config.transform_memory_bytes_max,
    outputBytesMax: config.message_bytes_max,
  });
  lifecycle.onDrain("transforms", () => guests.close());
  const runs = new TransformRuns();
  const broker = await openBroker({
    journal,
    guests,
    limits: config,
    clock,
    idSource,
    onTransform: (run) => runs.observe(run),
    onError: (error) => {
      // Subscribers wait; the failures of the store are counted and logged where they occur.
      if (isColdError(error)) return;
      log.error("background work failed", { error });
    },
  });
  lifecycle.onDrain("broker", () => broker.close());
  broker.topics.watch({ configured: () => offload.wake() });
  return { journal, offload, broker, runs };
}
