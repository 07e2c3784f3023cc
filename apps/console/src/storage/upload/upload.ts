// One upload: a file that becomes an object, in parts that are retried and resumed one by one.
import type { Answer } from "../../contract/answer.ts";
import { signal } from "@preact/signals";
import { ApiFailure, send, sendBlob, withQuery } from "../../api/api.ts";
import { api, callService } from "../../session/session.ts";
import { toFailure } from "../../view/load.ts";
import { bucketPath, objectPath } from "../objects.ts";
import { hashMd5 } from "./md5.ts";
import { planParts, type PartRange } from "./parts.ts";
import { repeat } from "./repeat.ts";
import type { Slots } from "./slots.ts";

const PAGE_PARTS = 1_000;

/** State of an upload. */
export type UploadState =
  | { kind: "waiting" }
  /** Looks for an object of the name, or for parts of an earlier try. */
  | { kind: "checking" }
  | { kind: "sending" }
  | { kind: "paused" }
  /** The bucket has an object of the name, and keeps no versions. */
  | { kind: "exists" }
  | { kind: "failed"; failure: ApiFailure }
  | { kind: "done" }
  | { kind: "cancelled" };

/** A part and its progress. */
export interface UploadPart extends PartRange {
  sent: number;
  tries: number;
  /** Set when storage has it. */
  etag: string | undefined;
}

/** Options of {@link Upload}. */
export interface UploadOptions {
  bucket: string;
  key: string;
  file: File;
  /** Without versions an existing object is replaced only if the user says so. */
  hasVersions: boolean;
  slots: Slots;
  onDone: () => void;
}

/** An upload. */
export class Upload {
  readonly options: UploadOptions;
  readonly parts: readonly UploadPart[];
  readonly state = signal<UploadState>({ kind: "waiting" });
  #stop = new AbortController();
  #uploadId: string | undefined;
  #mayReplace: boolean;

  constructor(options: UploadOptions) {
    this.options = options;
    this.#mayReplace = options.hasVersions;
    this.parts = planParts(options.file.size).map((range) => ({
      ...range,
      sent: 0,
      tries: 0,
      etag: undefined,
    }));
  }

  /** Bytes that have left. */
  get sent(): number {
    return this.parts.reduce((sum, { sent }) => sum + sent, 0);
  }

  /** True while it works or waits for a slot. */
  get isActive(): boolean {
    return ["waiting", "checking", "sending"].includes(this.state.value.kind);
  }

  /** Starts or continues it; resolves when it has ended or needs the user. Never rejects. */
  async run(): Promise<void> {
    this.#stop = new AbortController();
    const { signal: stop } = this.#stop;
    this.state.value = { kind: "waiting" };
    try {
      await this.#send(stop);
      this.state.value = { kind: "done" };
      this.options.onDone();
    } catch (error) {
      if (stop.aborted) return;
      const failure = toFailure(error);
      const isConflict = failure.status === 412 && !this.#mayReplace;
      this.state.value = isConflict ? { kind: "exists" } : { kind: "failed", failure };
    }
  }

  /** Stops sending; what storage has is kept. */
  pause(): void {
    if (!this.isActive) return;
    this.state.value = { kind: "paused" };
    this.#stop.abort();
  }

  /** Replaces the object of the name. */
  replace(): Promise<void> {
    this.#mayReplace = true;
    return this.run();
  }

  /** Stops it for good, and deletes its parts. */
  async cancel(): Promise<void> {
    this.state.value = { kind: "cancelled" };
    this.#stop.abort();
    if (this.#uploadId === undefined) return;
    await callService("vault", this.#uploadPath(), { method: "DELETE" });
  }

  async #send(stop: AbortSignal): Promise<void> {
    const { slots } = this.options;
    const check = async (): Promise<void> => {
      this.state.value = { kind: "checking" };
      // Once all parts have arrived, the object may be this one: the answer to its completion was lost.
      const isSent = this.parts.length > 1 && this.parts.every(({ etag }) => etag !== undefined);
      if (!this.#mayReplace && !isSent && (await this.#exists(stop))) {
        throw new ApiFailure(412, { code: "precondition_failed" });
      }
      if (this.parts.length > 1) this.#uploadId ??= await this.#resume(stop);
    };
    await repeat(stop, () => slots.run(stop, check));
    this.state.value = { kind: "sending" };
    if (this.parts.length === 1) {
      await this.#sendPart(this.parts[0]!, stop, () => this.#sendWhole(stop));
      return;
    }
    await this.#sendMissing(stop);
    // Storage answers a repeated completion like the first one.
    await repeat(stop, () => this.#complete(stop));
  }

  // After a refusal no part is begun; those in flight arrive, and are not sent again by the next try.
  async #sendMissing(stop: AbortSignal): Promise<void> {
    const missing = this.parts.filter(({ etag }) => etag === undefined);
    let refusal: unknown;
    const sendOne = async (part: UploadPart): Promise<void> => {
      const once = async (): Promise<string> => {
        if (refusal !== undefined) throw refusal;
        return this.#sendRange(part, stop);
      };
      try {
        await this.#sendPart(part, stop, once);
      } catch (error) {
        refusal ??= error;
      }
    };
    await Promise.all(missing.map(sendOne));
    if (refusal !== undefined) throw refusal;
  }

  async #exists(stop: AbortSignal): Promise<boolean> {
    try {
      await this.#readEtag(stop);
      return true;
    } catch (error) {
      // The permission to write does not include that to read.
      if (error instanceof ApiFailure && [403, 404].includes(error.status)) return false;
      throw error;
    }
  }

