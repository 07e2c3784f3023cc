// Applies lifecycle rules, using indexes by time: objects that are not due cost nothing.
import type { BucketCatalogue } from "../store/bucket-catalogue.ts";
import type { ReaderPool } from "../query/reader-pool.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import { StoreError } from "../model/store-error.ts";
import type { Candidate, CandidateKind, CandidatePosition } from "../query/lifecycle-candidates.ts";
import { findDueBefore, matchesFilter } from "../model/lifecycle-rule.ts";
import type { LifecycleRule } from "../model/lifecycle.ts";

/** Options of the engine. */
export interface LifecycleEngineOptions {
  buckets: BucketCatalogue;
  readers: ReaderPool;
  writer: IndexWriter;
  now: () => number;
  takeVersionId: () => string;
}

/** The result of a round. */
export interface LifecycleReport {
  expired: number;
  aborted: number;
}

/** The progress of a round. */
export interface LifecycleProgress {
  bucketsDone: number;
  bucketsTotal: number;
}

/** One action of a rule. */
interface Action {
  kind: CandidateKind;
  beforeMs: number;
  isDue: (candidate: Candidate) => boolean;
}

const PAGE = 500;
const ANSWER_KEPT_MS = 24 * 3_600_000;

/** Applies the rules of all buckets and yields between pages. */
export class LifecycleEngine {
  readonly #env: LifecycleEngineOptions;
  #progress: LifecycleProgress = { bucketsDone: 0, bucketsTotal: 0 };

  constructor(environment: LifecycleEngineOptions) {
    this.#env = environment;
  }

  /** Of the running round. */
  get progress(): LifecycleProgress {
    return this.#progress;
  }

  /** Runs a round; one at a time. Failed actions are still due in the next one. */
  async run(signal: AbortSignal): Promise<LifecycleReport> {
    const report = { expired: 0, aborted: 0 };
    const buckets = this.#env.buckets.list();
    this.#progress = { bucketsDone: 0, bucketsTotal: buckets.length };
    await this.#forgetAnswers(signal);
    for (const bucket of buckets) {
      for (const rule of bucket.settings.lifecycle?.rules ?? []) {
        if (!rule.enabled) continue;
        for (const action of buildActions(rule, this.#env.now())) {
          await this.#perform(bucket.name, action, report, signal);
        }
      }
      if (signal.aborted) break;
      this.#progress.bucketsDone += 1;
    }
    return report;
  }

  async #forgetAnswers(signal: AbortSignal): Promise<void> {
    const beforeMs = this.#env.now() - ANSWER_KEPT_MS;
    let forgotten = 1;
    while (forgotten > 0 && !signal.aborted) {
      ({ forgotten } = await this.#env.writer.submit({ type: "forgetUploads", beforeMs }));
    }
  }

  async #perform(
    bucket: string,
    action: Action,
    report: LifecycleReport,
    signal: AbortSignal,
  ): Promise<void> {
    let after: CandidatePosition | undefined;
    for (;;) {
      const state = this.#env.buckets.findState(bucket);
      if (state === undefined || signal.aborted) return;
      const page = await this.#env.readers.query("listCandidates", {
        kind: action.kind,
        bucketId: state.id,
        beforeMs: action.beforeMs,
        max: PAGE,
        ...(after === undefined ? {} : { after }),
      });
      const due = page.filter(action.isDue);
      const done = await Promise.all(
        due.map((candidate) => this.#remove(bucket, action, candidate)),
      );
      const count = done.filter(Boolean).length;
      if (action.kind === "upload") report.aborted += count;
      else report.expired += count;
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }

  // Each removal names the version that was checked: versions that changed since are left alone.
  async #remove(bucket: string, { kind }: Action, candidate: Candidate): Promise<boolean> {
    const { key, versionId, seq } = candidate;
    const { writer, now, takeVersionId } = this.#env;
    try {
      if (kind === "upload") {
        const address = { bucket, key, uploadId: versionId };
        await writer.submit({ type: "abortUpload", address });
        return true;
      }
      await writer.submit({
        type: "delete",
        request: kind === "current" ? { bucket, key } : { bucket, key, versionId },
        nowMs: now(),
        markerId: takeVersionId(),
        expectSeq: seq,
        byLifecycle: true,
      });
      return true;
    } catch (error) {
      // Locked, already deleted, or the disk is full: the next round retries.
      if (error instanceof StoreError) return false;
      throw error;
    }
  }
}

function buildActions(rule: LifecycleRule, nowMs: number): Action[] {
  const actions: Action[] = [];
  const { expiration, noncurrentVersionExpiration: noncurrent, abortIncompleteUpload } = rule;
  if (expiration !== undefined && "days" in expiration) {
    actions.push({
      kind: "current",
      beforeMs: findDueBefore(expiration.days, nowMs),
      isDue: (candidate) => matchesFilter(rule, candidate),
    });
    actions.push(removeBareMarkers(rule, findDueBefore(expiration.days, nowMs)));
  } else if (expiration !== undefined && "atMs" in expiration && nowMs >= expiration.atMs) {
    actions.push({
      kind: "current",
      beforeMs: nowMs,
      isDue: (candidate) => matchesFilter(rule, candidate),
    });
  } else if (expiration !== undefined && "expiredObjectDeleteMarker" in expiration) {
    if (expiration.expiredObjectDeleteMarker) actions.push(removeBareMarkers(rule, nowMs));
  }
  if (noncurrent !== undefined) {
    actions.push({
      kind: "noncurrent",
      beforeMs: findDueBefore(noncurrent.days, nowMs),
      isDue: (candidate) =>
        matchesFilter(rule, candidate) &&
        candidate.newerVersions >= (noncurrent.newerVersionsKept ?? 0),
    });
  }
  if (abortIncompleteUpload !== undefined) {
    const prefix = rule.filter.prefix ?? "";
    actions.push({
      kind: "upload",
      beforeMs: findDueBefore(abortIncompleteUpload.days, nowMs),
      isDue: ({ key }) => key.startsWith(prefix),
    });
  }
  return actions;
}

// A delete marker without older versions is removed by a rule for markers, and by a rule for objects once it is old enough
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html, "Expiration").
function removeBareMarkers(rule: LifecycleRule, beforeMs: number): Action {
  return {
    kind: "marker",
    beforeMs,
    isDue: (candidate) => matchesFilter(rule, candidate) && candidate.newerVersions === 0,
  };
}
