// A large upload in parts, and a read of the whole object: speed and memory.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findFreePort } from "../../../tests/stage/process.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { listTree, readTreeUsage } from "../../harness/usage.ts";
import { CREDENTIALS, createPresigner } from "../presign.ts";
import { makePlatformVaultd } from "../stores/platform-vaultd.ts";
import type { ObjectStore } from "../stores/store.ts";

const MIB = 2 ** 20;
const PART_BYTES = 64 * MIB;
const PARTS = 80;
const LANES = 4;

/** 5 GiB in 80 parts. */
export const multipart: BenchCase = {
  name: "multipart",
  title: "5 GiB in parts of 64 MiB",
  isOptional: true,
  run: async (context) => {
    const rows: Row[] = [];
    for (const build of context.builds) {
      const store = makePlatformVaultd(build);
      const absence = store.explainAbsence();
      const row: Row = { name: store.name, isOurs: true, version: "", rounds: [] };
      rows.push(row);
      if (absence === undefined) {
        row.version = store.readVersion();
        row.rounds.push(await measure(context, store));
      } else row.note = absence;
    }
    return {
      work: "One upload of 5 GiB, 4 parts at a time, then the whole object read. One round; the load shares the cores.",
      columns: [
        { key: "putMibPerS", title: "PUT MiB/s", digits: 0 },
        { key: "getMibPerS", title: "GET MiB/s", digits: 0 },
        { key: "idleMib", title: "memory before, MiB", digits: 0 },
        { key: "firstPeakMib", title: "peak RSS of the first GiB, MiB", digits: 0 },
        { key: "peakMib", title: "peak RSS of all, MiB", digits: 0 },
        { key: "afterMib", title: "memory after, MiB", digits: 0 },
      ],
      rows,
      ratioColumns: [],
      goals: [],
    };
  },
};

async function measure(context: BenchContext, store: ObjectStore): Promise<Record<string, number>> {
  await using workspace = new Workspace();
  const folder = join(workspace.folder, "store");
  mkdirSync(folder);
  const port = await findFreePort();
  const [pid] = await store.start({ port, cores: context.cores.all, folder, workspace });
  const origin = `http://127.0.0.1:${port}`;
  const sign = createPresigner(new URL(origin).host, CREDENTIALS);
  const ask = async (
    method: string,
    path: string,
    query = {},
    body?: string | Uint8Array<ArrayBuffer>,
  ) => {
    const answer = await fetch(origin + sign(method, path, query), {
      method,
      ...(body === undefined ? {} : { body }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  await ask("PUT", "/bench");
  const idleMib = readTreeUsage(pid!).pssBytes / MIB;

  const path = "/bench/large";
  const created = await (await ask("POST", path, { uploads: "" })).text();
  const uploadId = /<UploadId>([^<]+)</.exec(created)?.[1] ?? "";
  const part = new Uint8Array(PART_BYTES).fill(0x78);
  const etags: string[] = [];
  let firstPeakMib = 0;
  const putMs = await time(async () => {
    let next = 1;
    const lane = async () => {
      while (next <= PARTS) {
        const partNumber = next++;
        const query = { partNumber: String(partNumber), uploadId };
        const answer = await ask("PUT", path, query, part);
        await answer.arrayBuffer();
        etags[partNumber - 1] = answer.headers.get("etag") ?? "";
        if (partNumber * PART_BYTES === 1024 * MIB) firstPeakMib = readPeakBytes(pid!) / MIB;
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    const list = etags.map(
      (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
    );
    const document = `<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`;
    await (await ask("POST", path, { uploadId }, document)).text();
  });
  const getMs = await time(async () => {
    let bytes = 0;
    for await (const chunk of (await ask("GET", path)).body ?? []) bytes += chunk.length;
    if (bytes !== PARTS * PART_BYTES) throw new Error(`${bytes} bytes were returned`);
  });
  const mib = (PARTS * PART_BYTES) / MIB;
  return {
    putMibPerS: (mib * 1000) / putMs,
    getMibPerS: (mib * 1000) / getMs,
    idleMib,
    firstPeakMib,
    peakMib: readPeakBytes(pid!) / MIB,
    afterMib: readTreeUsage(pid!).pssBytes / MIB,
  };
}

async function time(work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

// The largest resident set of any process of the tree since its start (proc(5), VmHWM).
function readPeakBytes(pid: number): number {
  const peaks = listTree(pid).map((each) => {
    const status = readFileSync(`/proc/${each}/status`, "utf8");
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
  });
  return Math.max(...peaks);
}
