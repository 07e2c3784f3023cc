// TransformObject: guests read an object, and their output is the answer or a new object.
import { GuestError, type GuestErrorCode, type GuestRun } from "@platform/wasm/stream";
import { type ModulePin, nameModules } from "../../model/guest.ts";
import type { Bucket } from "../../model/bucket.ts";
import type {
  EncryptionRequest,
  GetRequest,
  ObjectBody,
  ObjectInfo,
  OpenObject,
  PutResult,
  WriteConditions,
} from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { PutCause } from "../../store/object-service.ts";
import type { S3Answer } from "../answer.ts";
import { checkKeyUse, hideMissing, requirePermission } from "../authorization.ts";
import { getActor, getOwner, type OperationContext, type OperationHandler } from "../context.ts";
import { answerJson } from "../json-document.ts";
import { receiveDocument } from "../payload.ts";
import { getAddress } from "./address.ts";
import { readConditions, readWriteConditions } from "./conditions.ts";
import { readCustomerKey, refuseWriteEncryption } from "./encryption.ts";
import { toCopyError } from "./copy-source.ts";

const CONTENT_TYPE = "application/octet-stream";
const EVENT = "ObjectTransform";
const KEY_BYTES_MAX = 1_024;

/** `POST ?transform&module=M&target-key=K`; without a target the output is the answer. */
export const transformObject: OperationHandler = async (context) => {
  const { query, fields, bucketName, key } = context;
  const body = await receiveDocument(context, { bytesMax: 0 });
  if (body.length > 0) throw new S3Error("InvalidRequest", "The request has no body.");
  refuseWriteEncryption(fields);
  const pins = context.api.guests.pin(readModules(context));
  const targetKey = query.get("target-key");
  if (targetKey === undefined) return answerOutput(context, pins);
  const target = { bucket: query.get("target-bucket") ?? bucketName, key: targetKey };
  requireTarget(target, { bucket: bucketName, key });
  const conditions = readWriteConditions(fields);
  const begunMs = performance.now();
  const { result, bytes } = await transformTo(context, {
    pins,
    target: { ...target, ...(conditions === undefined ? {} : { conditions }) },
    event: EVENT,
    depth: 0,
  });
  return answerJson({
    key: target.key,
    version_id: result.versionId,
    etag: result.etag,
    bytes,
    duration_ms: Math.round(performance.now() - begunMs),
  });
};

function readModules({ query, bucket }: OperationContext): string[] {
  const named = query.get("module");
  const references =
    named === undefined
      ? [...(bucket?.settings.triggers?.default_modules ?? [])]
      : named.split(",").map((one) => one.trim());
  // The error lists the registered ones.
  return references.length === 0 ? [""] : references;
}

/** Throws InvalidArgument or KeyTooLongError unless the target can be the key of another object than its source. */
export function requireTarget(
  target: { bucket: string; key: string },
  source: { bucket: string; key: string },
): void {
  if (target.key === "") throw new S3Error("InvalidArgument", "The key of the target is empty.");
  if (Buffer.byteLength(target.key) > KEY_BYTES_MAX) throw new S3Error("KeyTooLongError");
  if (target.bucket === source.bucket && target.key === source.key) {
    throw new S3Error("InvalidArgument", "The target is the object itself.");
  }
}

/** A transformation into a new object. */
export interface Transformation {
  readonly pins: readonly ModulePin[];
  readonly target: {
    readonly bucket: string;
    readonly key: string;
    readonly contentType?: string | undefined;
    readonly conditions?: WriteConditions;
  };
  /** Name of the event, for the guest. */
  readonly event: string;
  /** Added to the wall time. */
  readonly moreMs?: number | undefined;
  /** Of the output. */
  readonly depth: number;
  readonly trigger?: string;
  /** Commits the output with other work. Its `run` is called when the output is complete. */
  readonly cause?: PutCause;
  readonly signal?: AbortSignal;
  /** Called with the beginning of standard error, also after a failure. */
  readonly onStderr?: (text: string) => void;
  /** Called with the size of the output before it is stored. */
  readonly onOutput?: (bytes: number) => void;
}

