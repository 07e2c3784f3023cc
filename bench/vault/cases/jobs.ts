// Jobs, guests on objects, triggers and backups, beside the command line of AWS, GET and cp.
import { execFile } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { assembleCommand, loopOverInput, WRITE_OUTPUT } from "@platform/testing/guests";
import { findProgram } from "../../../tests/stage/program.ts";
import { Workspace, type BenchCase } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds } from "../../harness/rounds.ts";
import { takeMedian } from "../../harness/statistics.ts";
import { type BenchStore, inLanes, LANES, startStore } from "../bench-store.ts";
import { CREDENTIALS, createPresigner } from "../presign.ts";

const run = promisify(execFile);
const SMALL_BYTES = 4_096;
/** Objects of a job, and of the command line, which is slower by far. */
const JOB_OBJECTS = 10_000;
const TOOL_OBJECTS = 300;
const PUTS = 2_000;
const LARGE_BYTES = 256 * 1024 * 1024;
/** Objects of the store that is backed up. */
const STORED_OBJECTS = 240;
const STORED_BYTES = 16 * 1024 * 1024;
const TRIGGERED = 40;
const MEGABYTE = 1e6;

const AWS = "aws s3 cp --recursive";
const GET = "GET of 256 MiB";
const CP = "cp -r and sync";
const PUT = "PUT 4 KiB, no trigger";
const PUT_TRIGGERED = "PUT 4 KiB, with the row of a trigger";

interface Entrant {
  readonly row: Row;
  readonly run: (round: number) => Promise<Record<string, number>>;
}

/** Jobs and guests. */
export const jobs: BenchCase = {
  name: "jobs",
  title: "Jobs, guests and backups",
  isOptional: true,
  run: async (context) => {
    await using workspace = new Workspace();
    const folder = join(workspace.folder, "store");
    const backups = join(folder, "backups");
    mkdirSync(backups, { recursive: true });
    const store = await startStore(context, workspace, folder, {
      PLATFORM_VAULT_BACKUP_DIR: backups,
    });
    // Without modules that run: what a trigger costs the PUT itself.
    const stopped = await startStore(context, workspace, join(workspace.folder, "stopped"), {
      PLATFORM_VAULT_GUEST_THREADS: "0",
    });
    context.say("  filling");
    await fill(store);
    await prepareTrigger(stopped);
    const entrants = listEntrants(store, stopped);
    const rounds = new Map<Entrant, number>();
    await runRounds(
      context,
      entrants,
      (entrant) => {
        const round = (rounds.get(entrant) ?? 0) + 1;
        rounds.set(entrant, round);
        return entrant.run(round);
      },
      (figures) =>
        Object.entries(figures)
          .map(([key, value]) => `${value.toFixed(1)} ${key}`)
          .join(", "),
    );
    const atLeast = (column: string, against: string, name: string, share: number) => ({
      column,
      against,
      ours: [name],
      atLeast: share,
    });
    return {
      work: `Jobs on ${JOB_OBJECTS} objects of 4 KiB without a rate; ${AWS} copies ${TOOL_OBJECTS} of them from bucket to bucket. The backup is the first one of a store with ${STORED_OBJECTS} objects of 16 MiB beside the small ones. PUT with ${LANES} connections, of which two rows are of a second store whose modules are stopped, and in the last one the modules of the trigger run at the same time. All in one run.`,
      columns: [
        { key: "perS", title: "objects/s", digits: 0 },
        { key: "mbPerS", title: "MB/s", digits: 0 },
        { key: "p50Ms", title: "p50 ms", digits: 1 },
      ],
      rows: entrants.map(({ row }) => row),
      ratioColumns: [],
      goals: [
        atLeast("perS", AWS, "copy job", 5),
        atLeast("mbPerS", GET, "transform by an identity guest", 0.25),
        atLeast("mbPerS", CP, "backup", 0.5),
        atLeast("perS", PUT, PUT_TRIGGERED, 0.85),
      ],
    };
  },
};

