// Every file of a log's folder × every fault: no acknowledged data is missing without a report.
import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { checkLog, LogError, openLog, openNodeDisk, repairLog, type Log } from "../../src/index.ts";
import { batchOf } from "../simulation/fixture.ts";
import { Random } from "../simulation/random.ts";
import { readAll } from "../simulation/read-all.ts";

/** Rounds over the matrix; all but the first flip random bits instead of chosen ones. */
const ROUNDS = Number(process.env["PLATFORM_FAULT_ROUNDS"] ?? 1);
if (!Number.isSafeInteger(ROUNDS) || ROUNDS < 1)
  throw new Error("PLATFORM_FAULT_ROUNDS is no count");

const LIMITS = { inPlaceBytesMin: 4_000, journalFileBytes: 20_000, checkpointBytes: 10_000_000 };

/** A folder after a kill, an older copy of it, and the acknowledged messages. */
interface Stage {
  folder: string;
  older: string;
  acknowledged: Set<string>;
}

interface Fault {
  name: string;
  /** Returns false if it changes nothing. */
  apply: (file: string, older: string, random: Random | undefined) => boolean;
}

const flip = (name: string, place: (bytes: number) => number): Fault => ({
  name,
  apply(file, _older, random) {
    const bytes = readFileSync(file);
    if (bytes.length === 0) return false;
    const at = random === undefined ? place(bytes.length) : random.below(bytes.length);
    bytes[at] = bytes[at]! ^ (1 << (random?.below(8) ?? 4));
    writeFileSync(file, bytes);
    return true;
  },
});

const FAULTS: Fault[] = [
  flip("flip start", () => 2),
  flip("flip middle", (bytes) => bytes >> 1),
  flip("flip end", (bytes) => bytes - 2),
  {
    name: "truncated",
    apply(file) {
      truncateSync(file, statSync(file).size >> 1);
      return true;
    },
  },
  { name: "emptied", apply: (file) => (truncateSync(file, 0), true) },
  { name: "missing", apply: (file) => (rmSync(file), true) },
  {
    name: "older",
    apply(file, older) {
      if (!existsSync(older) || readFileSync(older).equals(readFileSync(file))) return false;
      cpSync(older, file);
      return true;
    },
  },
];

test("after each fault in each file the log is complete, partial with a report, or not opened", async (t) => {
  const stage = await makeStage(t);
  const files = globSync("{journal,manifest,shared,topics}/**/*", { cwd: stage.folder })
    .filter((path) => statSync(join(stage.folder, path)).isFile())
    .sort();
  const kinds = ["journal", "mark", "manifest", "shared", "index", "own segment"];
  assert.deepEqual(new Set(files.map(kindOf)), new Set(kinds), "every kind of file is there");
  const random = new Random(1);
  for (let round = 0; round < ROUNDS; round++) {
    const table: string[] = [];
    for (const path of files) {
      const cells: string[] = [];
      for (const fault of FAULTS) {
        const place = `${path}, ${fault.name}, round ${round}`;
        try {
          cells.push(await judgeCell(stage, path, fault, round === 0 ? undefined : random));
        } catch (error) {
          throw new Error(place, { cause: error });
        }
      }
      const name = `${kindOf(path)} ${path.split("/").at(-1)}`;
      table.push(`${name.padEnd(46)}${cells.map((cell) => cell.padEnd(13)).join("")}`);
    }
    const head = `${"".padEnd(46)}${FAULTS.map(({ name }) => name.padEnd(13)).join("")}`;
    t.diagnostic([`round ${round}`, head, ...table].join("\n"));
  }
});

function kindOf(path: string): string {
  if (path.endsWith(".mark")) return "mark";
  if (path.endsWith(".index")) return "index";
  if (path.startsWith("topics/")) return "own segment";
  return path.split("/")[0]!;
}

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-matrix-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function copyFolder(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith("lock.db") });
}