/** Runs guests on the object of a request that is authorized to read it. Nothing appears under the target before they have ended. */
export async function transformTo(
  context: OperationContext,
  transformation: Transformation,
): Promise<{ result: PutResult; bytes: number; source: ObjectInfo }> {
  const { api } = context;
  const { target, pins, cause = {} } = transformation;
  const bucket = api.store.buckets.require(target.bucket);
  await requirePermission(context, {
    action: "s3:PutObject",
    bucket,
    bucketName: target.bucket,
    key: target.key,
    acl: { of: "bucket", permission: "WRITE" },
  });
  const source = await openSource(context);
  const { object } = source;
  const encryption = chooseEncryption(context, object, bucket);
  const run = await startRun(context, transformation, source);
  const spool = api.store.objects.openSpool();
  try {
    await fill(spool, run);
    transformation.onStderr?.(run.stderr);
    transformation.onOutput?.(spool.bytes);
    const upload = api.store.objects.beginPut(
      {
        bucket: target.bucket,
        key: target.key,
        contentLength: spool.bytes,
        checksum: "CRC64NVME",
        headers: { contentType: target.contentType ?? CONTENT_TYPE },
        metadata: { "store-guest": nameModules(pins) },
        owner: getOwner(api),
        actor: getActor(context),
        guest: {
          modules: nameModules(pins),
          depth: transformation.depth,
          ...(transformation.trigger === undefined ? {} : { trigger: transformation.trigger }),
        },
        ...(object.geo === undefined ? {} : { geo: object.geo }),
        ...(encryption === undefined ? {} : { encryption }),
        ...(target.conditions === undefined ? {} : { conditions: target.conditions }),
        tenant: context.tenant,
      },
      cause,
    );
    try {
      for await (const chunk of spool.chunks()) await upload.write(chunk);
      return { result: await upload.commit(), bytes: spool.bytes, source: object };
    } catch (error) {
      await upload.abort();
      throw error;
    }
  } finally {
    run.cancel();
    transformation.onStderr?.(run.stderr);
    await spool.remove();
  }
}

async function fill(
  spool: { append: (chunk: Uint8Array) => Promise<void> },
  run: GuestRun,
): Promise<void> {
  try {
    for await (const chunk of run.output) await spool.append(chunk);
  } catch (error) {
    throw toGuestFault(error);
  }
}

async function startRun(
  context: OperationContext,
  { pins, event, moreMs, signal = context.request.watchClient() }: Transformation,
  object: OpenObject,
): Promise<GuestRun> {
  try {
    const source = { object, event, ...(moreMs === undefined ? {} : { moreMs }) };
    const run = await context.api.guests.run(pins, source);
    run.cancelWith(signal);
    return run;
  } catch (error) {
    throw toGuestFault(error);
  }
}

// The source with the conditions of a copy, so that those of the target have their usual names.
async function openSource(context: OperationContext): Promise<OpenObject> {
  const { fields, api } = context;
  const request: GetRequest = getAddress(context);
  const conditions = readConditions(fields, "copy");
  if (conditions !== undefined) request.conditions = conditions;
  const customerKey = readCustomerKey(fields);
  if (customerKey !== undefined) request.customerKey = customerKey;
  request.checkKey = checkKeyUse(context, "kms:Decrypt");
  try {
    const found = await api.store.objects.get(request);
    return found;
  } catch (error) {
    throw await toCopyError(context, await hideMissing(context, error));
  }
}

// As the source; the bucket's default applies to plain ones.
function chooseEncryption(
  context: OperationContext,
  { encryption }: ObjectInfo,
  target: Bucket,
): EncryptionRequest | undefined {
  if (encryption?.type === "SSE-C") {
    return { type: "SSE-C", key: readCustomerKey(context.fields)! };
  }
  const chosen = context.api.store.keys.chooseDefault(target.settings.encryption) ?? encryption;
  if (chosen?.type === "SSE-KMS") checkKeyUse(context, "kms:GenerateDataKey")(chosen.keyId);
  return chosen;
}

async function answerOutput(
  context: OperationContext,
  pins: readonly ModulePin[],
): Promise<S3Answer> {
  const source = await openSource(context);
  const run = await startRun(
    context,
    { pins, event: EVENT, depth: 0, target: { bucket: "", key: "" } },
    source,
  );
  const output = run.output[Symbol.asyncIterator]();
  // A failure before the first byte is answered with its status.
  const first = await output.next().catch((error: unknown) => {
    throw toGuestFault(error);
  });
  const object: ObjectBody = {
    whole: undefined,
    async *chunks() {
      try {
        for (let next = first; next.done !== true; next = await output.next()) {
          yield Buffer.from(next.value.buffer, next.value.byteOffset, next.value.length);
        }
      } finally {
        run.cancel();
      }
    },
    recycle: () => undefined,
    close: () => run.cancel(),
  };
  return { status: 200, headers: [["Content-Type", CONTENT_TYPE]], object };
}

/** Faults of the host, not of the guest. */
const HOST_FAULTS: ReadonlySet<GuestErrorCode> = new Set(["overloaded", "closed", "cancelled"]);

/** The S3 error of a failed guest: InvalidRequest with the name of the limit, or ServiceUnavailable. Others stay as they are. */
function toGuestFault(error: unknown): unknown {
  if (!(error instanceof GuestError)) return error;
  const { code, message } = error;
  if (HOST_FAULTS.has(code)) {
    return new S3Error("ServiceUnavailable", { message, headers: [["Retry-After", "1"]] });
  }
  return new S3Error("InvalidRequest", { message: `${code}: ${message}`, cause: error });
}
