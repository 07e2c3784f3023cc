// Copies between buckets here and federated ones, and between those of different remotes: bytes pass through this store.
import { type S3Call, type S3OpenAnswer, S3Stream } from "@platform/s3";
import type { FederationRule } from "../model/federation.ts";
import { findGeoRefusal } from "../model/geo.ts";
import type { ObjectInfo, PutRequest, Upload } from "../model/object.ts";
import { S3Error } from "../model/s3-error.ts";
import type { Store } from "../object-store.ts";
import { answerXml, type Header, type S3Answer } from "../s3/answer.ts";
import { checkKeyUse, requirePermission } from "../s3/authorization.ts";
import { getActor, getBucket, type OperationContext } from "../s3/context.ts";
import { getVersionHeaders } from "../s3/object/address.ts";
import { readAttributes } from "../s3/object/attributes-in.ts";
import { readWriteConditions } from "../s3/object/conditions.ts";
import { readCopySource, toCopyError } from "../s3/object/copy-source.ts";
import { getEncryptionHeaders } from "../s3/object/encryption.ts";
import { listContentFields } from "../s3/object/object-headers.ts";
import { formatTagQuery, OBJECT_TAGS_MAX, parseTagging } from "../s3/tagging-document.ts";
import { parseCopySource } from "../s3/wire/copy-source.ts";
import { RequestFields } from "../s3/wire/fields.ts";
import { tag, xmlDocument } from "../s3/wire/xml.ts";
import type { Forwarder } from "./forwarder.ts";
import { listSentFields } from "./passed-fields.ts";

const SOURCE = "x-amz-copy-source";
/** Fields of a source that follow a copy, unless the request replaces them. */
const FOLLOWING =
  /^(?:cache-control|content-(?:type|disposition|encoding|language)|expires|x-amz-meta-.+|x-amz-website-redirect-location)$/;

/** An open source. */
interface OpenSource {
  readonly length: number;
  readonly chunks: () => AsyncIterable<Uint8Array>;
  readonly close: () => void;
  /** Headers that describe it. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly tags: () => Promise<Readonly<Record<string, string>>>;
  readonly versionId: string | undefined;
}

export class FederatedCopies {
  readonly #store: Store;
  readonly #forwarder: Forwarder;

  constructor(store: Store, forwarder: Forwarder) {
    this.#store = store;
    this.#forwarder = forwarder;
  }

  /** Copies into a federated bucket, from one here (`from` is undefined), from one of the same remote, or from another. */
  async copyOut(
    context: OperationContext,
    rule: FederationRule,
    from: FederationRule | undefined,
  ): Promise<S3Answer> {
    if (from !== undefined) await requireFarRead(context);
    if (from?.remote === rule.remote)
      return this.#forwarder.forward(context, rule, Buffer.alloc(0));
    const source =
      from === undefined
        ? await this.#openLocal(context, rule)
        : await this.#openFar(context, from);
    const remote = this.#forwarder.requireRemote(rule);
    const isPart = context.operation.name === "UploadPartCopy";
    const call: S3Call = {
      operation: "forward",
      method: "PUT",
      key: context.key,
      query: isPart
        ? ["uploadId", "partNumber"].map((name) => [name, context.query.get(name) ?? ""] as const)
        : [],
      headers: {
        ...(isPart ? {} : await describeTarget(context, source)),
        "x-store-hops": this.#forwarder.nameHops(context),
      },
      body: new S3Stream(source.length, source.chunks()),
    };
    const signal = context.request.watchClient();
    const answer = await this.#forwarder.send(remote, context.bucketName, call, signal);
    source.close();
    answer.close();
    if (answer.status >= 300)
      throw new S3Error(
        "ServiceUnavailable",
        `The remote ${rule.remote} refuses the copy (${answer.status}).`,
      );
    return describeCopy(isPart, {
      etag: readHeader(answer, "etag")?.replaceAll('"', "") ?? "",
      headers: ["x-amz-version-id"].flatMap((name): Header[] => {
        const value = readHeader(answer, name);
        return value === undefined ? [] : [[name, value]];
      }),
      modifiedMs: context.api.clock.now(),
    });
  }

  /** Copies from a federated bucket into one here. */
  async copyIn(context: OperationContext, from: FederationRule): Promise<S3Answer> {
    await requireFarRead(context);
    const source = await this.#openFar(context, from);
    try {
      return context.operation.name === "UploadPartCopy"
        ? await copyPartIn(context, source)
        : await copyObjectIn(context, source);
    } finally {
      source.close();
    }
  }

