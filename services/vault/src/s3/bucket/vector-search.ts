// Searches of vectors: SearchBucketVectors and FindSimilarObjects
import { z } from "zod";
import { S3Error } from "../../model/s3-error.ts";
import { StoreError } from "../../model/store-error.ts";
import { decodeVector, requireFittingVector } from "../../model/vector.ts";
import { compileFilter, type Condition } from "../../search/filter.ts";
import type { VectorMatch } from "../../search/vector-messages.ts";
import { FILTER_COLUMNS } from "../../search/vector-search.ts";
import type { S3Answer } from "../answer.ts";
import { getBucket, type OperationContext, type OperationHandler } from "../context.ts";
import { answerJson, readJsonDocument } from "../json-document.ts";
import { receiveDocument } from "../payload.ts";
import { toVector } from "../vector-value.ts";

const DOCUMENT_BYTES_MAX = 256 * 1024;
const K_DEFAULT = 10;
const K_MAX = 100;
const INCLUDED = ["metadata", "tags", "vector"] as const;

const searchSchema = z.strictObject({
  vector: z.array(z.number()).optional(),
  key: z.string().min(1).max(1_024).optional(),
  k: z.int().min(1).max(K_MAX).default(K_DEFAULT),
  filter: z.record(z.string(), z.unknown()).optional(),
  prefix: z.string().max(1_024).default(""),
  include: z.array(z.enum(INCLUDED)).max(INCLUDED.length).default([]),
  exact: z.boolean().default(false),
});

type Search = z.infer<typeof searchSchema>;

/** The document has a vector, or the key of an object whose vector is meant. */
export const searchBucketVectors: OperationHandler = async (context) => {
  const body = await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX });
  const search = readJsonDocument(body, searchSchema);
  const { vector, key } = search;
  if ((vector === undefined) === (key === undefined)) {
    throw new S3Error("InvalidArgument", "The document has either a vector or a key.");
  }
  return answerSearch(context, search);
};

export const findSimilarObjects: OperationHandler = async (context) => {
  const { query } = context;
  const key = query.get("similar")!;
  const text = query.get("k") ?? String(K_DEFAULT);
  const k = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (k < 1 || k > K_MAX) throw new S3Error("InvalidArgument", `k is a number from 1 to ${K_MAX}.`);
  if (key === "") throw new S3Error("InvalidArgument", "similar is the key of an object.");
  return answerSearch(context, { ...searchSchema.parse({ key }), k });
};

async function answerSearch(context: OperationContext, search: Search): Promise<S3Answer> {
  const { api, tenant, request, bucketName } = context;
  const index = getBucket(context).settings.vectorIndex;
  if (index === undefined) throw new S3Error("NoSuchVectorIndex");
  const signal = request.watchClient();
  const { id: bucket } = api.store.buckets.requireState(bucketName);
  const data =
    search.vector === undefined ? findVector(context, search.key!) : toVector(search.vector);
  requireFittingVector(index, data);
  const question = {
    path: api.store.indexPath,
    bucket,
    index,
    vector: decodeVector(data),
    k: search.k,
    condition: narrow(context, search),
    exceptKey: search.key,
    includesVectors: search.include.includes("vector"),
    isExact: search.exact,
  };
  const { matches, searched } = await api.vectors.ask(tenant, question, signal);
  return answerJson({ results: matches.map((match) => format(match, search)), searched });
}

// With a prefix in the request, policies may have allowed the objects below it only.
function narrow(context: OperationContext, { filter, prefix }: Search): Condition | undefined {
  const prefixes = [context.query.get("prefix") ?? "", prefix].filter((one) => one !== "");
  const filters = [...prefixes.map((one) => ({ prefix: one })), ...(filter ? [filter] : [])];
  if (filters.length === 0) return undefined;
  const conditions = filters.map((one) => compileFilter(one, FILTER_COLUMNS));
  return {
    sql: conditions.map(({ sql }) => sql).join(" and "),
    values: conditions.flatMap(({ values }) => values),
  };
}

function findVector({ api, query, bucketName }: OperationContext, key: string): Uint8Array {
  if (!key.startsWith(query.get("prefix") ?? "")) throw new S3Error("AccessDenied");
  try {
    const found = api.store.objects.readVector({ bucket: bucketName, key });
    if (found !== undefined) return found.data;
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "MethodNotAllowed") throw error;
  }
  throw new S3Error("NoSuchVector");
}

function format(match: VectorMatch, { include }: Search): object {
  const { key, versionId, distance, metadata, tags, vector } = match;
  return {
    key,
    version_id: versionId,
    distance,
    ...(include.includes("metadata") ? { metadata: JSON.parse(metadata) as object } : {}),
    ...(include.includes("tags") ? { tags: JSON.parse(tags) as object } : {}),
    ...(vector === undefined ? {} : { vector: [...vector] }),
  };
}
