// Starts the broker: the order of its parts.
import { openService, type ServiceLifecycle } from "@platform/chassis";
import type { Logger } from "@platform/kernel/log";
import { openCallers } from "./assembly/callers.ts";
import { openHttp } from "./assembly/http.ts";
import { openJournal } from "./assembly/journal.ts";
import { openMessages } from "./assembly/messages.ts";
import { listenForWires, openWireCertificates } from "./assembly/wire-listeners.ts";
import { openWires } from "./assembly/wires.ts";
import { PULSE_VERSION, type PulseConfig } from "./config.ts";

/** Options of `startPulse`. */
export interface PulseOptions {
  config: PulseConfig;
  log: Logger;
  lifecycle: ServiceLifecycle;
}

/** Starts the broker; resolves once it listens. */
export async function startPulse({ config, log, lifecycle }: PulseOptions): Promise<void> {
  const { token } = config;
  const operatorToken = token && lifecycle.followSecret("PLATFORM_PULSE_TOKEN", token);
  const base = { name: "pulse", version: PULSE_VERSION, config, operatorToken };
  const service = openService({ ...base, log, lifecycle });
  const wireCertificates = openWireCertificates(config, service);
  if (config.partitions_default > config.partitions_max) {
    throw new Error("partitions_default is larger than partitions_max");
  }
  const callers = openCallers(config, service);
  const journal = await openJournal(config, service);
  const messages = await openMessages(config, service, journal);
  const wires = await openWires(config, service, messages, callers);
  await openHttp(config, service, messages, callers, wires);
  await listenForWires(config, service, wires, wireCertificates);
  service.setReady();
}