  async #openLocal(context: OperationContext, rule: FederationRule): Promise<OpenSource> {
    const { fields } = context;
    const { conditions, customerKey, ...address } = await readCopySource(context);
    const info = await this.#store.objects.describe(address).catch(async (error: unknown) => {
      throw await toCopyError(context, error);
    });
    this.#requireRegion(rule, info);
    const range = parseRange(fields.get(`${SOURCE}-range`));
    const request = {
      ...address,
      ...(conditions === undefined ? {} : { conditions }),
      ...(customerKey === undefined ? {} : { customerKey }),
      ...(range === undefined ? {} : { range }),
    };
    const { object, body, contentLength } = await this.#store.objects
      .get(request)
      .catch(async (error: unknown) => {
        throw await toCopyError(context, error);
      });
    return {
      length: contentLength,
      chunks: () => body.chunks(),
      close: () => body.close(),
      fields: listContentFields(object),
      tags: async () => {
        if (Object.keys(object.tags).length > 0) await requireTagRead(context, address.bucket);
        return object.tags;
      },
      versionId: object.versionId,
    };
  }

  #requireRegion(rule: FederationRule, { bucket, geo }: ObjectInfo): void {
    const { region } = this.#forwarder.requireRemote(rule).settings;
    const placement = this.#store.buckets.find(bucket)?.settings.geoPlacement;
    const refusal = findGeoRefusal(geo, placement, { exit: "federation", region });
    if (refusal !== undefined) throw new S3Error("AccessDenied", refusal);
  }

  async #openFar(context: OperationContext, rule: FederationRule): Promise<OpenSource> {
    const { fields, request } = context;
    const { bucketName, key, versionId } = requireSource(context);
    const remote = this.#forwarder.requireRemote(rule);
    const query = versionId === undefined ? [] : [["versionId", versionId] as const];
    const hops = { "x-store-hops": this.#forwarder.nameHops(context) };
    const headers: Record<string, string> = { ...hops };
    for (const name of [
      "if-match",
      "if-none-match",
      "if-modified-since",
      "if-unmodified-since",
      "range",
    ]) {
      const value = fields.getFilled(`${SOURCE}-${name}`);
      if (value !== undefined) headers[name] = value;
    }
    const call = { operation: "forward", method: "GET", key, query, headers } as const;
    const signal = request.watchClient();
    const answer = await this.#forwarder.send(remote, bucketName, call, signal);
    if (answer.status >= 300) {
      answer.close();
      throw toSourceError(answer.status, rule.remote);
    }
    const length = Number(readHeader(answer, "content-length") ?? Number.NaN);
    if (!Number.isSafeInteger(length)) {
      answer.close();
      throw new S3Error(
        "ServiceUnavailable",
        `The remote ${rule.remote} does not say how long it is.`,
      );
    }
    const entries = Object.entries(answer.headers).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value] as const] : [],
    );
    return {
      length,
      chunks: () => answer.chunks(),
      close: () => answer.close(),
      fields: entries.filter(([name]) => FOLLOWING.test(name)),
      tags: async () => {
        if (Number(readHeader(answer, "x-amz-tagging-count") ?? 0) === 0) return {};
        await requireTagRead(context, bucketName);
        const tagging = [["tagging", ""] as const, ...query];
        const { text } = await remote
          .forwarder(bucketName)
          .request({ operation: "forward", method: "GET", key, query: tagging, headers: hops });
        return parseTagging(Buffer.from(text), OBJECT_TAGS_MAX);
      },
      versionId: readHeader(answer, "x-amz-version-id"),
    };
  }
}

async function copyPartIn(context: OperationContext, source: OpenSource): Promise<S3Answer> {
  const { api, bucketName: bucket, key, query, tenant } = context;
  const upload = api.store.uploads.beginPart({
    bucket,
    key,
    contentLength: source.length,
    tenant,
    uploadId: query.get("uploadId") ?? "",
    partNumber: Number(query.get("partNumber")),
    checkKey: checkKeyUse(context, "kms:GenerateDataKey"),
  });
  const { etag, encryption, modifiedMs } = await write(source, upload);
  return describeCopy(true, { etag, headers: getEncryptionHeaders(encryption), modifiedMs });
}

async function copyObjectIn(context: OperationContext, source: OpenSource): Promise<S3Answer> {
  const { api, fields, bucketName: bucket, key, tenant, submit } = context;
  const conditions = readWriteConditions(fields);
  const put: PutRequest = {
    ...(await readCopied(context, source)),
    bucket,
    key,
    contentLength: source.length,
    tenant,
    checksum: "CRC64NVME",
    event: "ObjectCreated:Copy",
    actor: getActor(context),
    ...(conditions === undefined ? {} : { conditions }),
  };
  const upload = api.store.objects.beginPut(put, submit === undefined ? {} : { submit });
  const { etag, encryption, modifiedMs, versionId } = await write(source, upload);
  const headers = [...getVersionHeaders(context, versionId), ...getEncryptionHeaders(encryption)];
  if (source.versionId !== undefined)
    headers.push(["x-amz-copy-source-version-id", source.versionId]);
  return describeCopy(false, { etag, headers, modifiedMs });
}

