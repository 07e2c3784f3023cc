// StartPipeline: a job that runs modules on the objects of a bucket
import { z } from "zod";
import { storePrincipal } from "../../access/stored-requester.ts";
import { S3Error } from "../../model/s3-error.ts";
import { requirePermission } from "../authorization.ts";
import type { OperationHandler } from "../context.ts";
import { jobFilterSchema, toJobFilter } from "../job-filter.ts";
import { answerJson, readJsonDocument } from "../json-document.ts";
import { receiveDocument } from "../payload.ts";

const DOCUMENT_BYTES_MAX = 1024 * 1024;
const MODULES_MAX = 8;

const pipelineSchema = z.strictObject({
  modules: z.array(z.string().min(1).max(192)).min(1).max(MODULES_MAX),
  prefix: z.string().max(1_024).default(""),
  target_bucket: z.string().min(1).max(63).exactOptional(),
  target_prefix: z.string().max(1_024).default(""),
  filter: jobFilterSchema.exactOptional(),
});

export const startPipeline: OperationHandler = async (context) => {
  const { api, bucketName, bucket, caller, request } = context;
  const body = await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX });
  const document = readJsonDocument(body, pipelineSchema);
  const { modules, prefix, target_prefix: targetPrefix, filter } = document;
  await requirePermission(context, { action: "s3:ListBucket", bucket, bucketName, key: "" });
  const targetBucket = document.target_bucket ?? bucketName;
  if (targetBucket === bucketName && targetPrefix === "") {
    throw new S3Error(
      "InvalidArgument",
      "target_prefix: required for a target in the same bucket.",
    );
  }
  api.store.buckets.require(targetBucket);
  const id = await api.jobs.startPipeline({
    bucket: bucketName,
    prefix,
    targetBucket,
    targetPrefix,
    filter: toJobFilter(filter),
    pins: api.guests.pin(modules),
    requester: {
      principals: [storePrincipal(caller)],
      address: request.clientAddress,
      secure: request.secure,
    },
  });
  return { ...answerJson({ job_id: id }), status: 202 };
};
