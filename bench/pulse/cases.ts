// All cases of the message broker, in the order in which they run and are reported.
import type { BenchCase } from "../harness/case.ts";
import { delays } from "./cases/delays.ts";
import { kafka } from "./cases/kafka.ts";
import { log } from "./cases/log.ts";
import { memory } from "./cases/memory.ts";
import { mqttFanOut, mqttIdle, mqttPaced, mqttQueue } from "./cases/mqtt.ts";
import { offload } from "./cases/offload.ts";
import { pace } from "./cases/pace.ts";
import { stream } from "./cases/stream.ts";
import { fetchBatches, produce, publish, stomp } from "./cases/throughput.ts";

export const PULSE_CASES: readonly BenchCase[] = [
  produce,
  fetchBatches,
  publish,
  pace,
  stomp,
  mqttFanOut,
  mqttPaced,
  mqttQueue,
  mqttIdle,
  stream,
  log,
  kafka,
  memory,
  delays,
  offload,
];
