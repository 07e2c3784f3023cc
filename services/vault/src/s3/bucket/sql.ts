// QueryBucketMetadata: SQL on the metadata of a bucket
import { S3Error } from "../../model/s3-error.ts";
import type { ObjectBody } from "../../model/object.ts";
import { ANSWER_TYPES, type AnswerForm, formatAnswer } from "../../search/answer-text.ts";
import { SQL_BYTES_MAX } from "../../search/metadata-questions.ts";
import type { Header } from "../answer.ts";
import type { OperationContext, OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";

const TEXT_TYPES: ReadonlySet<string> = new Set(["text/plain", "application/sql"]);

/** The statement is in the parameter `sql`, which is empty in a POST: then it is the body. */
export const queryBucketMetadata: OperationHandler = async (context) => {
  const { api, tenant, bucketName, query, request } = context;
  const sql = await readStatement(context);
  const form = chooseForm(context.fields.get("accept"));
  const prefix = query.get("prefix") ?? "";
  const signal = request.watchClient();
  const answer = await api.metadata.ask({ tenant, bucket: bucketName, prefix, sql }, signal);
  const headers: Header[] = [["Content-Type", ANSWER_TYPES[form]]];
  // The other forms have no place for it.
  if (answer.isTruncated && form !== "json") headers.push(["x-amz-answer-truncated", "true"]);
  return { status: 200, headers, object: toBody(formatAnswer(answer, form)) };
};

async function readStatement(context: OperationContext): Promise<string> {
  const { query, fields, operation } = context;
  if (operation.method === "GET") return query.get("sql")!;
  if (query.get("sql") !== "") {
    throw new S3Error(
      "InvalidRequest",
      "The statement is the body: the parameter sql must be empty.",
    );
  }
  const [type = ""] = (fields.get("content-type") ?? "text/plain").toLowerCase().split(";");
  if (!TEXT_TYPES.has(type.trim())) {
    throw new S3Error("InvalidRequest", "The content type of a statement is text/plain.");
  }
  const body = await receiveDocument(context, { bytesMax: SQL_BYTES_MAX });
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw new S3Error("InvalidTextEncoding");
  }
}

/** Media types by their forms, in the order of preference. */
const FORMS: readonly (readonly [type: string, form: AnswerForm])[] = [
  ["application/json", "json"],
  ["application/x-ndjson", "ndjson"],
  ["application/ndjson", "ndjson"],
  ["application/jsonl", "ndjson"],
  ["text/csv", "csv"],
];

// The first type that is named; clients that accept anything get JSON.
function chooseForm(accept = ""): AnswerForm {
  for (const item of accept.toLowerCase().split(",")) {
    const [type = ""] = item.split(";");
    const found = FORMS.find(([name]) => name === type.trim());
    if (found !== undefined) return found[1];
  }
  return "json";
}

function toBody(pieces: Generator<Buffer, void, undefined>): ObjectBody {
  return {
    whole: undefined,
    async *chunks() {
      yield* pieces;
    },
    recycle: () => undefined,
    close: () => undefined,
  };
}
