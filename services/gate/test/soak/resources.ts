// Memory and descriptors of a process over time.
import { readdirSync, readFileSync } from "node:fs";

const MIB_KIB = 1_024;
const MINUTE_MS = 60_000;

/** Resources at one moment. */
export interface Sample {
  atMs: number;
  rssMib: number;
  openFiles: number;
}

/** Reads the resources of a process on Linux. */
export function sampleProcess(pid: number): Sample {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const rssKib = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? Number.NaN);
  return {
    atMs: performance.now(),
    rssMib: rssKib / MIB_KIB,
    openFiles: readdirSync(`/proc/${pid}/fd`).length,
  };
}

/** The smallest memory in each of so many periods: memory rises until it is collected, a leak raises what remains. */
export function findFloors(samples: readonly Sample[], periods: number): readonly Sample[] {
  const size = Math.max(1, Math.floor(samples.length / periods));
  return Array.from({ length: Math.floor(samples.length / size) }, (_, index) => {
    const period = samples.slice(index * size, (index + 1) * size);
    return period.reduce((least, sample) => (sample.rssMib < least.rssMib ? sample : least));
  });
}

/** Memory at one moment. */
export interface MemoryPoint {
  atMs: number;
  mib: number;
}

/** The growth of memory in MiB per minute: the slope of the line through the points (least squares). */
export function measureGrowth(points: readonly MemoryPoint[]): number {
  const mean = (read: (point: MemoryPoint) => number): number =>
    points.reduce((sum, point) => sum + read(point), 0) / points.length;
  const atMs = mean((point) => point.atMs);
  const mib = mean((point) => point.mib);
  const covariance = mean((point) => (point.atMs - atMs) * (point.mib - mib));
  const variance = mean((point) => (point.atMs - atMs) ** 2);
  return (covariance / variance) * MINUTE_MS;
}
