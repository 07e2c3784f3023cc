// Metrics of a running gateway, and the runtimes that it is tested on.
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import type { StagedGateway } from "./stage.ts";

/** Runtimes of the gateway, by the values of PLATFORM_RUNTIME. */
export const RUNTIMES = ["node", "bun"] as const;

const BUN = new URL("../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url);

/** The reason to skip tests on a runtime; false if it is installed. */
export function skipRuntime(runtime: (typeof RUNTIMES)[number]): string | false {
  return runtime === "bun" && !existsSync(BUN) ? "Bun is not installed" : false;
}

/** Returns a value of `/metrics`; the name includes its labels, if any. */
export async function readMetric(gateway: StagedGateway, name: string): Promise<number> {
  const values = await readMetrics(gateway);
  const value = values.get(name);
  assert.ok(value !== undefined, `no ${name} in ${[...values.keys()].join(" ")}`);
  return value;
}

/** Returns the sum of all values of `/metrics` whose name and labels match. */
export async function sumMetrics(gateway: StagedGateway, pattern: RegExp): Promise<number> {
  let sum = 0;
  for (const [name, value] of await readMetrics(gateway)) if (pattern.test(name)) sum += value;
  return sum;
}

/** Returns the number of open descriptors of the gateway's process. */
export function countOpenFiles(gateway: StagedGateway): number {
  return readdirSync(`/proc/${gateway.process.pid}/fd`).length;
}

async function readMetrics(gateway: StagedGateway): Promise<Map<string, number>> {
  const response = await fetch(`${gateway.url}/metrics`, { headers: { connection: "close" } });
  const lines = (await response.text()).split("\n").filter((line) => /^[a-z]/.test(line));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}
