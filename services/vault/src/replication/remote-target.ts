// A bucket of a remote as the destination of versions. A store of this kind takes their ids and times; others give new ids, and a
// version is found again there by its metadata.
import { type S3Call, type S3Client, S3ClientError, S3Stream } from "@platform/s3";
import type { Owner } from "../model/bucket.ts";
import type { ObjectInfo } from "../model/object.ts";
import type { ReplicatedAttribute } from "../model/replication.ts";
import type { Remote } from "../remote/remote.ts";
import type { ObjectService } from "../store/object-service.ts";
import { formatTagging } from "../s3/tagging-document.ts";
import { CHECKSUM_ALGORITHMS } from "../s3/wire/checksum.ts";
import { tag, xmlDocument } from "../s3/wire/xml.ts";
import { listAclFields, listObjectFields } from "./object-fields.ts";
import {
  isSent,
  ReplicationFault,
  type ReplicationTarget,
  type SentVersion,
  toFault,
} from "./target.ts";

/** Bodies up to this size are sent from memory. */
const WHOLE_BYTES_MAX = 1024 * 1024;
const PARTS_AT_ONCE = 1_000;
/** Metadata that names the source of a replica in stores with ids of their own. */
const SOURCE = "store-source";
/** Failures of a single request, which the queue repeats. */
const ATTEMPTS = { attemptsMax: 1 } as const;

/** Options of {@link RemoteTarget}. */
export interface RemoteTargetOptions {
  readonly remote: Remote;
  readonly bucket: string;
  /** The destination takes ids and times of versions. */
  readonly takesVersions: boolean;
  readonly objects: ObjectService;
  readonly storeId: string;
  readonly owner: Owner;
  readonly now: () => number;
}

interface Found {
  readonly version: string | undefined;
}

export class RemoteTarget implements ReplicationTarget {
  readonly #options: RemoteTargetOptions;

  constructor(options: RemoteTargetOptions) {
    this.#options = options;
  }

  get isOrderedByArrival(): boolean {
    return !this.#options.takesVersions;
  }

