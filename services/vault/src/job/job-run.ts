// Runs one job: selects objects page by page, and commits the operations on a page with its progress.
import type { Logger } from "@platform/kernel/log";
import type { Directory } from "../access/directory.ts";
import { findRequester } from "../access/stored-requester.ts";
import { JOB_BUCKET, type Owner } from "../model/bucket.ts";
import type {
  JobItem,
  JobLine,
  JobPosition,
  JobProgress,
  JobRow,
  JobSpec,
  JobState,
} from "../model/job.ts";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";
import type { Store } from "../object-store.ts";
import type { ItemPage } from "../query/list-jobs.ts";
import type { InnerOperations, Sender } from "../s3/inner-operations.ts";
import type { Submit } from "../transaction/writer.ts";
import { performItem } from "./job-calls.ts";
import { type ManifestEntry, readManifestPage } from "./manifest.ts";
import { describeReason, pause, type Run, runSteps } from "./run-steps.ts";
import { describeFailure, Step } from "./step.ts";

const ITEMS_AT_ONCE = 500;
/** Guests have few places, and each output is spooled. */
const PIPELINE_AT_ONCE = 8;
const DRY_AT_ONCE = 1_000;
const SAMPLES_MAX = 10;
/** Objects before the share of failures counts. */
const JUDGED_MIN = 1_000;
const LINE_BYTES_MAX = 1024 ** 3;
const LINES_AT_ONCE = 64;

/** Options of {@link JobRun}. */
export interface JobRunOptions {
  readonly store: Store;
  readonly operations: InnerOperations;
  readonly directory: Directory;
  readonly owner: Owner;
  readonly region: string;
  readonly log: Logger;
}

/** A page of a selection. */
interface Page {
  readonly items: readonly JobItem[];
  readonly lines: readonly JobLine[];
  readonly position: JobPosition;
  readonly isLast: boolean;
}

/** A job that runs, until it has ended, or was stopped by `signal`. */
export class JobRun implements Run {
  readonly #options: JobRunOptions;
  readonly #job: JobRow;
  readonly #spec: JobSpec;
  #sequence: number;
  readonly #signal: AbortSignal;
  #progress: JobProgress;
  #nextStepMs = 0;
  /** The next page, which is read while this one is worked on. */
  #ahead: { at: string; page: Promise<ItemPage> } | undefined;

  constructor(options: JobRunOptions, job: JobRow, spec: JobSpec, signal: AbortSignal) {
    this.#options = options;
    this.#job = job;
    this.#spec = spec;
    this.#sequence = job.sequence;
    this.#signal = signal;
    this.#progress = job.progress;
  }

  /** Changes the rate of the next steps. */
  set rate(rate: number) {
    this.#progress = { ...this.#progress, rate };
  }