/** Writes small and large messages, copies the folder halfway, and ends like a killed process. */
async function makeStage(t: TestContext): Promise<Stage> {
  const [live, older, folder] = [makeFolder(t), makeFolder(t), makeFolder(t)];
  const acknowledged = new Set<string>();
  const log = await openLog({ disk: openNodeDisk(live), ...LIMITS });
  const small = await log.createTopic("small", { partitions: 2 });
  const large = await log.createTopic("large", { config: { segmentBytes: 20_000 } });
  const write = async (from: number, to: number) => {
    for (let at = from; at < to; at++) {
      const partition = at % 2 === 0 ? small.partitions[(at >> 1) % 2]! : large.partitions[0]!;
      const text = at % 2 === 0 ? `m${at}` : `m${at} `.padEnd(5_000, "x");
      await log.append([{ partition, batch: batchOf(text) }]);
      acknowledged.add(`m${at}`);
    }
  };
  await write(0, 10);
  await log.checkpoint();
  await write(10, 20);
  copyFolder(live, older);
  await log.checkpoint();
  await write(20, 50);
  await waitForMark(live);
  copyFolder(live, folder);
  await log.close();
  return { folder, older, acknowledged };
}

// The mark follows the last group; a loss before that cannot be told from a torn tail.
async function waitForMark(folder: string): Promise<void> {
  const mark = join(folder, "journal/durable.mark");
  const last = () => globSync("journal/*.journal", { cwd: folder }).sort().at(-1)!;
  const size = () => statSync(join(folder, last())).size;
  const marked = () => {
    const bytes = readFileSync(mark);
    return Math.max(Number(bytes.readBigUInt64BE(24)), Number(bytes.readBigUInt64BE(512 + 24)));
  };
  const deadline = Date.now() + 60_000;
  while (marked() < size()) {
    assert.ok(Date.now() < deadline, "the mark follows");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function judgeCell(
  stage: Stage,
  path: string,
  fault: Fault,
  random: Random | undefined,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-cell-"));
  try {
    copyFolder(stage.folder, folder);
    if (!fault.apply(join(folder, path), join(stage.older, path), random)) return "–";
    const report = await checkLog(openNodeDisk(folder));
    const outcome = await judgeOpening(stage, folder);
    const isReported = report.damaged.length > 0;
    if (outcome !== "whole") assert.ok(isReported, "the check names the damage");
    if (outcome === "refused") assert.equal(report.opens, false);
    // After a repair the log opens, and only reported data is missing.
    await repairLog({ disk: openNodeDisk(folder), ...LIMITS });
    const log = await openLog({ disk: openNodeDisk(folder), ...LIMITS });
    const { missing, errors } = await findMissing(stage, log);
    assert.deepEqual([errors, log.recovery.quarantined], [0, []], "everything can be read");
    if (missing > 0) assert.ok(isReported, `${missing} are missing after the repair`);
    await log.close();
    assert.equal((await checkLog(openNodeDisk(folder))).isWhole, true, "it is whole again");
    return outcome === "whole" ? "whole" : `${outcome} −${missing}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// On a copy, since opening changes the folder.
async function judgeOpening(stage: Stage, from: string): Promise<"whole" | "partial" | "refused"> {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-open-"));
  try {
    copyFolder(from, folder);
    let log: Log;
    try {
      log = await openLog({ disk: openNodeDisk(folder), ...LIMITS });
    } catch (error) {
      assert.ok(error instanceof LogError && error.code === "needs-repair", String(error));
      return "refused";
    }
    const { missing, errors } = await findMissing(stage, log);
    const reports = log.recovery.quarantined.length + errors;
    if (missing > 0) assert.ok(reports > 0, `${missing} are missing without a report`);
    await log.close();
    return missing + reports === 0 ? "whole" : "partial";
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Counts the acknowledged messages that cannot be read, and the partitions whose reads failed. */
async function findMissing(
  { acknowledged }: Stage,
  log: Log,
): Promise<{ missing: number; errors: number }> {
  const left = new Set(acknowledged);
  let errors = 0;
  for (const topic of log.topics()) {
    for (const partition of topic.partitions) {
      try {
        for (const { value } of await readAll(log, partition, 100_000)) {
          const id = value!.toString("latin1").split(" ")[0]!;
          assert.ok(acknowledged.has(id), `${id} was written by nobody`);
          assert.ok(left.delete(id), `${id} is there once`);
        }
      } catch (error) {
        if (!(error instanceof LogError)) throw error;
        errors++;
      }
    }
  }
  return { missing: left.size, errors };
}
