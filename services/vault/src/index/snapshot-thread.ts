// Copies the index as of one moment into a new file, beside readers and the writer.
import { closeSync, fsyncSync, openSync, rmSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { openIndexReader } from "./schema.ts";

const { from, to } = workerData as { from: string; to: string };
rmSync(to, { force: true });
const index = openIndexReader(from);
index.sql("vacuum into ?").run(to);
index.close();
const fd = openSync(to, "r+");
fsyncSync(fd);
closeSync(fd);
