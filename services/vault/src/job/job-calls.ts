// The operations of jobs, as callers of the object API would request them.
import type { JobItem, JobSpec } from "../model/job.ts";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";
import type { InnerOperations, OperationCall, Sender } from "../s3/inner-operations.ts";
import { requireTarget, transformTo } from "../s3/object/transform-object.ts";
import { formatTagging } from "../s3/tagging-document.ts";
import { encodeUri } from "../s3/sigv4/index.ts";
import type { Submit } from "../transaction/writer.ts";

const EVENT = "Pipeline";

/** Runs the operation of a job on one object, with the rights of its sender; `submit` commits it with the step. */
export async function performItem(
  operations: InnerOperations,
  sender: Sender,
  spec: JobSpec,
  item: JobItem,
  submit: Submit,
): Promise<void> {
  try {
    await performOnce(operations, sender, spec, item, submit);
  } catch (error) {
    // It was overwritten since it was selected: the version that the job saw is still there, under its id.
    const isReading = spec.operation === "copy" || spec.operation === "pipeline";
    if (!isReading || item.version !== undefined || !isOverwritten(error) || item.seen === "null")
      throw error;
    await performOnce(operations, sender, spec, { ...item, version: item.seen }, submit);
  }
}

function isOverwritten(error: unknown): boolean {
  const isKnown = error instanceof S3Error || error instanceof StoreError;
  return isKnown && error.code === "PreconditionFailed";
}

async function performOnce(
  operations: InnerOperations,
  sender: Sender,
  spec: JobSpec,
  item: JobItem,
  submit: Submit,
): Promise<void> {
  if (spec.operation === "pipeline") await runPipeline(operations, sender, spec, item, submit);
  else await operations.run(sender, { ...describeCall(spec, item), submit });
}

function describeCall(spec: JobSpec, item: JobItem): OperationCall {
  const { bucket } = spec;
  const { key, version } = item;
  const query = version === undefined ? {} : { versionId: version };
  switch (spec.operation) {
    case "copy":
      return describeCopy(spec.targetBucket ?? bucket, `${spec.targetPrefix}${key}`, bucket, item);
    case "delete": {
      // The version that was selected, not one that has replaced it.
      const fields = version === undefined ? [["if-match", `"${item.etag}"`] as const] : [];
      return { method: "DELETE", bucket, key, query, fields };
    }
    case "tag": {
      const body = formatTagging(spec.tags);
      return { method: "PUT", bucket, key, query: { ...query, tagging: "" }, body };
    }
    case "untag":
      return { method: "DELETE", bucket, key, query: { ...query, tagging: "" } };
    case "rewind":
      if (item.rewind === "restore") return describeCopy(bucket, key, bucket, item);
      return { method: "DELETE", bucket, key, fields: [["if-match", `"${item.etag}"`]] };
    case "replicate":
      return { method: "POST", bucket, key, query: { ...query, replicate: "" } };
    case "pipeline":
      throw new S3Error("InternalError");
    default:
      return spec.operation satisfies never;
  }
}

function describeCopy(
  bucket: string,
  key: string,
  sourceBucket: string,
  { key: sourceKey, version, etag, storageClass }: JobItem,
): OperationCall {
  const versioned = version === undefined ? "" : `?versionId=${version}`;
  const source = `${sourceBucket}/${encodeUri(sourceKey, true)}${versioned}`;
  const fields: [name: string, value: string][] = [
    ["x-amz-copy-source", source],
    ["x-amz-copy-source-if-match", `"${etag}"`],
  ];
  if (storageClass !== "STANDARD") fields.push(["x-amz-storage-class", storageClass]);
  return { method: "PUT", bucket, key, fields };
}

async function runPipeline(
  operations: InnerOperations,
  sender: Sender,
  { bucket, pins, targetBucket = bucket, targetPrefix }: JobSpec,
  { key, version, etag }: JobItem,
  submit: Submit,
): Promise<void> {
  const target = { bucket: targetBucket, key: `${targetPrefix}${key}` };
  requireTarget(target, { bucket, key });
  const versioned = version === undefined ? {} : { versionId: version };
  const call: OperationCall = {
    method: "POST",
    bucket,
    key,
    query: { transform: "", ...versioned },
    fields: [["x-amz-copy-source-if-match", `"${etag}"`]],
  };
  await operations.perform(sender, call, (context) =>
    transformTo(context, { pins, target, event: EVENT, depth: 0, cause: { submit } }),
  );
}