async function write<Result>(source: OpenSource, upload: Upload<Result>): Promise<Result> {
  try {
    for await (const chunk of source.chunks()) await upload.write(chunk);
    return await upload.commit();
  } catch (error) {
    await upload.abort();
    throw error;
  }
}

function readHeader({ headers }: S3OpenAnswer, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

function requireSource({ fields }: OperationContext) {
  const source = parseCopySource(fields.get(SOURCE) ?? "");
  if (source === undefined) throw new S3Error("InvalidArgument", "The copy source is not valid.");
  return source;
}

// Only the policies of the caller count.
async function requireFarRead(context: OperationContext): Promise<void> {
  const { bucketName, key, versionId } = requireSource(context);
  const action = versionId === undefined ? "s3:GetObject" : "s3:GetObjectVersion";
  await requirePermission(context, { bucket: undefined, bucketName, key, versionId, action });
}

async function requireTagRead(context: OperationContext, bucketName: string): Promise<void> {
  const { key, versionId } = requireSource(context);
  const bucket = context.api.store.buckets.find(bucketName);
  const action = versionId === undefined ? "s3:GetObjectTagging" : "s3:GetObjectVersionTagging";
  await requirePermission(context, { bucket, bucketName, key, versionId, action });
}

// The fields of the target: its own, and those of the source unless they are replaced.
async function describeTarget(
  context: OperationContext,
  source: OpenSource,
): Promise<Record<string, string>> {
  const { fields } = context;
  const own = Object.entries(listSentFields(fields)).filter(
    ([name]) => !name.startsWith(SOURCE) && !name.endsWith("-directive"),
  );
  const isReplaced = fields.get("x-amz-metadata-directive") === "REPLACE";
  const kept = isReplaced ? own : own.filter(([name]) => !FOLLOWING.test(name));
  const followed = isReplaced ? [] : source.fields;
  const target = Object.fromEntries([...followed, ...kept]) as Record<string, string>;
  if (fields.get("x-amz-tagging-directive") !== "REPLACE") {
    delete target["x-amz-tagging"];
    const tagging = formatTagQuery(await source.tags());
    if (tagging !== "") target["x-amz-tagging"] = tagging;
  }
  return target;
}

async function readCopied(context: OperationContext, source: OpenSource) {
  const { fields } = context;
  const attributes = await readAttributes(context);
  if (fields.get("x-amz-metadata-directive") !== "REPLACE") {
    const { headers, metadata } = await readAttributes(context, new RequestFields(source.fields));
    attributes.headers = headers ?? {};
    attributes.metadata = metadata ?? {};
  }
  if (fields.get("x-amz-tagging-directive") !== "REPLACE") {
    delete attributes.tags;
    const tags = await source.tags();
    const { bucketName, key } = context;
    if (Object.keys(tags).length > 0) {
      const action = "s3:PutObjectTagging";
      await requirePermission(context, { action, bucket: getBucket(context), bucketName, key });
      attributes.tags = tags;
    }
  }
  return attributes;
}

function parseRange(text: string | undefined): { start: number; end: number } | undefined {
  if (text === undefined) return undefined;
  const match = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(text);
  if (match === null) throw new S3Error("InvalidArgument", "The range of the source is not valid.");
  return { start: Number(match[1]), end: Number(match[2]) };
}

function toSourceError(status: number, remote: string): S3Error {
  switch (status) {
    case 404:
      return new S3Error("NoSuchKey");
    case 304:
    case 412:
      return new S3Error("PreconditionFailed");
    case 416:
      return new S3Error("InvalidRange");
    case 403:
      return new S3Error("AccessDenied", `The remote ${remote} refuses to read the source.`);
    default:
      return new S3Error("ServiceUnavailable", `The remote ${remote} answers ${status}.`);
  }
}

function describeCopy(
  isPart: boolean,
  { etag, headers, modifiedMs }: { etag: string; headers: readonly Header[]; modifiedMs: number },
): S3Answer {
  const inner = tag("ETag", `"${etag}"`) + tag("LastModified", new Date(modifiedMs).toISOString());
  return answerXml(xmlDocument(isPart ? "CopyPartResult" : "CopyObjectResult", inner), headers);
}
