// AskBucket: a question in plain words about the objects of a bucket
import { S3Error } from "../../model/s3-error.ts";
import { StoreError } from "../../model/store-error.ts";
import { decodeVector } from "../../model/vector.ts";
import { type AskAnswer, readAnswer, writeStatement } from "../../search/ask/answer.ts";
import { interpretQuestion } from "../../search/ask/grammar.ts";
import type { Interpretation } from "../../search/ask/interpretation.ts";
import { compileFilter } from "../../search/filter.ts";
import { FILTER_COLUMNS } from "../../search/vector-search.ts";
import type { S3Answer } from "../answer.ts";
import { getBucket, type OperationContext, type OperationHandler } from "../context.ts";
import { answerJson } from "../json-document.ts";

const QUESTION_CHARACTERS_MAX = 2_000;
const SIMILAR_DEFAULT = 10;
const SIMILAR_MAX = 100;

/** The answer shows the filters that the question was understood as. */
export const askBucket: OperationHandler = async (context) => {
  const { countAsk } = context.api;
  try {
    const answer = await answerQuestion(context);
    countAsk("answered");
    return answer;
  } catch (error) {
    countAsk("refused");
    throw error;
  }
};

async function answerQuestion(context: OperationContext): Promise<S3Answer> {
  const { api, query } = context;
  const question = query.get("ask")!;
  if (question.trim() === "") throw new S3Error("InvalidArgument", "The question is empty.");
  if (question.length > QUESTION_CHARACTERS_MAX) {
    throw new S3Error(
      "InvalidArgument",
      `A question has at most ${QUESTION_CHARACTERS_MAX} characters.`,
    );
  }
  const signal = context.request.watchClient();
  const asked = await api.askEndpoint?.interpret(question);
  const by = asked === undefined ? "grammar" : "model";
  const found = asked ?? interpretQuestion(question, api.clock.now());
  const { similar } = found;
  const byVector =
    similar === undefined ? undefined : await findSimilar(context, found, similar, signal);
  if (byVector !== undefined) return answerJson(describe(question, by, found, byVector));
  // Without a vector, what is like an object has a similar name.
  const meant = similar === undefined ? found : { ...found, text: joinTexts(similar, found.text) };
  const { sql, parameters } = writeStatement(meant);
  const { rows } = await api.metadata.ask(
    {
      tenant: context.tenant,
      bucket: context.bucketName,
      prefix: query.get("prefix") ?? "",
      sql,
      parameters,
    },
    signal,
  );
  return answerJson(describe(question, by, meant, readAnswer(meant, rows)));
}

function describe(
  question: string,
  by: "grammar" | "model",
  interpreted: Interpretation,
  answer: AskAnswer | object,
): object {
  return { query: question, interpreted: { by, ...interpreted }, ...answer };
}

function joinTexts(similar: string, text: string | undefined): string {
  return text === undefined ? similar : `${similar} ${text}`;
}

// Undefined if the bucket has no vector index, or the object no vector.
async function findSimilar(
  context: OperationContext,
  { filters, limit = SIMILAR_DEFAULT }: Interpretation,
  key: string,
  signal: AbortSignal,
): Promise<object | undefined> {
  const { api, tenant, bucketName, query } = context;
  const index = getBucket(context).settings.vectorIndex;
  const prefix = query.get("prefix") ?? "";
  if (index === undefined || !key.startsWith(prefix)) return undefined;
  const data = readVector(context, key);
  if (data === undefined) return undefined;
  const { matches } = await api.vectors.ask(
    tenant,
    {
      path: api.store.indexPath,
      bucket: api.store.buckets.requireState(bucketName).id,
      index,
      vector: decodeVector(data),
      k: Math.min(limit, SIMILAR_MAX),
      condition: compileFilter({ $and: [filters, { prefix }] }, FILTER_COLUMNS),
      exceptKey: key,
      includesVectors: false,
      isExact: false,
    },
    signal,
  );
  const results = matches.map(({ key: found, versionId, distance }) => ({
    key: found,
    version_id: versionId,
    distance,
  }));
  return { results, truncated: false };
}

function readVector({ api, bucketName }: OperationContext, key: string): Uint8Array | undefined {
  try {
    return api.store.objects.readVector({ bucket: bucketName, key })?.data;
  } catch (error) {
    if (error instanceof StoreError && error.code === "NoSuchKey") return undefined;
    throw error;
  }
}
