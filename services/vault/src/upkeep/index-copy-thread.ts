// The thread that copies the index: it takes a snapshot, then reads the copy row by row.
import { closeSync, fsyncSync, openSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { inspectIndex } from "../index/inspect.ts";
import { copyPages, type PageCopy } from "../index/copy-pages.ts";

/** Its only message: the damage of the index. */
export type CopyFindings = readonly string[];

const port = parentPort;
if (port !== null) {
  const pages = workerData as PageCopy;
  const { to } = pages;
  const findings: string[] = [];
  try {
    await copyPages(pages);
    findings.push(...inspectIndex(to).findings);
    const fd = openSync(to, "r+");
    fsyncSync(fd);
    closeSync(fd);
  } catch (error) {
    const code = (error as { errcode?: number }).errcode ?? 0;
    // SQLITE_CORRUPT. Other errors, above all a full disk, say nothing about the index.
    if (code % 256 !== 11) throw error;
    findings.push((error as Error).message);
  }
  port.postMessage(findings satisfies CopyFindings);
}
