// The broker with the sandbox of its transforms.
import type { Service } from "@platform/chassis";
import type { Log } from "@platform/log";
import { GuestPool } from "@platform/wasm";
import { openBroker, type Broker } from "../broker.ts";
import type { PulseConfig } from "../config.ts";
import { TransformRuns } from "../metrics.ts";

/** The parts. */
export interface Messages {
  readonly journal: Log;
  readonly broker: Broker;
  readonly runs: TransformRuns;
}

/** Opens the broker on a log. */
export async function openMessages(
  config: PulseConfig,
  { log, lifecycle, clock, ids: idSource }: Service,
  journal: Log,
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
    onError: (error) => log.error("background work failed", { error }),
  });
  lifecycle.onDrain("broker", () => broker.close());
  return { journal, broker, runs };
}
