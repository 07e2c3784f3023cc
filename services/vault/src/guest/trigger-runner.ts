// Runs the tasks of triggers: the output and the end of the task are one commit.
import type { Logger } from "@platform/kernel/log";
import type { Directory } from "../access/directory.ts";
import { findRequester } from "../access/stored-requester.ts";
import { decodeKey } from "../index/records.ts";
import type { ModulePin } from "../model/guest.ts";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";
import { DeadTaskError, type TriggerRun } from "../model/task.ts";
import type { TriggerDocument, TriggerSettings } from "../model/trigger.ts";
import type { Store } from "../object-store.ts";
import type { OperationContext } from "../s3/context.ts";
import type { InnerOperations, Sender } from "../s3/inner-operations.ts";
import { requireTarget, transformTo } from "../s3/object/transform-object.ts";
import { fillTemplate } from "../s3/target-template.ts";
import type { Task } from "../task/due-tasks.ts";
import type { TaskHandler } from "../task/task-queue.ts";
import { nameTrigger } from "../transaction/fire-triggers.ts";
import type { ModuleRegistry } from "./module-registry.ts";

const STDERR_CHARACTERS_MAX = 200;
const REASON_CHARACTERS_MAX = 500;
/** The source has gone: there is nothing to run on. */
const GONE: ReadonlySet<string> = new Set([
  "NoSuchBucket",
  "NoSuchKey",
  "NoSuchVersion",
  "MethodNotAllowed",
]);

/** Options of {@link createTriggerRunner}. */
export interface TriggerRunnerOptions {
  readonly store: Store;
  readonly operations: InnerOperations;
  readonly modules: ModuleRegistry;
  readonly directory: Directory;
  readonly now: () => number;
  readonly log: Logger;
}

/** Creates the handler of `trigger`. Faults of the guest and refusals make the task dead, faults of the store are tried again. */
export function createTriggerRunner(options: TriggerRunnerOptions): TaskHandler {
  return async (task, signal) => {
    const found = findTrigger(options.store, task);
    if (found === undefined) {
      await options.store.endTask(task);
      return;
    }
    await new TriggerAttempt(options, task, found, signal).run();
  };
}

interface FoundTrigger {
  readonly bucket: string;
  readonly trigger: TriggerDocument;
  readonly settings: TriggerSettings;
}

function findTrigger(store: Store, { bucket: id, rule }: Task): FoundTrigger | undefined {
  const bucket = store.findBucketName(id);
  const settings = bucket === undefined ? undefined : store.buckets.find(bucket)?.settings.triggers;
  const trigger = settings?.triggers.find((one) => one.id === rule);
  if (bucket === undefined || settings === undefined || trigger?.enabled !== true) return undefined;
  return { bucket, trigger, settings };
}

/** One attempt of one task. */
class TriggerAttempt {
  readonly #options: TriggerRunnerOptions;
  readonly #task: Task;
  readonly #found: FoundTrigger;
  readonly #signal: AbortSignal;
  readonly #key: string;
  readonly #startedMs: number;
  readonly #begun = performance.now();
  #stderr = "";

  constructor(options: TriggerRunnerOptions, task: Task, found: FoundTrigger, signal: AbortSignal) {
    this.#options = options;
    this.#task = task;
    this.#found = found;
    this.#signal = signal;
    this.#key = decodeKey(task.key);
    this.#startedMs = options.now();
  }

  async run(): Promise<void> {
    const { store, log } = this.#options;
    try {
      await this.#transform();
    } catch (error) {
      if (this.#signal.aborted) throw error;
      const { code, status, message } = readFault(error);
      const reason = `${code}: ${message}`.slice(0, REASON_CHARACTERS_MAX);
      if (code === "OperationAborted") return;
      if (this.#isGone(error)) {
        await store.endTask(this.#task, this.#describe("skipped", 0, reason));
        return;
      }
      log.debug("a run of a trigger has failed", { trigger: this.#found.trigger.id, reason });
      if (status >= 500 && code !== "NotImplemented") throw error;
      throw new DeadTaskError(reason, this.#describe("dead", 0, reason), { cause: error });
    }
  }

  async #transform(): Promise<void> {
    const { operations } = this.#options;
    const { bucket } = this.#found;
    const { version } = this.#task;
    const query = { transform: "", ...(version === "null" ? {} : { versionId: version }) };
    const call = { method: "POST", bucket, key: this.#key, query };
    await operations.perform(this.#findSender(), call, (context) => this.#write(context));
  }

  async #write(context: OperationContext): Promise<void> {
    const { bucket, trigger } = this.#found;
    const { bucket: bucketId, version } = this.#task;
    const source = await context.api.store.objects.describe({
      bucket,
      key: this.#key,
      versionId: version,
    });
    const target = {
      bucket: trigger.target.bucket,
      key: fillTemplate(trigger.target.key, this.#key, source.versionId),
      contentType: trigger.target.content_type,
    };
    requireTarget(target, { bucket, key: this.#key });
    let bytes = 0;
    await transformTo(context, {
      pins: [this.#findModule()],
      target,
      event: "objstore:ObjectCreated",
      moreMs: trigger.timeout_ms,
      depth: (source.guest?.depth ?? 0) + 1,
      trigger: nameTrigger(bucketId, trigger.id),
      signal: this.#signal,
      onStderr: (text) => (this.#stderr = text),
      onOutput: (count) => (bytes = count),
      cause: {
        task: { id: this.#task.id, seq: this.#task.seq },
        run: () => this.#describe("done", bytes),
      },
    });
  }

  #findModule(): ModulePin {
    const { trigger, settings } = this.#found;
    return settings.pins[trigger.id] ?? this.#options.modules.pin(trigger.module);
  }

  #findSender(): Sender {
    const { requester } = this.#found.settings;
    const callers = findRequester(requester, this.#options.directory);
    if (callers.length === 0) {
      throw new S3Error("AccessDenied", "The user of the trigger is disabled or was deleted.");
    }
    const { address: clientAddress, secure } = requester;
    return { callers, clientAddress, secure, host: "", isBackground: true };
  }

  // Only if it is the source: a missing target is a fault.
  #isGone(error: unknown): boolean {
    if (!(error instanceof StoreError) || !GONE.has(error.code)) return false;
    const { bucket } = this.#found;
    const { details } = error;
    if (error.code === "NoSuchBucket") return details.bucket === bucket;
    return details.key === undefined || details.key === this.#key;
  }

  #describe(outcome: TriggerRun["outcome"], bytes: number, reason?: string): TriggerRun {
    const [line = ""] = this.#stderr.split("\n");
    return {
      trigger: this.#found.trigger.id,
      key: this.#key,
      version_id: this.#task.version,
      started_at: new Date(this.#startedMs).toISOString(),
      duration_ms: Math.round(performance.now() - this.#begun),
      bytes,
      outcome,
      ...(reason === undefined ? {} : { reason }),
      ...(line === "" ? {} : { stderr: line.slice(0, STDERR_CHARACTERS_MAX) }),
    };
  }
}

function readFault(error: unknown): { code: string; status: number; message: string } {
  if (error instanceof S3Error) return error;
  if (error instanceof StoreError) {
    const { code, message } = error;
    return { code, status: new S3Error(code).status, message };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { code: "InternalError", status: 500, message };
}
