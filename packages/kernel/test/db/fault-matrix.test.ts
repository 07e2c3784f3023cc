// Every file of a SQLite database × every fault: all acknowledged rows are there, or the loss is refused or reported.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { dumpDatabase, openDatabase, type Database } from "../../src/db/index.ts";

interface Tables {
  notes: { id: number; text: string };
}

/** Rounds over the matrix; all but the first flip random bits. */
const ROUNDS = Number(process.env["PLATFORM_FAULT_ROUNDS"] ?? 1);
const MIGRATIONS = [
  {
    id: "0001-notes",
    statements: () => ["create table notes (id integer primary key, text text not null)"],
  },
];

type Access = "one" | "guests" | "many";

interface Stage {
  folder: string;
  older: string;
  rows: number;
}

const root = mkdtempSync(join(tmpdir(), "db-matrix-"));
after(() => rmSync(root, { recursive: true, force: true }));
let count = 0;

function textOf(id: number): string {
  return `note ${id} `.repeat(40);
}

function open(folder: string, processes: Access, acceptLoss = false): Database<Tables> {
  const url = `sqlite:${join(folder, "a.db")}`;
  return openDatabase<Tables>({ url, service: "notes", sqlite: { processes, acceptLoss } });
}

async function write(database: Database<Tables>, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += 100) {
    const ids = Array.from({ length: 100 }, (_, index) => at + index);
    const rows = ids.map((id) => ({ id, text: textOf(id) }));
    await database.db.insertInto("notes").values(rows).execute();
  }
}

/** Rewrites rows until the log has been restarted, which it is after 4 000 pages. */
async function restartLog(database: Database<Tables>): Promise<void> {
  for (let round = 0; round < 4_500 / 25; round++)
    await database.db
      .updateTable("notes")
      .set((row) => ({ text: row.ref("text") }))
      .where("id", "<", 250)
      .execute();
}

/** A folder that a killed process leaves, or a closed one, and an older copy. */
async function makeStage(processes: Access, ending: "killed" | "closed"): Promise<Stage> {
  const [live, older, folder] = ["live", "older", "left"].map((name) =>
    join(root, `${count++}-${name}`),
  ) as [string, string, string];
  const first = open(live, processes);
  await first.migrate(MIGRATIONS);
  await write(first, 0, 1_000);
  await restartLog(first);
  await write(first, 1_000, 1_200);
  cpSync(live, older, { recursive: true });
  await first.close();
  // The next start with a log of its own, which is restarted as well.
  const second = open(live, processes);
  await write(second, 1_200, 1_500);
  await restartLog(second);
  await write(second, 1_500, 1_600);
  if (ending === "killed") cpSync(live, folder, { recursive: true });
  await second.close();
  if (ending === "closed") cpSync(live, folder, { recursive: true });
  return { folder, older, rows: 1_600 };
}

interface Fault {
  name: string;
  /** Returns false if it changes nothing. */
  apply: (file: string, older: string, random: () => number) => boolean;
}

function patch(file: string, position: number, bytes: Buffer): boolean {
  const size = statSync(file).size;
  if (size === 0 || position >= size) return false;
  const before = readFileSync(file).subarray(position, position + bytes.length);
  if (before.equals(bytes)) return false;
  const descriptor = openSync(file, "r+");
  writeSync(descriptor, bytes, 0, Math.min(bytes.length, size - position), position);
  closeSync(descriptor);
  return true;
}

function flipAt(file: string, position: number, bit: number): void {
  patch(file, position, Buffer.from([readFileSync(file)[position]! ^ (1 << bit)]));
}

const FAULTS: Fault[] = [
  { name: "missing", apply: (file) => (rmSync(file), true) },
  { name: "emptied", apply: (file) => (truncateSync(file, 0), true) },
  { name: "truncated", apply: (file) => (truncateSync(file, statSync(file).size >> 1), true) },
  { name: "header", apply: (file) => patch(file, 16, Buffer.from([0x12, 0x34, 0x56])) },
  {
    name: "zeros",
    apply: (file) => patch(file, (statSync(file).size >> 14) << 13, Buffer.alloc(4_096)),
  },
  {
    name: "bits",
    apply(file, _older, random) {
      const { size } = statSync(file);
      if (size === 0) return false;
      for (let flips = 0; flips < 3; flips++)
        flipAt(file, Math.floor(random() * size), Math.floor(random() * 8));
      return true;
    },
  },
  {
    name: "older",
    apply(file, older) {
      if (!existsSync(older) || readFileSync(older).equals(readFileSync(file))) return false;
      cpSync(older, file);
      return true;
    },
  },
];

