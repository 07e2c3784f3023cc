// Closed segments in object storage: uploads and cold reads beside bare requests to the same store, and what readers of cold
// data cost others.
import { mkdirSync } from "node:fs";
import { link, open, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "../../../tests/stage/process.ts";
import { OURS_ON_NODE } from "../../harness/build.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { PaceSummary } from "../../harness/pace-generator.ts";
import { runPinned, startPinned } from "../../harness/process.ts";
import type { Row } from "../../harness/report.ts";
import { BareClient } from "../../vault/bare-client.ts";
import { CREDENTIALS } from "../../vault/presign.ts";
import { makePlatformVaultd } from "../../vault/stores/platform-vaultd.ts";
import { publishAll } from "../batch-load.ts";
import type { RunningBroker } from "../brokers/broker.ts";
import { makePlatformPulse } from "../brokers/platform-pulse.ts";
import { topicName } from "../broker-load.ts";
import { loadOnce } from "../contest.ts";

const MIB = 2 ** 20;
const SEGMENT_BYTES = 64 * MIB;
/** A batch that does not fit any more closes a segment. */
const CLOSED_BYTES_MIN = SEGMENT_BYTES - 11 * MIB;
/** Messages of one topic, about 512 MiB in all; a batch of the load must not exceed 10 MiB. */
const MESSAGES = 280_000;
const PAYLOAD = "v".repeat(1_850);
const CHUNK_BYTES = 4 * MIB;
const PART_BYTES = 8 * MIB;
/** As many as the broker has for uploads, and chunks that it reads ahead. */
const LANES = 2;
const READERS = 4;
const PACE = 500;
const CONNECTIONS = 16;
/** The broker finds within this time how much cold reads may take. */
const SETTLE_SECONDS = 2;
const BUCKET = "cold";
const GENERATOR = new URL("../../harness/pace-generator.ts", import.meta.url).pathname;
const FETCH = { protocol: "fetch", connections: 1, window: 1, records: 16 } as const;

interface OffloaderStatus {
  remote_bytes: number;
  pending_segments: number;
  last_upload_at: string | null;
}

/** Upload, cold reads, and the latency of others. */
export const offload: BenchCase = {
  name: "offload",
  title: "Segments in object storage",
  isOptional: true,
  run: async (context) => {
    await using workspace = new Workspace();
    const stage = await Stage.start(context, workspace);
    const rows = ["offload and read back", "bare requests"].map((name): Row => {
      return { name, isOurs: name !== "bare requests", version: "", rounds: [] };
    });
    const topics: string[] = [];
    for (let round = 0; round < context.rounds; round += 1) {
      const topic = `cold-${round}`;
      topics.push(topic);
      const ours = await stage.measureOffload(topic);
      const bare = await stage.measureBare(round);
      rows[0]!.rounds.push(ours);
      rows[1]!.rounds.push(bare);
      context.say(
        `  ${round + 1}/${context.rounds} up ${ours.upload!.toFixed(0)} (bare ${bare.upload!.toFixed(0)}), down ${ours.read!.toFixed(0)} (bare ${bare.read!.toFixed(0)}) MiB/s`,
      );
    }
    const latencies = await stage.measureLatencies(topics);
    return {
      work: `Topics of 512 MiB in segments of 64 MiB, offloaded to our storage on this machine, then read from there by kcat. Bare: the same files by Node's own HTTP client, which neither hashes nor looks at them: multipart uploads of parts of 8 MiB, ${LANES} at once, and ranged reads of 4 MiB, ${LANES} at once. Load, broker and store share the cores.`,
      columns: [
        { key: "upload", title: "upload MiB/s", digits: 0 },
        { key: "read", title: "read MiB/s", digits: 0 },
      ],
      rows,
      ratioColumns: ["upload", "read"],
      goals: [
        { column: "upload", against: "bare requests", atLeast: 0.7 },
        { column: "read", against: "bare requests", atLeast: 0.6 },
      ],
      remarks: latencies,
    };
  },
};

class Stage {
  readonly #context: BenchContext;
  readonly #workspace: Workspace;
  readonly #broker: RunningBroker;
  readonly #client: BareClient;
  /** Files that the broker has uploaded in this round, which it removes itself. */
  #segments: string[] = [];

  private constructor(
    context: BenchContext,
    workspace: Workspace,
    broker: RunningBroker,
    client: BareClient,
  ) {
    this.#context = context;
    this.#workspace = workspace;
    this.#broker = broker;
    this.#client = client;
  }

  static async start(context: BenchContext, workspace: Workspace): Promise<Stage> {
    const [storeFolder, folder] = ["store", "broker"].map((name) => join(workspace.folder, name));
    mkdirSync(storeFolder!);
    mkdirSync(folder!);
    const port = await findFreePort();
    const { all: cores } = context.cores;
    const store = makePlatformVaultd(OURS_ON_NODE);
    await store.start({ port, cores, folder: storeFolder!, workspace });
    const origin = `http://127.0.0.1:${port}`;
    const client = new BareClient(new URL(origin), LANES);
    await client.send("PUT", `/${BUCKET}`);
    const broker = await makePlatformPulse(OURS_ON_NODE).start({
      cores,
      folder: folder!,
      workspace,
      env: {
        PLATFORM_PULSE_S3_ENDPOINT: origin,
        PLATFORM_PULSE_S3_BUCKET: BUCKET,
        PLATFORM_PULSE_S3_TOKEN: `${CREDENTIALS.accessKey}:${CREDENTIALS.secretKey}`,
        // So small that a topic does not fit.
        PLATFORM_PULSE_OFFLOAD_CACHE_BYTES: String(128 * MIB),
      },
    });
    return new Stage(context, workspace, broker, client);
  }

  get #url(): string {
    return `http://127.0.0.1:${this.#broker.ports.http}`;
  }

  /** Fills a topic, has it uploaded and reads it. */
  async measureOffload(topic: string): Promise<Record<string, number>> {
    await this.#post("/api/v1/topics", {
      name: topic,
      partitions: 1,
      config: { segment_bytes: SEGMENT_BYTES },
    });
    await publishAll(this.#url, MESSAGES, () => ({ topic, payload: PAYLOAD }));
    this.#segments = await this.#linkSegments(topic);
    const before = await this.#readStatus();
    const begunMs = Date.now();
    await this.#post("/api/v1/topics/retention", {
      topic,
      offload: true,
      local_retention_bytes: 0,
    });
    let status = before;
    do {
      await sleep(50);
      status = await this.#readStatus();
    } while (status.remote_bytes === before.remote_bytes || status.pending_segments > 0);
    const uploadMs = Date.parse(status.last_upload_at!) - begunMs;
    const bytes = status.remote_bytes - before.remote_bytes;
    const readMs = await time(() => this.#readTopic(topic));
    return { upload: rate(bytes, uploadMs), read: rate(bytes, readMs) };
  }

  /** The same files by bare requests. */
  async measureBare(round: number): Promise<Record<string, number>> {
    const files = await Promise.all(
      this.#segments.map(async (path, index) => {
        const { size } = await stat(path);
        return { path, size, name: `bare-${round}/${index}` };
      }),
    );
    const uploadMs = await time(async () => {
      for (const file of files) await this.#uploadBare(file);
    });
    const chunks = files.flatMap(({ name, size }) =>
      Array.from({ length: Math.ceil(size / CHUNK_BYTES) }, (_, index) => {
        return { name, start: index * CHUNK_BYTES };
      }),
    );
    const readMs = await time(() =>
      inLanes(chunks, async ({ name, start }) => {
        const range = `bytes=${start}-${start + CHUNK_BYTES - 1}`;
        await this.#client.send("GET", `/${BUCKET}/${name}`, { headers: { range } });
      }),
    );
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    return { upload: rate(bytes, uploadMs), read: rate(bytes, readMs) };
  }

  async #uploadBare({ path, size, name }: { path: string; size: number; name: string }) {
    const file = await open(path);
    const upload = await this.#client.beginUpload(`/${BUCKET}/${name}`);
    const parts = Array.from({ length: Math.ceil(size / PART_BYTES) }, (_, index) => index + 1);
    await inLanes(parts, async (part) => {
      const start = (part - 1) * PART_BYTES;
      const bytes = Buffer.allocUnsafe(Math.min(PART_BYTES, size - start));
      await file.read(bytes, 0, bytes.length, start);
      await upload.put(part, bytes);
    });
    await upload.complete();
    await file.close();
  }

  /** Links to the files of the closed segments of the topic: those of former ones are only in the store. */
  async #linkSegments(topic: string): Promise<string[]> {
    const folder = join(this.#workspace.folder, "broker");
    const links: string[] = [];
    for (const name of await readdir(folder, { recursive: true })) {
      const path = join(folder, name);
      if (!name.endsWith(".log") || (await stat(path)).size < CLOSED_BYTES_MIN) continue;
      const linked = join(this.#workspace.folder, `${topic}-${basename(name)}`);
      await link(path, linked);
      links.push(linked);
    }
    if (links.length === 0) throw new Error(`No closed segments in ${folder}`);
    return links;
  }

  /** p99 of publishing and of hot reads, with and without readers of cold data. */
  async measureLatencies(topics: readonly string[]): Promise<string[]> {
    await publishAll(this.#url, 100_000, () => ({ topic: topicName, payload: "v".repeat(1_000) }));
    const alone = await this.#readLatencies();
    const reading = new AbortController();
    const readers = Array.from({ length: READERS }, async (_, index) => {
      while (!reading.signal.aborted) await this.#readTopic(topics[index % topics.length]!);
    });
    const beside = await this.#readLatencies();
    reading.abort();
    await Promise.all(readers);
    const compare = (name: string, key: "publish" | "fetch"): string => {
      const ratio = beside[key] / alone[key];
      return `- p99 of ${name}: ${alone[key].toFixed(1)} ms alone, ${beside[key].toFixed(1)} ms beside ${READERS} readers of cold data: ${ratio.toFixed(2)}, goal ≤ 1.25: ${ratio <= 1.25 ? "met" : "**missed**"}`;
    };
    return [
      compare(`HTTP publish at ${PACE}/s`, "publish"),
      `- In the first ${SETTLE_SECONDS} s of publishing: ${alone.first.toFixed(1)} ms alone, ${beside.first.toFixed(1)} ms beside readers that had the broker for themselves.`,
      compare("a hot Fetch", "fetch"),
    ];
  }

  async #readLatencies(): Promise<{ first: number; publish: number; fetch: number }> {
    const { seconds } = this.#context;
    const first = await this.#pace(SETTLE_SECONDS);
    const publish = await this.#pace(3 * seconds);
    const broker = { name: "pulse" };
    const { p99Ms } = await loadOnce(
      this.#context,
      { ...FETCH, broker },
      this.#broker,
      3 * seconds,
    );
    return { first, publish, fetch: p99Ms };
  }

  /** p99 in ms of publishing at a steady rate. */
  async #pace(seconds: number): Promise<number> {
    const { cores } = this.#context;
    const url = `${this.#url}/api/v1/publish`;
    const body = JSON.stringify({ topic: topicName, payload: "v".repeat(1_024) });
    const numbers = [CONNECTIONS, PACE, seconds].map(String);
    const output = await runPinned({
      name: "pace generator",
      command: process.execPath,
      args: [GENERATOR, url, ...numbers, new URL(url).host, body],
      cores: cores.load,
    });
    return (JSON.parse(output) as PaceSummary).p99Us / 1_000;
  }

  async #readTopic(topic: string): Promise<void> {
    // Only the offsets are printed, since this process reads what is.
    const reader = startPinned({
      name: "kcat",
      command: "kcat",
      args: `-C -q -e -b 127.0.0.1:${this.#broker.ports.kafka} -t ${topic} -o beginning -f %o,`.split(
        " ",
      ),
      cores: this.#context.cores.load,
    });
    this.#workspace.keep(reader);
    while (!reader.hasExited()) await sleep(20);
    const output = reader.readOutput();
    if (/ERROR/i.test(output)) throw new Error(`kcat: ${output}`);
  }

  // The figures may be a second old.
  async #readStatus(): Promise<OffloaderStatus> {
    const answer = await fetch(`${this.#url}/api/v1/admin/offloader`);
    return (await answer.json()) as OffloaderStatus;
  }

  async #post(path: string, body: object): Promise<void> {
    const answer = await fetch(this.#url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
  }
}

async function inLanes<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const lane = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

async function time(work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

function rate(bytes: number, ms: number): number {
  return bytes / MIB / (ms / 1_000);
}