  get #client(): S3Client {
    const { remote, bucket } = this.#options;
    return remote.client(bucket);
  }

  async send(version: SentVersion, signal: AbortSignal): Promise<string | undefined> {
    try {
      if (version.object === undefined) return await this.#sendMarker(version, signal);
      const known = version.isChecked ? await this.#find(version, signal) : undefined;
      if (known !== undefined) return known.version;
      return await this.#sendObject(version, version.object, signal);
    } catch (error) {
      // Only a store of this kind says so: the answer to an earlier attempt was lost.
      if (isThereAlready(error) && this.#options.takesVersions) return version.replicaId;
      throw toFault(error);
    }
  }

  async change(
    version: SentVersion & { readonly object: ObjectInfo },
    there: string,
    attributes: readonly ReplicatedAttribute[],
    signal: AbortSignal,
  ): Promise<void> {
    try {
      for (const attribute of attributes) {
        if (!isSent(version.rule, attribute)) continue;
        await this.#request(this.#describeChange(version, there, attribute), signal);
      }
    } catch (error) {
      throw toFault(error);
    }
  }

  async #request(call: S3Call, signal: AbortSignal) {
    return this.#client.request(call, { signal, ...ATTEMPTS, isOnce: this.isOrderedByArrival });
  }

  #nameSource(version: SentVersion): string {
    return `${this.#options.storeId}/${version.replicaId}`;
  }

  #listSourceFields(version: SentVersion): Record<string, string> {
    if (!this.#options.takesVersions)
      return version.object === undefined
        ? {}
        : { [`x-amz-meta-${SOURCE}`]: this.#nameSource(version) };
    const geo = version.object?.geo;
    return {
      "x-store-source-version-id": version.replicaId,
      "x-store-source-modified": new Date(version.modifiedMs).toISOString(),
      ...(geo === undefined
        ? {}
        : { "x-store-source-geo": Buffer.from(JSON.stringify(geo)).toString("base64") }),
    };
  }

  // The id of a version that is there already.
  async #find(version: SentVersion, signal: AbortSignal): Promise<Found | undefined> {
    const { key, replicaId } = version;
    const { takesVersions } = this.#options;
    const query = takesVersions ? [["versionId", replicaId] as const] : [];
    const { status, headers } = await this.#head(key, query, signal);
    if (status === 404) return undefined;
    if (takesVersions) return { version: replicaId };
    const isThere = headers[`x-amz-meta-${SOURCE}`] === this.#nameSource(version);
    return isThere ? { version: readVersion(headers["x-amz-version-id"]) } : undefined;
  }

  // A bucket that is missing is 404 as well: then the next request says so.
  async #head(key: string, query: S3Call["query"] & object, signal: AbortSignal) {
    const call = { operation: "head", method: "HEAD", key, query } as const;
    const answer = await this.#client.open(call, { signal });
    answer.close();
    const { status } = answer;
    if (status === 200 || status === 404) return answer;
    const kind = status >= 500 ? "outage" : "refused";
    throw new ReplicationFault(`the store answered ${status} to HEAD`, kind);
  }

  async #sendMarker(version: SentVersion, signal: AbortSignal): Promise<string | undefined> {
    const { key } = version;
    if (!this.#options.takesVersions && (await this.#isDeleted(key, signal))) return undefined;
    const headers = this.#listSourceFields(version);
    const reply = await this.#request(
      { operation: "delete", method: "DELETE", key, headers },
      signal,
    );
    return readVersion(reply.headers["x-amz-version-id"]);
  }

  // A second marker would be one more each time that an answer is lost.
  async #isDeleted(key: string, signal: AbortSignal): Promise<boolean> {
    const { status, headers } = await this.#head(key, [], signal);
    return status === 404 && headers["x-amz-delete-marker"] === "true";
  }

  async #sendObject(
    version: SentVersion,
    object: ObjectInfo,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { owner, now } = this.#options;
    const headers = {
      ...listObjectFields(object, version.rule.destination, owner, now()),
      ...this.#listSourceFields(version),
    };
    const written =
      object.partsCount === undefined
        ? await this.#put(object, headers, signal)
        : await this.#putParts(object, headers, signal);
    return written;
  }

  async #put(
    object: ObjectInfo,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { checksum } = object;
    if (checksum?.type === "FULL_OBJECT")
      headers[CHECKSUM_ALGORITHMS[checksum.algorithm].field] = checksum.value;
    const body = await this.#open(object, undefined);
    const options = { headers, signal, ...ATTEMPTS, isOnce: this.isOrderedByArrival };
    const { versionId } = await this.#client.put(object.key, body, options);
    return versionId;
  }

  // With the same parts, the replica has the same entity tag and the same checksum.
  async #putParts(
    object: ObjectInfo,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { key, checksum } = object;
    const options = { signal, ...ATTEMPTS };
    if (checksum !== undefined) {
      headers["x-amz-checksum-algorithm"] = checksum.algorithm;
      headers["x-amz-checksum-type"] = checksum.type;
    }
    const client = this.#client;
    const uploadId = await client.createUpload(key, { ...options, headers });
    try {
      const etags: string[] = [];
      const numbers: number[] = [];
      for await (const partNumber of this.#listParts(object)) {
        const body = await this.#open(object, partNumber);
        etags.push(await client.uploadPart(key, uploadId, partNumber, body, options));
        numbers.push(partNumber);
      }
      const { versionId } = await client.completeUpload(key, uploadId, etags, options, numbers);
      return versionId;
    } catch (error) {
      await client.abortUpload(key, uploadId, ATTEMPTS).catch(() => undefined);
      throw error;
    }
  }

  async *#listParts({ bucket, key, versionId }: ObjectInfo): AsyncGenerator<number> {
    const { objects } = this.#options;
    for (let after = 0; ;) {
      const page = { afterPartNumber: after, maxParts: PARTS_AT_ONCE };
      const { parts, isTruncated } = await objects.listParts({ bucket, key, versionId }, page);
      for (const { partNumber } of parts) yield partNumber;
      const last = parts.at(-1);
      if (!isTruncated || last === undefined) return;
      after = last.partNumber;
    }
  }

  async #open(
    { bucket, key, versionId }: ObjectInfo,
    partNumber: number | undefined,
  ): Promise<Uint8Array | S3Stream> {
    const part = partNumber === undefined ? {} : { partNumber };
    const { body, contentLength } = await this.#options.objects.get({
      bucket,
      key,
      versionId,
      ...part,
    });
    if (contentLength > WHOLE_BYTES_MAX) return new S3Stream(contentLength, body.chunks());
    if (body.whole !== undefined) {
      body.close();
      return body.whole;
    }
    const pieces: Buffer[] = [];
    for await (const chunk of body.chunks()) pieces.push(Buffer.from(chunk));
    return Buffer.concat(pieces);
  }

  #describeChange(
    version: SentVersion & { readonly object: ObjectInfo },
    there: string,
    attribute: ReplicatedAttribute,
  ): S3Call {
    const { key, object } = version;
    const source = this.#options.takesVersions ? this.#listSourceFields(version) : {};
    const call = (name: string, text: string, headers: Record<string, string> = {}): S3Call => ({
      operation: "change",
      method: "PUT",
      key,
      query: [
        [name, ""],
        ["versionId", there],
      ],
      headers: { "content-type": "application/xml", ...source, ...headers },
      body: Buffer.from(text),
    });
    switch (attribute) {
      case "tags":
        return call("tagging", formatTagging(object.tags));
      case "acl":
        return call("acl", "", listAclFields(object.acl ?? { grants: [] }, this.#options.owner));
      case "retention": {
        const { mode, untilMs = 0 } = object.retention ?? {};
        const until = new Date(untilMs).toISOString();
        const inner = mode === undefined ? "" : tag("Mode", mode) + tag("RetainUntilDate", until);
        const bypass = { "x-amz-bypass-governance-retention": "true" };
        return call("retention", xmlDocument("Retention", inner), bypass);
      }
      case "legalHold": {
        const status = object.legalHold === true ? "ON" : "OFF";
        return call("legal-hold", xmlDocument("LegalHold", tag("Status", status)));
      }
      default:
        return attribute satisfies never;
    }
  }
}

function readVersion(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && header !== "null" ? header : undefined;
}

function isThereAlready(error: unknown): boolean {
  return error instanceof S3ClientError && error.serverCode === "OperationAborted";
}