/** A linear congruential generator: the same bits in each run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

async function judge(stage: Stage, processes: Access, name: string, fault: Fault, seed: number) {
  const folder = join(root, `${count++}-cell`);
  cpSync(stage.folder, folder, { recursive: true });
  try {
    const random = createRandom(seed);
    if (!fault.apply(join(folder, name), join(stage.older, name), random)) return "–";
    let database: Database<Tables>;
    try {
      database = open(folder, processes);
    } catch (error) {
      assert.equal((error as { kind?: unknown }).kind, "corrupt", String(error));
      assert.match(String(error), /a\.db.*(restore a backup)/);
      return "refused";
    }
    try {
      const rows = await database.db.selectFrom("notes").selectAll().orderBy("id").execute();
      const isWhole =
        rows.length === stage.rows &&
        rows.every(({ id, text }, at) => id === at && text === textOf(id));
      if (isWhole) return "whole";
      return (await database.check()) === undefined ? "SILENT" : "reported";
    } catch {
      return (await database.check()) === undefined ? "SILENT" : "reported";
    } finally {
      await database.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const processes of ["one", "guests"] as const) {
  for (const ending of ["killed", "closed"] as const) {
    test(`no fault of a file is silent: used by ${processes}, ${ending}`, async (t) => {
      const stage = await makeStage(processes, ending);
      const files = readdirSync(stage.folder).toSorted();
      const ofSqlite = files.filter((name) => !/\.(?:mark|sums)$/.test(name));
      const log = ending === "killed" ? ["a.db-wal"] : [];
      // The index of the log is not mapped if this process is the only one.
      const index = ending === "killed" && processes === "guests" ? ["a.db-shm"] : [];
      assert.deepEqual(ofSqlite, ["a.db", ...index, ...log]);
      for (let round = 0; round < ROUNDS; round++) {
        const lines: string[] = [
          `${"".padEnd(14)}${FAULTS.map((f) => f.name.padEnd(11)).join("")}`,
        ];
        const silent: string[] = [];
        for (const name of files) {
          const cells: string[] = [];
          for (const fault of FAULTS) {
            const cell = await judge(stage, processes, name, fault, round + 1);
            if (cell === "SILENT") silent.push(`${name}, ${fault.name}, round ${round}`);
            cells.push(cell.padEnd(11));
          }
          lines.push(`${name.padEnd(14)}${cells.join("")}`);
        }
        t.diagnostic(lines.join("\n"));
        assert.deepEqual(silent, []);
      }
      // Without a fault, the copies open and are whole.
      const none = { name: "none", apply: () => true };
      assert.equal(await judge(stage, processes, "a.db", none, 0), "whole");
    });
  }
}

test("a file that is changed by another program is refused, and opens if the change is accepted", async () => {
  const stage = await makeStage("one", "closed");
  writeFileSync(join(stage.folder, "a.db"), readFileSync(join(stage.older, "a.db")));
  assert.throws(() => open(stage.folder, "one"), {
    kind: "corrupt",
    message: /a\.db is damaged \(page .* changed since .* older copy.*--accept-loss/,
  });
  await open(stage.folder, "one", true).close();
  const database = open(stage.folder, "one");
  assert.equal(await database.check(), undefined);
  await database.close();
});

test("commands beside a running service change neither its data nor its checksums", async () => {
  const folder = join(root, String(count++));
  const service = open(folder, "guests");
  await service.migrate(MIGRATIONS);
  await write(service, 0, 1_000);
  const command = open(folder, "many");
  await write(command, 1_000, 1_100);
  await command.close();
  await restartLog(service);
  await write(service, 1_100, 1_200);
  const killed = join(root, String(count++));
  cpSync(folder, killed, { recursive: true });
  await service.close();
  for (const [place, processes] of [
    [folder, "guests"],
    [killed, "guests"],
    [folder, "many"],
    [folder, "guests"],
  ] as const) {
    const database = open(place, processes);
    const rows = await database.db.selectFrom("notes").select("id").execute();
    assert.equal(rows.length, 1_200);
    assert.equal(await database.check(), undefined);
    await database.close();
  }
});

test("a copy can be taken of a database that only this process can open", async () => {
  const folder = join(root, String(count++));
  const database = open(folder, "one");
  await database.migrate(MIGRATIONS);
  await write(database, 0, 500);
  const url = `sqlite:${join(folder, "a.db")}`;
  const file = join(root, String(count++), "a.db");
  mkdirSync(dirname(file));
  await dumpDatabase({ url, file, tables: [] });
  await write(database, 500, 600);
  const copy = open(dirname(file), "one");
  const read = (from: Database<Tables>) => from.db.selectFrom("notes").select("id").execute();
  assert.deepEqual([(await read(copy)).length, (await read(database)).length], [500, 600]);
  await copy.close();
  const command = `new (require("node:sqlite").DatabaseSync)(${JSON.stringify(join(folder, "a.db"))}).exec("delete from notes")`;
  const { stderr } = spawnSync(process.execPath, ["-e", command], { encoding: "utf8" });
  assert.match(stderr, /database is locked/);
  await database.close();
});

test("a file above 256 MiB is checked in the background", async () => {
  const folder = join(root, String(count++));
  mkdirSync(folder);
  const path = join(folder, "a.db");
  const large = new DatabaseSync(path);
  large.exec("pragma journal_mode = off; pragma synchronous = off");
  large.exec("create table blobs (data blob not null)");
  large.exec(
    "with recursive n (i) as (select 1 union all select i + 1 from n where i < 270) insert into blobs select zeroblob(1048576) from n",
  );
  large.close();
  const summed = open(folder, "one");
  await summed.migrate(MIGRATIONS);
  await write(summed, 0, 500);
  await waitFor(() => statSync(`${path}.sums`).size > 65_000 * 4, "sums");
  await restartLog(summed);
  await write(summed, 500, 600);
  await summed.close();
  const whole = open(folder, "one");
  await write(whole, 600, 700);
  await whole.close();
  // In the middle of a blob, where only the checksums see it.
  assert.ok(patch(path, 150 * 1024 ** 2 + 2_000, Buffer.from("x")));
  const damaged = open(folder, "one");
  let fault: string | undefined;
  await waitFor(async () => (fault = await damaged.check()) !== undefined, "damage");
  assert.match(fault!, /a\.db is damaged \(page \d+ changed .*restore a backup/);
  assert.equal((await damaged.db.selectFrom("notes").select("id").execute()).length, 700);
  await damaged.close();
});