  /** The ETag of the object that has the name now. */
  async #readEtag(stop: AbortSignal): Promise<string | undefined> {
    const { bucket, key } = this.options;
    const path = api("vault", objectPath(bucket, key));
    const { headers } = await send(path, { method: "HEAD", signal: stop });
    return headers.get("etag")?.replaceAll('"', "");
  }

  // An earlier try may have sent parts of this file, or of another one with the same name: only equal bytes are kept.
  async #resume(stop: AbortSignal): Promise<string> {
    const { bucket, key, file } = this.options;
    const path = bucketPath(bucket, "/uploads");
    const found = await callService<Answer<"vault", "GET /buckets/{bucket}/uploads">>(
      "vault",
      withQuery(path, { prefix: key, limit: 100 }),
      { signal: stop },
    ).catch((): undefined => undefined);
    const earlier = found?.items.findLast((one) => one.key === key);
    if (earlier !== undefined && (await this.#adopt(earlier.upload_id, stop))) {
      return earlier.upload_id;
    }
    const created = await callService<Answer<"vault", "POST /buckets/{bucket}/uploads">>(
      "vault",
      path,
      {
        method: "POST",
        json: { key, ...(file.type === "" ? {} : { content_type: file.type }) },
        signal: stop,
      },
    );
    return created.upload_id;
  }

  /** Takes over the parts of an upload that are parts of this file; false if there are none. */
  async #adopt(uploadId: string, stop: AbortSignal): Promise<boolean> {
    const { bucket, file } = this.options;
    const base = bucketPath(bucket, `/uploads/${encodeURIComponent(uploadId)}`);
    let after = 0;
    let isAny = false;
    for (let page = 0; page * PAGE_PARTS < this.parts.length; page += 1) {
      const found = await callService<Answer<"vault", "GET /buckets/{bucket}/uploads/{upload}">>(
        "vault",
        withQuery(base, { after }),
        { signal: stop },
      );
      for (const { part, etag, size } of found.parts) {
        const own = this.parts[part - 1];
        if (own === undefined || own.end - own.start !== size) continue;
        stop.throwIfAborted();
        if ((await hashMd5(file.slice(own.start, own.end))) !== etag) continue;
        own.etag = etag;
        own.sent = size;
        isAny = true;
      }
      if (found.next_part === null) break;
      after = found.next_part;
    }
    return isAny;
  }

  // Only this part is repeated; refusals that a repetition does not change end the upload.
  async #sendPart(part: UploadPart, stop: AbortSignal, once: () => Promise<string>): Promise<void> {
    part.tries = 0;
    part.etag = await repeat(stop, async () => {
      part.tries += 1;
      part.sent = 0;
      return this.options.slots.run(stop, once);
    }).finally(() => {
      part.sent = 0;
    });
    part.sent = part.end - part.start;
  }

  async #sendWhole(stop: AbortSignal): Promise<string> {
    const { bucket, key, file } = this.options;
    const path = withQuery(bucketPath(bucket, "/object"), { key, content_type: file.type });
    const [part] = this.parts;
    try {
      const { etag } = await sendBlob<Answer<"vault", "PUT /buckets/{bucket}/objects/{key}">>(
        api("vault", path),
        file,
        {
          headers: this.#conditions(),
          signal: stop,
          onProgress: (bytes) => (part!.sent = Math.min(bytes, file.size)),
        },
      );
      return etag;
    } catch (error) {
      const isConflict = error instanceof ApiFailure && error.status === 412;
      if (!isConflict || part!.tries === 1) throw error;
      // The object may be that of the try before, whose answer was lost.
      const etag = await hashMd5(file);
      if (etag !== (await this.#readEtag(stop))) throw error;
      return etag;
    }
  }

  async #sendRange(part: UploadPart, stop: AbortSignal): Promise<string> {
    const bytes = this.options.file.slice(part.start, part.end);
    const path = api("vault", `${this.#uploadPath()}/${part.part}`);
    const { etag } = await sendBlob<
      Answer<"vault", "PUT /buckets/{bucket}/uploads/{upload}/{part}">
    >(path, bytes, {
      signal: stop,
      onProgress: (sent) => (part.sent = Math.min(sent, bytes.size)),
    });
    return etag;
  }

  async #complete(stop: AbortSignal): Promise<void> {
    const parts = this.parts.map(({ part, etag }) => ({ part, etag }));
    await callService("vault", this.#uploadPath(), {
      method: "POST",
      json: { parts },
      headers: this.#conditions(),
      signal: stop,
    });
  }

  #conditions(): Record<string, string> {
    return this.#mayReplace ? {} : { "if-none-match": "*" };
  }

  #uploadPath(): string {
    return bucketPath(this.options.bucket, `/uploads/${encodeURIComponent(this.#uploadId ?? "")}`);
  }
}
