// The thread that copies the index to another drive.
import { closeSync, fsyncSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { workerData } from "node:worker_threads";
import { copyPages, type PageCopy } from "./copy-pages.ts";
import { nameDriveMark } from "./schema.ts";

/** The data that the thread starts with. `slot` is the drive of the copy. */
export interface SnapshotData extends PageCopy {
  slot: number;
}

const { slot, ...pages } = workerData as SnapshotData;
const { to } = pages;
await copyPages(pages);
const copy = new DatabaseSync(to);
copy.exec("pragma synchronous = off");
copy.prepare("insert or replace into meta values (?, 1)").run(nameDriveMark(slot));
copy.close();
const fd = openSync(to, "r+");
fsyncSync(fd);
closeSync(fd);