async function fill(store: BenchStore): Promise<void> {
  const { send } = store;
  for (const bucket of ["bench", "tool", "large"]) await send("PUT", `/${bucket}`);
  await prepareTrigger(store);
  const small = new Uint8Array(SMALL_BYTES).fill(7);
  await inLanes(JOB_OBJECTS, (n) => send("PUT", `/bench/in/${n}`, { body: small }));
  await inLanes(TOOL_OBJECTS, (n) => send("PUT", `/tool/in/${n}`, { body: small }));
  await send("PUT", "/large/one", { body: new Uint8Array(LARGE_BYTES).fill(3) });
  for (let n = 0; n < STORED_OBJECTS; n += 1) {
    await send("PUT", `/large/stored/${n}`, { body: new Uint8Array(STORED_BYTES).fill(n) });
  }
}

async function prepareTrigger({ send, admin }: BenchStore): Promise<void> {
  for (const bucket of ["plain", "triggered"]) await send("PUT", `/${bucket}`);
  await admin("PUT", "/admin/modules/identity", assembleCommand(loopOverInput(WRITE_OUTPUT)));
  const trigger = {
    id: "copy",
    events: ["objstore:ObjectCreated:*"],
    filter: { prefix: "in/" },
    module: "identity",
    target: { bucket: "plain", key: "out/{name}" },
  };
  await send("PUT", "/triggered", {
    query: { triggers: "" },
    body: JSON.stringify({ triggers: [trigger] }),
  });
}

function listEntrants(store: BenchStore, stopped: BenchStore): Entrant[] {
  const make = (name: string, isOurs: boolean, work: Entrant["run"]): Entrant => ({
    row: { name, isOurs, version: "", rounds: [] },
    run: work,
  });
  const entrants = [
    make("copy job", true, (round) => runJob(store, "copy", "in/", `copy-${round}/`)),
    make("delete job", true, async (round) => {
      const prefix = `delete-${round}/`;
      await runJob(store, "copy", "in/", prefix);
      return runJob(store, "delete", prefix);
    }),
    make(GET, false, () => readLarge(store, "GET", {})),
    make("transform by an identity guest", true, () =>
      readLarge(store, "POST", { transform: "", module: "identity" }),
    ),
    make("latency of a trigger", true, () => measureTriggers(store)),
    make("backup", true, (round) => backUp(store, round)),
    make(CP, false, (round) => copyFolder(store, round)),
    make(PUT, false, (round) => putMany(stopped, "plain", round)),
    make(PUT_TRIGGERED, true, (round) => putMany(stopped, "triggered", round)),
    make("PUT 4 KiB, while the trigger's modules run", true, async (round) => {
      const figures = await putMany(store, "triggered", round);
      // The runs that are left are not to disturb the next rows.
      await waitForTriggers(store);
      return figures;
    }),
  ];
  const tool = make(AWS, false, (round) => copyByTool(store, round));
  if (findProgram("aws") === undefined) tool.row.note = "aws is not installed";
  else entrants.push(tool);
  return entrants;
}

async function runJob(
  { admin }: BenchStore,
  operation: string,
  prefix: string,
  targetPrefix = "",
): Promise<Record<string, number>> {
  const body = { operation, bucket: "bench", prefix, target_prefix: targetPrefix, rate: 0 };
  const seconds = await timeJob(admin, "/admin/batch", body);
  return { perS: JOB_OBJECTS / seconds };
}

// Resolves to the time of the job from its request to its end, in seconds.
async function timeJob(admin: BenchStore["admin"], path: string, body: object): Promise<number> {
  const begun = performance.now();
  const { job_id: id } = JSON.parse(await admin("POST", path, body)) as { job_id: string };
  for (;;) {
    const job = JSON.parse(await admin("GET", `/admin/batch/${id}`)) as {
      state: string;
      reason: string;
    };
    if (job.state === "completed") return (performance.now() - begun) / 1_000;
    if (job.state === "failed") throw new Error(job.reason);
    await sleep(20);
  }
}

