// A project that reads and changes rows of a long table at a constant rate, and reports the p99 of its own times in ms.
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const REQUESTS = 1_000;
const EVERY_MS = 4;
const [dialect = "", place = "", rows = ""] = process.argv.slice(2);

/** Reads a row and, every tenth time, changes it. */
async function open(): Promise<(id: number, changes: boolean) => unknown> {
  if (dialect === "sqlite") {
    const database = new DatabaseSync(place, { timeout: 5_000 });
    const read = database.prepare("select * from people where id = ?");
    const change = database.prepare("update people set city = city where id = ?");
    return (id, changes) => (changes ? change.run(id) : read.get(id));
  }
  const client = new pg.Client({ connectionString: place });
  await client.connect();
  const read = "select * from people where id = $1";
  const change = "update people set city = city where id = $1";
  return (id, changes) => client.query(changes ? change : read, [id]);
}

const use = await open();
const times: number[] = [];
for (let request = 0; request < REQUESTS; request += 1) {
  const id = 1 + ((request * 7_919) % Number(rows));
  const startedMs = performance.now();
  await use(id, request % 10 === 9);
  times.push(performance.now() - startedMs);
  await sleep(EVERY_MS);
}
times.sort((one, other) => one - other);
process.send!(times[Math.floor(REQUESTS * 0.99)]!, () => process.exit());