  /** Works until the end. Rejects only if the store cannot be written any more. */
  async run(): Promise<void> {
    if (this.#job.state === "queued")
      ({ sequence: this.#sequence } = await this.#options.store.jobs.begin(this.#job.id));
    try {
      await runSteps(() => this.#step(), this.#signal);
    } catch (error) {
      await this.#fail(describeReason(error));
    }
  }

  // True after the last step.
  async #step(): Promise<boolean> {
    const page = await this.#select(this.#chooseSize());
    if (this.#signal.aborted) return false;
    await this.#keepRate(page.items.length);
    if (this.#signal.aborted) return false;
    await (this.#spec.isDryRun ? this.#count(page) : this.#perform(page));
    const reason = this.#findReasonToStop();
    if (reason !== undefined) {
      await this.#end("failed", reason);
      return true;
    }
    if (!page.isLast) return false;
    await this.#end("completed");
    return true;
  }

  #chooseSize(): number {
    if (this.#spec.isDryRun) return DRY_AT_ONCE;
    const { rate } = this.#progress;
    const most = this.#spec.operation === "pipeline" ? PIPELINE_AT_ONCE : ITEMS_AT_ONCE;
    return rate === 0 ? most : Math.max(1, Math.min(most, Math.ceil(rate / 4)));
  }

  // Half the rate while the writer has too much to do.
  async #keepRate(items: number): Promise<void> {
    const { jobs } = this.#options.store;
    const { rate } = this.#progress;
    const waitMs = this.#nextStepMs - performance.now();
    if (waitMs > 0) await this.#pause(waitMs);
    if (rate === 0 || this.#spec.isDryRun) return;
    const effective = jobs.isCrowded ? rate / 2 : rate;
    const from = Math.max(performance.now(), this.#nextStepMs);
    this.#nextStepMs = from + (items / effective) * 1_000;
  }

  async #select(itemsMax: number): Promise<Page> {
    const { keys, manifest } = this.#spec;
    if (keys !== undefined) return this.#selectKeys(keys, itemsMax);
    if (manifest !== undefined) return this.#selectManifest(manifest, itemsMax);
    await this.#requireListing();
    const { position: from, rate } = this.#progress;
    const at = JSON.stringify(from);
    const page = this.#ahead?.at === at ? this.#ahead.page : this.#list(from, itemsMax);
    this.#ahead = undefined;
    const { items, changed, position, isLast } = await page;
    // A slow job would find later changes in a page that it has read long before.
    if (rate === 0 && !isLast) {
      const next = this.#list(position, itemsMax);
      next.catch(() => undefined);
      this.#ahead = { at: JSON.stringify(position), page: next };
    }
    const lines = changed.map((key) =>
      describeFailure(
        key,
        undefined,
        new S3Error("OperationAborted", "The key was written after the job began."),
      ),
    );
    return { items, lines, position, isLast };
  }

  #list(position: JobPosition, itemsMax: number): Promise<ItemPage> {
    const query = { spec: this.#spec, sequence: this.#sequence, position, itemsMax };
    return this.#options.store.jobs.listItems(query, this.#spec.bucket);
  }

  async #requireListing(): Promise<void> {
    const { operations } = this.#options;
    const { bucket } = this.#spec;
    const isAllowed = await operations.isAllowed(this.#findSender(), {
      method: "GET",
      bucket,
      query: describeListing(this.#spec),
    });
    if (!isAllowed) throw new S3Error("AccessDenied", "The bucket may not be listed.");
  }

  async #selectKeys(keys: readonly string[], itemsMax: number): Promise<Page> {
    const from = this.#progress.position.listed ?? 0;
    const named = keys.slice(from, from + itemsMax);
    const found = await this.#find(named.map((key) => ({ bucket: this.#spec.bucket, key })));
    const listed = from + named.length;
    return { ...found, position: { listed }, isLast: listed >= keys.length };
  }

  async #selectManifest(
    manifest: NonNullable<JobSpec["manifest"]>,
    itemsMax: number,
  ): Promise<Page> {
    const { operations } = this.#options;
    const { offset = 0, isSkipping = false } = this.#progress.position;
    const read = async (start: number, bytes: number): Promise<Buffer> => {
      const { bucket, key, versionId, etag } = manifest;
      const call = {
        method: "GET",
        bucket,
        key,
        query: versionId === undefined || versionId === "null" ? {} : { versionId },
        fields: [
          ["range", `bytes=${start}-${start + bytes - 1}`],
          ["if-match", `"${etag ?? ""}"`],
        ] as const,
      };
      const { object } = await operations.run(this.#findSender(), call).catch((error: unknown) => {
        if (error instanceof StoreError && error.code === "InvalidRange")
          return { object: undefined };
        throw error;
      });
      const pieces: Buffer[] = [];
      for await (const chunk of object?.chunks() ?? []) pieces.push(Buffer.from(chunk));
      return Buffer.concat(pieces);
    };
    const page = await readManifestPage(read, manifest.format, { offset, isSkipping }, itemsMax);
    const found = await this.#find(page.entries);
    const position = { offset: page.offset, ...(page.isSkipping ? { isSkipping: true } : {}) };
    return { ...found, position, isLast: page.isLast };
  }

  async #find(entries: readonly ManifestEntry[]): Promise<Pick<Page, "items" | "lines">> {
    const { store } = this.#options;
    const { bucket } = this.#spec;
    const lines: JobLine[] = [];
    const found = await Promise.all(
      entries.map(async (entry) => {
        if ("fault" in entry) {
          lines.push(
            describeFailure(entry.line, undefined, new S3Error("InvalidRequest", entry.fault)),
          );
          return undefined;
        }
        const { key, version } = entry;
        if (entry.bucket !== bucket) {
          const reason = `The line names the bucket ${entry.bucket.slice(0, 63)}.`;
          lines.push(describeFailure(key, version, new S3Error("InvalidRequest", reason)));
          return undefined;
        }
        const item = await store.jobs.findItem(bucket, key, version, this.#sequence);
        if (item === undefined) {
          const fault = version === undefined ? "NoSuchKey" : "NoSuchVersion";
          lines.push(describeFailure(key, version, new S3Error(fault)));
        }
        return item;
      }),
    );
    return { items: found.filter((item) => item !== undefined), lines };
  }

  async #count({ items, lines, position }: Page): Promise<void> {
    const bytes = items.reduce((sum, item) => sum + item.bytes, 0);
    const more = items.map(({ key }) => key);
    const samples = [...this.#progress.samples, ...more].slice(0, SAMPLES_MAX);
    const { last } = this.#advance([], [], {
      lines,
      matched: items.length + lines.length,
      counted: { done: items.length, bytes },
      position,
      change: { samples },
    });
    ({ progress: this.#progress } = await last);
  }

  async #perform({ items, lines, position }: Page): Promise<void> {
    const { operations } = this.#options;
    const sender = this.#findSender();
    const step = new Step(items.length, (index, submit) =>
      performItem(operations, sender, this.#spec, items[index]!, submit),
    );
    const collected = await step.collect();
    const failed = [...step.failures].map(([index, error]) => {
      const { key, version } = items[index]!;
      return describeFailure(key, version, error);
    });
    const committed = collected.map(({ index }) => items[index]!);
    const ended = items.length - collected.length - failed.length;
    const { outcomes, last } = this.#advance(
      collected.map(({ operation }) => operation),
      committed,
      {
        lines: [...lines, ...failed],
        matched: items.length + lines.length,
        counted: { done: ended, bytes: 0 },
        position,
        change: {},
      },
    );
    last.catch(() => undefined);
    await step.settle(await outcomes);
    const { progress } = await last;
    this.#progress = { ...progress, rate: this.#progress.rate };
  }

  #advance(
    operations: Parameters<Store["jobs"]["advance"]>[0],
    items: readonly JobItem[],
    step: Pick<
      Parameters<Store["jobs"]["advance"]>[1],
      "lines" | "matched" | "counted" | "position" | "change" | "state"
    >,
  ) {
    const { id } = this.#job;
    const { reportsSuccesses } = this.#spec;
    const described = items.map(({ key, version, bytes }) => ({ key, version_id: version, bytes }));
    const { jobs } = this.#options.store;
    return jobs.advance(operations, { id, items: described, reportsSuccesses, ...step });
  }

