// The plans of all statements that replication runs for a version: none reads through a table, or sorts what an index has in order.
// A statement that does costs as much as there are versions, which no test with few of them notices.
import assert from "node:assert/strict";
import { join } from "node:path";
import type { StatementSync } from "node:sqlite";
import { test } from "node:test";
import { encodeKey } from "../../src/index/records.ts";
import { IndexConnection, openIndexWriter } from "../../src/index/schema.ts";
import type { ReplicationSettings } from "../../src/model/replication.ts";
import type { ObjectService, ServiceEnvironment } from "../../src/store/object-service.ts";
import { ReplicationService } from "../../src/store/replication-service.ts";
import {
  findDueTasks,
  findFirstTasks,
  findNextRule,
  findWaitingTask,
  type Task,
} from "../../src/task/due-tasks.ts";
import { applyOperation, type Operation } from "../../src/transaction/operations.ts";
import { WriterContext } from "../../src/transaction/writer-context.ts";
import { makeFolder } from "../store/fixture.ts";

const BUCKET = "letters";
const RULE = "all";
const KEY = "k";
const LIMITS = {
  pendingEventsMax: 100,
  bucketsMax: 10,
  partBytesMin: 1,
  logBytesMax: 2 ** 20,
};

/** Keeps the texts of statements. */
class RecordingConnection extends IndexConnection {
  readonly texts = new Set<string>();

  override sql(text: string, asArrays = false): StatementSync {
    this.texts.add(text);
    return super.sql(text, asArrays);
  }
}

class Stage {
  readonly connection: RecordingConnection;
  readonly #context: WriterContext;
  #version = 0;

  constructor(path: string) {
    this.connection = new RecordingConnection(openIndexWriter(path).database);
    this.#context = new WriterContext(this.connection, LIMITS);
    const owner = { id: "o", displayName: "o" };
    const request = { bucket: BUCKET, owner, region: "r" };
    this.apply({ type: "createBucket", request, nowMs: 1 });
    this.apply({ type: "configureBucket", bucket: BUCKET, versioning: "Enabled" });
    this.apply({
      type: "configureBucket",
      bucket: BUCKET,
      setting: { kind: "replication", document: SETTINGS },
    });
    // The statements that follow are the work for a version.
    this.connection.texts.clear();
  }

  readonly apply = (operation: Operation): unknown => applyOperation(this.#context, operation);

  put(): string {
    this.#version += 1;
    const versionId = `v${this.#version}`;
    const place = { kind: "inline", data: Buffer.from("x") } as const;
    const blob = { id: this.#version, size: 1, stored: 1, extent: 1, place };
    const object = {
      bucket: BUCKET,
      key: KEY,
      nowMs: this.#version,
      versionId,
      size: 1,
      etag: "e",
    };
    const columns = { class: "STANDARD", checksum: null, owner: null, tags: null, hold: null };
    const event = "ObjectCreated:Put";
    this.apply({
      type: "put",
      object: { ...object, ...columns, detail: "{}", event },
      content: { blob },
    });
    return versionId;
  }

  readTasks(): Task[] {
    const rule = findNextRule(this.connection, "replicate", undefined)!;
    findNextRule(this.connection, "replicate", rule);
    const tasks = findDueTasks(this.connection, "replicate", rule, 1_000, 10);
    for (const task of tasks) {
      findFirstTasks(this.connection, task, 64);
      assert.equal(findWaitingTask(this.connection, task)?.id, task.id);
    }
    return tasks;
  }
}

const SETTINGS: ReplicationSettings = {
  role: "",
  rules: [
    {
      id: RULE,
      priority: 1,
      enabled: true,
      deleteMarkers: true,
      existingObjects: false,
      replicaModifications: false,
      destination: { remote: "far", bucket: BUCKET },
      echo: {},
    },
  ],
  requester: { principals: [], address: "127.0.0.1", secure: false },
};

test("no statement of replication reads through a table or sorts", async (context) => {
  const stage = new Stage(join(makeFolder(context), "index.sqlite"));
  const { connection, apply } = stage;
  const environment = {
    now: () => 1_000,
    writer: { submit: async (operation: Operation) => apply(operation) },
    buckets: { findState: () => ({ id: 1 }) },
  } as unknown as ServiceEnvironment;
  const service = new ReplicationService(environment, {} as ObjectService, connection);
  const versions = [stage.put(), stage.put()];
  apply({ type: "delete", request: { bucket: BUCKET, key: KEY }, markerId: "m", nowMs: 9 });
  const [first, second] = stage.readTasks();
  const end = {
    type: "finishReplication",
    bucket: BUCKET,
    key: KEY,
    rule: RULE,
    nowMs: 10,
  } as const;
  const completed = { kind: "completed", version: "there", isOrderedByArrival: true } as const;
  apply({ ...end, task: first!, version: versions[0]!, outcome: completed });
  const failed = { kind: "failed", reason: "refused" } as const;
  apply({ ...end, task: second!, version: versions[1]!, outcome: failed });
  await service.retryFailed(1);
  const { tasks } = service.listWaiting(0, 1_000);
  assert.ok(tasks.length > 0);
  service.findWaiting(tasks.map(({ id }) => id));
  await service.noteLate({ bucket: BUCKET, key: KEY, version: versions[1]!, rule: RULE });
  apply({ type: "initiateReplication", bucket: BUCKET, key: KEY, version: undefined, nowMs: 11 });
  assert.ok(connection.sql("select 1 from versions where key = ?").get(encodeKey(KEY)));
  connection.texts.delete("select 1 from versions where key = ?");

  assert.ok(connection.texts.size > 20, `${connection.texts.size} statements`);
  for (const text of connection.texts) {
    const plan = connection.database.prepare(`explain query plan ${text}`).all();
    for (const { detail } of plan) {
      const step = String(detail);
      assert.doesNotMatch(step, /^SCAN (?!\(|json_each|CONSTANT|subquery)/, `${step}: ${text}`);
      // Of all tasks of a rule, those of one key, which are few; so are those of the same millisecond.
      const isOfKey = /\btasks\b.*\bkey = \?/.test(text);
      if (!isOfKey) assert.doesNotMatch(step, /TEMP B-TREE (?!FOR LAST TERM)/, `${step}: ${text}`);
      else if (step.startsWith("SEARCH")) assert.match(step, /key=\?/, `${step}: ${text}`);
    }
  }
  connection.close();
});