async function copyByTool(store: BenchStore, round: number): Promise<Record<string, number>> {
  const begun = performance.now();
  const args = ["s3", "cp", "--recursive", "s3://tool/in/", `s3://plain/tool-${round}/`, "--quiet"];
  await run("aws", [...args, "--endpoint-url", store.origin], {
    env: {
      ...process.env,
      AWS_ACCESS_KEY_ID: CREDENTIALS.accessKey,
      AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretKey,
      AWS_DEFAULT_REGION: "us-east-1",
    },
  });
  return { perS: TOOL_OBJECTS / ((performance.now() - begun) / 1_000) };
}

async function readLarge(
  { send }: BenchStore,
  method: string,
  query: Record<string, string>,
): Promise<Record<string, number>> {
  const begun = performance.now();
  const answer = await send(method, "/large/one", { query });
  let bytes = 0;
  for await (const chunk of answer.body!) bytes += chunk.length;
  if (bytes !== LARGE_BYTES) throw new Error(`${bytes} bytes`);
  return { mbPerS: bytes / MEGABYTE / ((performance.now() - begun) / 1_000) };
}

async function measureTriggers({ send, origin }: BenchStore): Promise<Record<string, number>> {
  const sign = createPresigner(new URL(origin).host, CREDENTIALS);
  const times: number[] = [];
  for (let n = 0; n < TRIGGERED; n += 1) {
    const name = `latency-${performance.now()}-${n}`;
    await send("PUT", `/triggered/in/${name}`, { body: "x" });
    const begun = performance.now();
    const target = origin + sign("HEAD", `/plain/out/${name}`);
    while (!(await fetch(target, { method: "HEAD" })).ok) await sleep(1);
    times.push(performance.now() - begun);
  }
  return { p50Ms: takeMedian(times) };
}

async function waitForTriggers({ admin }: BenchStore): Promise<void> {
  for (;;) {
    const { kinds } = JSON.parse(await admin("GET", "/admin/tasks")) as {
      kinds: { kind: string; waiting: number }[];
    };
    if ((kinds.find(({ kind }) => kind === "trigger")?.waiting ?? 0) === 0) return;
    await sleep(50);
  }
}

async function backUp(
  { admin, folder }: BenchStore,
  round: number,
): Promise<Record<string, number>> {
  const path = `round-${round}-${Date.now()}`;
  const seconds = await timeJob(admin, "/admin/backup", { repository: { path } });
  const listed = await admin("GET", `/admin/backup/snapshots?path=${path}`);
  const { items } = JSON.parse(listed) as { items: { bytes: number }[] };
  rmSync(join(folder, "backups", path), { recursive: true });
  return { mbPerS: items[0]!.bytes / MEGABYTE / seconds };
}

async function copyFolder({ folder }: BenchStore, round: number): Promise<Record<string, number>> {
  const to = join(folder, `copy-${round}`);
  const begun = performance.now();
  await run("cp", ["-r", join(folder, "data"), to]);
  await run("sync", ["-f", to]);
  const seconds = (performance.now() - begun) / 1_000;
  const { stdout } = await run("du", ["-sb", to]);
  rmSync(to, { recursive: true });
  return { mbPerS: Number.parseInt(stdout, 10) / MEGABYTE / seconds };
}

async function putMany(
  { send }: BenchStore,
  bucket: string,
  round: number,
): Promise<Record<string, number>> {
  const body = new Uint8Array(SMALL_BYTES);
  const begun = performance.now();
  await inLanes(PUTS, (n) => send("PUT", `/${bucket}/in/${round}-${n}`, { body }));
  return { perS: PUTS / ((performance.now() - begun) / 1_000) };
}