  #findReasonToStop(): string | undefined {
    const { done, failed, lineBytes } = this.#progress;
    const { failurePercentMax } = this.#spec;
    if (lineBytes > LINE_BYTES_MAX) return "The report has more than 1 GiB.";
    const all = done + failed;
    if (all < JUDGED_MIN || (failed / all) * 100 <= failurePercentMax) return undefined;
    return `More than ${failurePercentMax} % of the objects have failed.`;
  }

  async #fail(reason: string): Promise<void> {
    this.#options.log.warn("a job has failed", { job: this.#job.id, reason });
    await this.#end("failed", reason);
  }

  // The report and the end of the job are one commit.
  async #end(state: JobState, reason?: string): Promise<void> {
    const { position } = this.#progress;
    const counted = { done: 0, bytes: 0 };
    const base = { lines: [], matched: 0, counted, position, state };
    const change = reason === undefined ? {} : { reason };
    if (this.#progress.lineBytes === 0) {
      await this.#advance([], [], { ...base, change }).last;
      return;
    }
    const report = this.#nameReport();
    const step = new Step(1, (_index, submit) => this.#writeReport(report, submit));
    const collected = await step.collect();
    const failure = step.failures.get(0);
    const operations = collected.map(({ operation }) => operation);
    const noReport = describeReason(failure);
    const outcome =
      failure === undefined
        ? { ...change, report }
        : {
            reason: `${reason ?? "The work is done."} The report could not be written: ${noReport}`,
          };
    const { outcomes, last } = this.#advance(operations, [], { ...base, change: outcome });
    last.catch(() => undefined);
    await step.settle(await outcomes);
    await last;
  }

  #nameReport(): { bucket: string; key: string } {
    const { report } = this.#spec;
    const { id } = this.#job;
    return report === undefined
      ? { bucket: JOB_BUCKET, key: `${id}.ndjson` }
      : { bucket: report.bucket, key: `${report.prefix}${id}.ndjson` };
  }

  async #writeReport(report: { bucket: string; key: string }, submit: Submit): Promise<void> {
    const { operations, store, owner } = this.#options;
    const contentLength = this.#progress.lineBytes;
    if (this.#spec.report !== undefined) {
      const body = { stream: this.#readLines(), contentLength };
      const fields: [string, string][] = [["content-type", "application/x-ndjson"]];
      await operations.run(this.#findSender(), { method: "PUT", ...report, fields, body, submit });
      return;
    }
    await this.#makeBucket();
    const headers = { contentType: "application/x-ndjson" };
    const upload = store.objects.beginPut({ ...report, contentLength, headers, owner }, { submit });
    try {
      for await (const piece of this.#readLines()) await upload.write(piece);
      await upload.commit();
    } catch (error) {
      await upload.abort();
      throw error;
    }
  }

  async *#readLines(): AsyncGenerator<Buffer, void, undefined> {
    const { jobs } = this.#options.store;
    for (let after = 0; ;) {
      const rows = await jobs.listLines(this.#job.number, after, LINES_AT_ONCE);
      for (const { lines } of rows) yield Buffer.from(lines);
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.number;
    }
  }

  async #makeBucket(): Promise<void> {
    const { store, owner, region } = this.#options;
    if (store.buckets.find(JOB_BUCKET) !== undefined) return;
    try {
      await store.buckets.create({ bucket: JOB_BUCKET, owner, region });
    } catch (error) {
      if (!(error instanceof StoreError && error.code.startsWith("BucketAlready"))) throw error;
    }
  }

  #findSender(): Sender {
    const { requester } = this.#spec;
    const callers = findRequester(requester, this.#options.directory);
    if (callers.length === 0) {
      throw new S3Error("AccessDenied", "The user of the job is disabled or was deleted.");
    }
    const { address: clientAddress, secure } = requester;
    return { callers, clientAddress, secure, host: "", isBackground: true };
  }

  async #pause(ms: number): Promise<void> {
    await pause(ms, this.#signal);
  }
}

/** The query of the listing that a job stands for. */
export function describeListing({
  versions,
  operation,
  prefix,
}: Pick<JobSpec, "versions" | "operation" | "prefix">): Record<string, string> {
  const listsVersions = versions === "all" || operation === "rewind";
  return listsVersions ? { versions: "", prefix } : { "list-type": "2", prefix };
}
