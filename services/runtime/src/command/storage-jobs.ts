// `platform module put`, `platform job list`, `job show`, `job cancel`: code and jobs in storage.
import { readFileSync } from "node:fs";
import { connectStorage } from "../client/connect.ts";
import { findTarget } from "../client/target.ts";
import { type ListOptions, printPages } from "./list.ts";

/** Registers the module in a file, and prints its hash. */
export async function runModulePut(data: string, name: string, file: string): Promise<void> {
  const bytes = readFileSync(file);
  const storage = connectStorage(await findTarget(data));
  const path = `/admin/modules/${encodeURIComponent(name)}`;
  const { sha256, abi } = await storage.send("PUT", path, { type: "application/wasm", bytes });
  process.stderr.write(`module ${name} registered (${String(abi)})\n`);
  process.stdout.write(`${String(sha256)}\n`);
}

/** Prints jobs, the newest first. */
export async function runJobList({ data, json }: ListOptions): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  const header = ["job", "operation", "state", "done", "failed", "created"];
  const read = (job: Readonly<Record<string, unknown>>, total: string): string =>
    String((job["totals"] as Record<string, number>)[total]);
  await printPages(json, header, storage, "/admin/batch/", [
    (job) => String(job["job_id"]),
    (job) => String(job["operation"]),
    (job) => String(job["state"]),
    (job) => read(job, "done"),
    (job) => read(job, "failed"),
    (job) => String(job["created_at"]),
  ]);
}

/** Prints a job with its first failures. */
export async function runJobShow(data: string, id: string): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  const path = `/admin/batch/${encodeURIComponent(id)}`;
  const job = await storage.call("GET", path);
  const { items } = await storage.call("GET", `${path}/failures?limit=20`);
  process.stdout.write(`${JSON.stringify({ ...job, failures: items }, null, 2)}\n`);
}

/** Cancels a job. What it has done stays. */
export async function runJobCancel(data: string, id: string): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  const path = `/admin/batch/${encodeURIComponent(id)}`;
  const { state } = await storage.call("PATCH", path, { state: "cancelled" });
  process.stderr.write(`job ${id} is ${String(state)}\n`);
}
