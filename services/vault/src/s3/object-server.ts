// The path of a request to the object API: engine, operation, authorization, handler, answer.
import type { Exchange, Handler } from "@platform/http1";
import type { Tracer } from "@platform/kernel/trace";
import type { Caller } from "../access/authorizer.ts";
import type { ObjectBody } from "../model/object.ts";
import { S3Error } from "../model/s3-error.ts";
import {
  answerError,
  answerJsonError,
  completeHeaders,
  type Header,
  type S3Answer,
  toS3Error,
} from "./answer.ts";
import { admitOperation, takeBudget } from "./admission.ts";
import { type ObjectApi, runOperation } from "./context.ts";
import { answerPreflight, answerStsPreflight, getCrossOriginHeaders } from "./cross-origin.ts";
import type { FinishedRequest } from "./finished-request.ts";
import { ClientGone } from "./request-body.ts";
import type { RequestIds } from "./request-ids.ts";
import { isFailure, startRequestSpan } from "./request-log.ts";
import { S3Request } from "./request.ts";
import { resolveOperation } from "./resolve-operation.ts";
import { answerStsError } from "./sts/answer.ts";
import { answerWebsite, readWebsiteBucket } from "./website-answer.ts";
import { addPresignedFields } from "./wire/fields.ts";
import { readAddress, readHostedBucket } from "./wire/address.ts";

/** Options of the server. */
export interface ObjectServerOptions {
  api: ObjectApi;
  ids: RequestIds;
  tracer: Tracer;
  /** Answers the probes `/healthz` and `/readyz`; `undefined` for other paths. */
  answerProbe: (path: string) => S3Answer | Promise<S3Answer> | undefined;
  onStarted: () => void;
  onFinished: (finished: FinishedRequest) => void;
}

const ANONYMOUS: Caller = { kind: "anonymous" };

/** Creates the engine's handler of the object API. */
export function createObjectHandler(options: ObjectServerOptions): Handler<unknown> {
  return (exchange) => {
    options.onStarted();
    void serve(options, exchange, options.ids.next());
  };
}

async function serve(options: ObjectServerOptions, exchange: Exchange, id: string): Promise<void> {
  const { api } = options;
  const request = new S3Request(exchange, id, api);
  const span = startRequestSpan(options.tracer, request);
  request.trace = span.context;
  const finished = beginRequest(request, span);
  let answer: S3Answer;
  try {
    answer = await answerRequest(options, request, finished);
  } catch (thrown) {
    if (thrown instanceof ClientGone) {
      answer = { status: 499 };
    } else {
      const error = toS3Error(thrown);
      if (isFailure(error.status)) {
        const { traceId: trace_id, spanId: span_id } = span.context;
        const { status, cause = error } = error;
        api.log.error("request failed", {
          trace_id,
          span_id,
          status,
          request_id: id,
          error: cause,
        });
      }
      finished.errorCode = error.code;
      const isBuckets = error.status === 404 && finished.key === "";
      const bucketName = isBuckets ? finished.bucketName : undefined;
      answer = answerFailure(finished, error, bucketName);
    }
  }
  finished.status = answer.status;
  finished.answer = answer;
  const bucket = api.store.buckets.find(finished.bucketName);
  const added = getCrossOriginHeaders(request, bucket);
  if (bucket !== undefined && finished.answersRegion) {
    added.push(["x-amz-bucket-region", bucket.region]);
  }
  try {
    await sendAnswer(request, answer, added);
  } catch (error) {
    // The refusal of a question that had begun to be answered is no fault of the service.
    if (error instanceof S3Error && !isFailure(error.status)) {
      finished.errorCode = error.code;
    } else if (!(error instanceof ClientGone)) {
      const { traceId: trace_id, spanId: span_id } = span.context;
      api.log.error("a response was interrupted", { trace_id, span_id, request_id: id, error });
    }
    if (request.isLive) exchange.destroy();
  }
  request.release();
  options.onFinished(finished);
}

function beginRequest(request: S3Request, span: FinishedRequest["span"]): FinishedRequest {
  return {
    request,
    span,
    operation: "Unknown",
    answersRegion: false,
    errorForm: "s3",
    bucketName: "",
    key: "",
    caller: undefined,
    signature: undefined,
    answer: undefined,
    status: 0,
    errorCode: undefined,
  };
}

