// Copies a snapshot of the index into a new file, alongside readers and the writer.
import { closeSync, fsyncSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { workerData } from "node:worker_threads";
import { nameDriveMark, openIndexReader } from "./schema.ts";

/** The data that the thread starts with. `slot` is the drive of the copy. */
export interface SnapshotData {
  from: string;
  to: string;
  slot: number;
}

const { from, to, slot } = workerData as SnapshotData;
const index = openIndexReader(from);
index.sql("vacuum into ?").run(to);
index.close();
const copy = new DatabaseSync(to);
copy.exec("pragma synchronous = off");
copy.prepare("insert or replace into meta values (?, 1)").run(nameDriveMark(slot));
copy.close();
const fd = openSync(to, "r+");
fsyncSync(fd);
closeSync(fd);
