// The normalized path of a request for steps: computed only where a step looks at it.
import { PathScan } from "./path-scan.ts";
import type { GateExchange } from "./exchange.ts";

const scan = new PathScan();

/** The normalized path; if it has segment parameters (`;v=1`), also the path without them. */
export function readPaths({ head }: GateExchange): readonly string[] {
  // The handler has already refused paths with faults, and `http://host` without a path means `/`.
  if (head.pathStart === head.pathEnd) return ["/"];
  scan.read(head.bytes, head.pathStart, head.targetEnd, 0);
  const path = scan.readPath();
  return scan.hasParameter ? [path, scan.readBarePath().toString("latin1")] : [path];
}
