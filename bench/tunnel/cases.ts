// All cases of the tunnel, in the order in which they run and are reported.
import type { BenchCase } from "../harness/case.ts";
import { download } from "./cases/download.ts";
import { idleMemory } from "./cases/idle-memory.ts";
import { smallDuringDownload } from "./cases/small-during-download.ts";
import { smallGet } from "./cases/small-get.ts";

export const TUNNEL_CASES: readonly BenchCase[] = [
  smallGet,
  download,
  smallDuringDownload,
  idleMemory,
];
