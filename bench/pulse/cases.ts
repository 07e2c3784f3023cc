// Every case of the message broker, in the order they are run and reported.
import type { BenchCase } from "../harness/case.ts";
import { kafka } from "./cases/kafka.ts";
import { log } from "./cases/log.ts";

export const PULSE_CASES: readonly BenchCase[] = [log, kafka];
