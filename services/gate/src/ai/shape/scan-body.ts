// Scans bodies without keeping other requests of the thread waiting.
import { setImmediate } from "node:timers/promises";
import type { JsonScanner } from "./json-scan.ts";

/** Larger bodies are scanned in slices. */
const WHOLE_BYTES_MAX = 65_536;
const SLICE_BYTES = 65_536;
const SLICE_MS = 4;

/** Scans a body: at once if it is small, otherwise in slices of 4 ms. The result is that of `JsonScanner.scan`. */
export function scanInSlices(scanner: JsonScanner, body: Buffer): boolean | Promise<boolean> {
  return body.length <= WHOLE_BYTES_MAX ? scanner.scan(body) : scanSlowly(scanner, body);
}

async function scanSlowly(scanner: JsonScanner, body: Buffer): Promise<boolean> {
  scanner.begin(body);
  let startMs = performance.now();
  while (!scanner.advance(SLICE_BYTES)) {
    if (performance.now() - startMs < SLICE_MS) continue;
    await setImmediate();
    startMs = performance.now();
  }
  return scanner.fault === undefined;
}
