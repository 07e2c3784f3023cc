// All cases of the runtime, in the order of the report.
import type { BenchCase } from "../harness/case.ts";
import { read, write } from "./cases/requests.ts";
import { startup } from "./cases/startup.ts";
import { up } from "./cases/up.ts";

export const RUNTIME_CASES: readonly BenchCase[] = [read, write, startup, up];