function answerFailure(
  { errorForm, request }: FinishedRequest,
  error: S3Error,
  bucketName: string | undefined,
): S3Answer {
  switch (errorForm) {
    case "sts":
      return answerStsError(error, request.id);
    case "json":
      return answerJsonError(error, request.id);
    case "s3":
      return answerError(error, request.rawPath, request.id, bucketName);
    default:
      return errorForm satisfies never;
  }
}

async function answerRequest(
  options: ObjectServerOptions,
  request: S3Request,
  finished: FinishedRequest,
): Promise<S3Answer> {
  const { api } = options;
  const { method, fields, rawPath, host } = request;
  fields.requireConsistent();
  const isRead = method === "GET" || method === "HEAD";
  if (isRead && request.rawQuery === "" && !fields.has("authorization")) {
    const probe = options.answerProbe(rawPath);
    if (probe !== undefined) {
      finished.operation = "Probe";
      return probe;
    }
  }
  const site = readWebsiteBucket(host, api.websiteDomain);
  if (site !== undefined) {
    finished.operation = "Website";
    finished.bucketName = site;
    finished.key = rawPath.slice(1);
    finished.caller = ANONYMOUS;
    takeBudget(api, request, ANONYMOUS);
    return answerWebsite(api, request, site);
  }
  const address = readAddress(rawPath, host, api.domain);
  finished.bucketName = address.bucket;
  finished.key = address.key;
  if (method === "OPTIONS") {
    finished.operation = "Preflight";
    return address.level === "service"
      ? answerStsPreflight(request)
      : answerPreflight(request, api.store.buckets.find(address.bucket));
  }
  addPresignedFields(fields, request.query);
  const { operation, ignored } = resolveOperation(method, address, request.query, fields);
  finished.operation = operation.name;
  finished.answersRegion = operation.answersRegion;
  finished.errorForm = operation.errorForm;
  const signed = verifySender(api, request, ignored);
  const caller = signed.kind === "signed" ? signed.owner : ANONYMOUS;
  finished.caller = caller;
  const signature = signed.kind === "signed" ? signed.signature : undefined;
  finished.signature = signature;
  const tenant = takeBudget(api, request, caller);
  const context = await admitOperation(api, {
    request,
    address,
    operation,
    caller,
    tenant,
    signature,
    payload: signed.payload,
    query: request.query,
  });
  return await runOperation(context);
}

function verifySender(
  { verifier, domain }: ObjectApi,
  { method, rawPath, query, fields, host, forwardedHost }: S3Request,
  ignoredParameters: Parameters<ObjectApi["verifier"]["verify"]>[0]["ignoredParameters"],
): ReturnType<ObjectApi["verifier"]["verify"]> {
  const hostedBucket = readHostedBucket(host, domain);
  return verifier.verify({
    method,
    rawPath,
    query,
    fields,
    ignoredParameters,
    hostedBucket,
    forwardedHost,
  });
}

async function sendAnswer(
  request: S3Request,
  answer: S3Answer,
  added: readonly Header[],
): Promise<void> {
  const { exchange } = request;
  const { status, object, contentLength } = answer;
  if (!request.isLive || status === 499) {
    object?.close();
    return;
  }
  const headers = completeHeaders(request.id, answer.headers, added);
  if (contentLength === undefined && object === undefined) {
    const body = request.method === "HEAD" ? "" : (answer.body ?? "");
    exchange.respond({ status, headers, body });
    return;
  }
  if (object?.whole !== undefined) {
    exchange.respond({ status, headers, body: object.whole });
    if (exchange.unsentBytes === 0) object.recycle(object.whole);
    object.close();
    return;
  }
  const length = contentLength === undefined ? {} : { contentLength };
  exchange.startResponse({ status, headers, ...length });
  if (object === undefined) exchange.end();
  else await sendChunks(request, object);
}

async function sendChunks(request: S3Request, object: ObjectBody): Promise<void> {
  const { exchange } = request;
  let wake: (() => void) | undefined;
  exchange.onDrain = () => wake?.();
  // The producer of the chunks may want to end as well.
  const { onAborted } = exchange;
  exchange.onAborted = () => {
    onAborted?.(exchange);
    wake?.();
  };
  // Written to the socket, but maybe not sent yet.
  const unsent: Buffer[] = [];
  try {
    for await (const chunk of object.chunks()) {
      if (!request.isLive) return;
      unsent.push(chunk);
      if (!exchange.write(chunk)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        if (!request.isLive) return;
      }
      if (exchange.unsentBytes > 0) continue;
      for (const sent of unsent.splice(0)) object.recycle(sent);
    }
    exchange.end();
  } finally {
    object.close();
  }
}
