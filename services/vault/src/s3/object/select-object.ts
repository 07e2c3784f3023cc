// SelectObjectContent: SQL on the content of an object
import type { GetRequest, ObjectBody } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { StoreError } from "../../model/store-error.ts";
import type { SelectRequest } from "../../select/request.ts";
import type { Answer, QuestionSource } from "../../select/select-pool.ts";
import type { S3Answer } from "../answer.ts";
import { checkKeyUse, hideMissing } from "../authorization.ts";
import type { OperationContext, OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { getAddress } from "./address.ts";
import { readCustomerKey, refuseWriteEncryption } from "./encryption.ts";
import { awaitFirst, passEvents, passRecords, QUIET_MS } from "./select-answer.ts";
import { readJsonRequest, readXmlRequest } from "./select-document.ts";

/** Errors have their status for so long; a proxy in front, such as the gateway, waits for the head of an answer 60 s by default. */
const HEAD_MS = 30_000;
/** An expression of 256 KiB, whose characters may be references. */
const DOCUMENT_BYTES_MAX = 2 * 1024 * 1024;
const SELECT_TYPE = "2";

/** With a JSON document; the answer consists of the records alone. */
export const selectRecords: OperationHandler = async (context) => {
  const { request, answer } = await ask(context, readJsonRequest);
  const type = request.output.format === "JSON" ? "application/x-ndjson" : "text/csv";
  return stream(
    answer,
    `${type}; charset=utf-8`,
    passRecords(answer, await awaitFirst(answer, HEAD_MS)),
  );
};

/** With S3's document in XML; the answer is an event stream. */
export const selectObjectContent: OperationHandler = async (context) => {
  if (context.query.get("select-type") !== SELECT_TYPE) {
    throw new S3Error("InvalidRequest", "The only select-type is 2.");
  }
  const { request, answer } = await ask(context, readXmlRequest);
  const events = passEvents(answer, await awaitFirst(answer, QUIET_MS), request.reportsProgress);
  return stream(answer, "application/octet-stream", events);
};

async function ask(
  context: OperationContext,
  read: (body: Buffer) => SelectRequest,
): Promise<{ request: SelectRequest; answer: Answer }> {
  const { api, fields, tenant } = context;
  if (fields.has("range")) throw new S3Error("UnsupportedRangeHeader");
  refuseWriteEncryption(fields);
  const request = read(await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX }));
  const signal = context.request.watchClient();
  const source = await openSource(context);
  const nowMs = api.clock.now();
  const answer = await api.select.ask({ tenant, request, source, nowMs }, signal);
  signal.addEventListener("abort", () => answer.close());
  return { request, answer };
}

// All ranges are read from the version that was found first.
async function openSource(context: OperationContext): Promise<QuestionSource> {
  const { objects } = context.api.store;
  const address = getAddress(context);
  const customerKey = readCustomerKey(context.fields);
  const checkKey = checkKeyUse(context, "kms:Decrypt");
  const key = customerKey === undefined ? { checkKey } : { customerKey, checkKey };
  try {
    const { object } = await objects.head({ ...address, ...key });
    const { versionId, sizeBytes, etag } = object;
    const pinned: GetRequest = {
      ...address,
      ...key,
      versionId,
      // In an unversioned bucket, a new object has the same version id.
      conditions: { ifMatch: [etag] },
    };
    return {
      sizeBytes,
      async *open(start, end) {
        if (start >= Math.min(end, sizeBytes)) return;
        const range = { start, end: Math.min(end, sizeBytes) - 1 };
        const { body } = await objects.get({ ...pinned, range }).catch((error: unknown) => {
          throw explainChange(error);
        });
        try {
          for await (const chunk of body.chunks()) {
            yield chunk;
            body.recycle(chunk);
          }
        } finally {
          body.close();
        }
      },
    };
  } catch (error) {
    throw await hideMissing(context, error);
  }
}

function explainChange(error: unknown): unknown {
  const isGone =
    error instanceof StoreError &&
    ["PreconditionFailed", "NoSuchKey", "NoSuchVersion"].includes(error.code);
  if (!isGone) return error;
  return new S3Error("OperationAborted", "The object was replaced or deleted during the question.");
}

function stream(
  answer: Answer,
  contentType: string,
  chunks: AsyncGenerator<Buffer, void, undefined>,
): S3Answer {
  const body: ObjectBody = {
    whole: undefined,
    chunks: () => chunks,
    recycle: () => undefined,
    close: () => answer.close(),
  };
  return { status: 200, headers: [["Content-Type", contentType]], object: body };
}
