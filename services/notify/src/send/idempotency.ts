// Idempotency keys: a repeated request gets the first answer for 24 hours.
import { createHash } from "node:crypto";
import { isUniqueViolation } from "@platform/kernel/db";
import { PlatformError, isErrorCode } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { IdempotencyRow, MessageRow } from "../database/message.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import type { SendAnswer } from "./answer.ts";
import type { ResendRequest, SendRequest, TemplateRequest } from "./request.ts";

const RETENTION_MS = 24 * 3_600_000;

/** The key of a request, its owner, and the hash by which a repetition is recognized. */
export interface UsedKey {
  client: string;
  key: string;
  hash: string;
}

/** Used keys. Only requests that were stored use up their key; invalid ones may be corrected and repeated. */
export class Idempotency {
  readonly #database: NotifyDatabase;
  readonly #clock: Clock;

  constructor(database: NotifyDatabase, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Returns the first answer to a key, or sends the message and keeps its answer. `send` stores the row of the key. */
  async run({ client, key, hash }: UsedKey, send: () => Promise<SendAnswer>): Promise<SendAnswer> {
    const known = await this.#find(client, key, hash);
    if (known !== undefined) return known;
    try {
      const answer = await send();
      await this.#save(client, key, answer.status, answer.body);
      return answer;
    } catch (error) {
      if (isUniqueViolation(error)) {
        const first = await this.#find(client, key, hash);
        if (first !== undefined) return first;
      }
      if (error instanceof PlatformError) {
        const { code, detail, fields } = error;
        await this.#save(client, key, error.status, { code, detail, fields });
      }
      throw error;
    }
  }

  /** Deletes expired keys. */
  async sweep(): Promise<void> {
    await this.#database.db
      .deleteFrom("notify_idempotency")
      .where("created_at", "<=", this.#clock.now() - RETENTION_MS)
      .execute();
  }

  // Throws the error of the first request; undefined if the key is new. Throws `conflict` if the key was used with another
  // request.
  async #find(client: string, key: string, hash: string): Promise<SendAnswer | undefined> {
    const row = await this.#database.db
      .selectFrom("notify_idempotency")
      .selectAll()
      .where("client", "=", client)
      .where("key", "=", key)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    if (row.created_at <= this.#clock.now() - RETENTION_MS) {
      await this.sweep();
      return undefined;
    }
    if (row.request_hash !== hash) {
      throw new PlatformError("conflict", "The Idempotency-Key was used with another request.");
    }
    return toAnswer(row);
  }

  async #save(client: string, key: string, status: number, answer: object): Promise<void> {
    await this.#database.db
      .updateTable("notify_idempotency")
      .set({ status, answer: JSON.stringify(answer) })
      .where("client", "=", client)
      .where("key", "=", key)
      .where("status", "is", null)
      .execute();
  }
}

/** Returns the hash by which a repeated request is recognized. */
export function hashRequest(
  request: SendRequest | TemplateRequest | (ResendRequest & { resent_from: string }),
): string {
  return createHash("sha256").update(JSON.stringify(request)).digest("hex");
}

/** Returns the row of a key that a message uses. */
export function toIdempotencyRow(
  { id, created_at }: MessageRow,
  { client, key, hash }: UsedKey,
): IdempotencyRow {
  return {
    client,
    key,
    request_hash: hash,
    message_id: id,
    status: null,
    answer: null,
    created_at,
  };
}

// Without a recorded answer the first request is in progress, or its process ended: the message is in the queue.
function toAnswer({ status, answer, message_id }: IdempotencyRow): SendAnswer {
  if (status === null || answer === null) {
    return { status: 202, body: { status: "queued", message_id } };
  }
  const body: unknown = JSON.parse(answer);
  if (status === 200 || status === 202) return { status, body: body as SendAnswer["body"] };
  const { code, detail, fields } = body as {
    code: string;
    detail: string;
    fields: Record<string, unknown>;
  };
  throw new PlatformError(isErrorCode(code) ? code : "internal", detail, { fields });
}
