// Passes requests about federated buckets to their remote: signed again, with their body verified here, and answers as they come.
import type { Logger } from "@platform/kernel/log";
import { type S3Call, S3ClientError, type S3OpenAnswer, S3Stream } from "@platform/s3";
import { FrameMemory } from "../blob/frame-memory.ts";
import { BodyHashers } from "../hash/body-hashers.ts";
import type { FederationRule } from "../model/federation.ts";
import type { ObjectBody } from "../model/object.ts";
import { S3Error } from "../model/s3-error.ts";
import type { Store } from "../object-store.ts";
import type { Remote } from "../remote/remote.ts";
import type { Header, S3Answer } from "../s3/answer.ts";
import type { OperationContext } from "../s3/context.ts";
import {
  listDigests,
  planPayload,
  type PayloadPlan,
  receiveDocument,
  receiveUpload,
} from "../s3/payload.ts";
import { CHECKSUM_ALGORITHMS } from "../s3/wire/checksum.ts";
import { BodyBridge } from "./body-bridge.ts";
import { listReturnedFields, listSentFields, listSentQuery } from "./passed-fields.ts";

/** Operations whose body is that of an object, and streams. */
const STREAMED: ReadonlySet<string> = new Set(["PutObject", "UploadPart"]);
/** Of operations with a document. */
const DOCUMENT_BYTES_MAX = 4 * 1024 * 1024;
/** Bodies up to this size are sent from memory, over a kept connection. */
const WHOLE_BYTES_MAX = 64 * 1024;
/** Answers up to this size are received before they are sent: in one piece, or as an error. */
const WHOLE_ANSWER_BYTES_MAX = 128 * 1024;
const ERROR_BYTES_MAX = 64 * 1024;
/** Servers that take a checksum behind the body; others verify the signatures of chunks. */
const TRAILER_SERVERS: ReadonlySet<string> = new Set(["platform-vault", "AmazonS3"]);
/** Errors that are about the credentials of this store, of which its clients know nothing. */
const OWN_FAULTS: ReadonlySet<string> = new Set([
  "InvalidAccessKeyId",
  "SignatureDoesNotMatch",
  "RequestTimeTooSkewed",
  "InvalidSecurity",
]);

/** Options of {@link Forwarder}. */
export interface ForwarderOptions {
  readonly store: Store;
  readonly log: Logger;
}

/** A body for a remote, and what ends it. */
interface SentBody {
  readonly body: Uint8Array | S3Stream;
  readonly headers: Readonly<Record<string, string>>;
  /** Resolves when the body was received and verified. */
  readonly received: Promise<void>;
}

export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #hashers = new BodyHashers();
  readonly #memory = new FrameMemory();
  readonly #findMemory = (length: number): Buffer | null =>
    length > WHOLE_ANSWER_BYTES_MAX ? null : this.#memory.take(length);
  /** The kind of server, by the name of the remote. */
  readonly #servers = new Map<string, string>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /** The remote of a rule. Throws ServiceUnavailable if it was removed. */
  requireRemote({ remote }: FederationRule): Remote {
    const found = this.#options.store.remotes.find(remote);
    if (found !== undefined) return found;
    throw new S3Error("ServiceUnavailable", `The remote ${remote} is not registered.`);
  }

  /** Passes a request on. `document` is its body, if it was read already. */
  async forward(
    context: OperationContext,
    rule: FederationRule,
    document?: Buffer,
  ): Promise<S3Answer> {
    const { operation, request, key, bucketName, fields } = context;
    const remote = this.requireRemote(rule);
    const headers = listSentFields(fields);
    const { method } = operation;
    const call: S3Call = {
      operation: "forward",
      method: method as S3Call["method"],
      ...(key === "" ? {} : { key }),
      query: listSentQuery(context.query.others),
      headers: { ...headers, "x-store-hops": this.nameHops(context) },
      findMemory: this.#findMemory,
    };
    const sent = STREAMED.has(operation.name)
      ? await this.#receiveBody(context, remote)
      : method === "PUT" || method === "POST"
        ? describeDocument(
            document ?? (await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX })),
          )
        : undefined;
    const whole =
      sent === undefined
        ? call
        : { ...call, body: sent.body, headers: { ...call.headers, ...sent.headers } };
    const signal = request.watchClient();
    const answer = await this.send(remote, bucketName, whole, signal, sent?.received);
    return this.#toAnswer(context, remote, answer);
  }

  /** The stores that a request has passed, this one included. */
  nameHops({ fields }: OperationContext): string {
    const own = this.#options.store.remotes.storeId;
    const before = fields.getFilled("x-amz-hops");
    return before === undefined ? own : `${before},${own}`;
  }

  /** Sends a request. Throws ServiceUnavailable if the remote does not answer, or the fault of the body. */
  async send(
    remote: Remote,
    bucket: string,
    call: S3Call,
    signal: AbortSignal,
    received: Promise<void> = Promise.resolve(),
  ): Promise<S3OpenAnswer> {
    // The fault of a body is the better answer than that of the connection, which it has ended.
    let fault: unknown;
    const verified = received.catch((error: unknown) => {
      fault = error;
    });
    try {
      const answer = await remote.forwarder(bucket).open(call, { signal });
      const { server } = answer.headers;
      if (typeof server === "string") this.#servers.set(remote.settings.name, server);
      await verified;
      if (fault === undefined) return answer;
      answer.close();
      throw fault;
    } catch (error) {
      await verified;
      if (fault !== undefined) throw fault;
      throw this.#explain(error, remote);
    }
  }

  #explain(error: unknown, { settings: { name } }: Remote): unknown {
    if (!(error instanceof S3ClientError)) return error;
    return new S3Error("ServiceUnavailable", {
      message: `The remote ${name} does not answer (${error.code}).`,
      headers: [["Retry-After", "5"]],
      cause: error,
    });
  }

  async #receiveBody(context: OperationContext, remote: Remote): Promise<SentBody> {
    const { request } = context;
    const plan = planPayload(request, context.payload);
    const algorithms = listDigests(plan);
    const { contentLength } = plan;
    if (contentLength <= WHOLE_BYTES_MAX) {
      const pieces: Buffer[] = [];
      const bridge = new BodyBridge(this.#hashers, contentLength, algorithms);
      const collecting = (async () => {
        for await (const piece of bridge.chunks()) pieces.push(piece);
      })();
      collecting.catch(() => undefined);
      await receiveUpload(request, plan, bridge);
      await bridge.commit();
      await collecting;
      const headers = describeChecksum(plan, bridge);
      return { body: Buffer.concat(pieces), headers, received: Promise.resolve() };
    }
    const hasTrailer = await this.#takesTrailer(context, remote);
    const algorithm = plan.checksum?.algorithm ?? "CRC64NVME";
    const bridge = new BodyBridge(this.#hashers, contentLength, [
      ...new Set([...algorithms, algorithm]),
    ]);
    const received = receiveUpload(request, plan, bridge).then(
      () => bridge.commit(),
      (error: unknown) => {
        bridge.fail(error);
        throw error;
      },
    );
    received.catch(() => undefined);
    const { field: name, length } = CHECKSUM_ALGORITHMS[algorithm];
    const value = (): string => bridge.digests?.checksums[algorithm]?.toString("base64") ?? "";
    // A checksum in a header of the client goes on as it is.
    const isNamed = plan.checksum?.value !== undefined;
    const trailer = hasTrailer && !isNamed ? { name, length, value } : undefined;
    return { body: new S3Stream(contentLength, bridge.chunks(), trailer), headers: {}, received };
  }

  async #takesTrailer({ bucketName, request }: OperationContext, remote: Remote): Promise<boolean> {
    const { name } = remote.settings;
    if (!this.#servers.has(name)) {
      const call = { operation: "forward", method: "HEAD" } as const;
      (await this.send(remote, bucketName, call, request.watchClient())).close();
    }
    return TRAILER_SERVERS.has(this.#servers.get(name) ?? "");
  }

  async #toAnswer(
    context: OperationContext,
    remote: Remote,
    answer: S3OpenAnswer,
  ): Promise<S3Answer> {
    const { request, operation } = context;
    const { status } = answer;
    const headers = listReturnedFields(answer.headers);
    const { log } = context.api;
    const theirs = answer.headers["x-amz-request-id"];
    log.debug("a request was passed on", {
      request_id: request.id,
      remote: remote.settings.name,
      remote_request_id: theirs,
      status,
    });
    if (status >= 400 && operation.method !== "HEAD")
      return this.#toError(context, remote, answer, headers);
    const contentLength = readLength(answer);
    if (operation.method === "HEAD") {
      answer.close();
      return { status, headers, ...(contentLength === undefined ? {} : { contentLength }) };
    }
    if (status === 204 || status === 304 || contentLength === 0) {
      answer.close();
      return { status, headers, body: "" };
    }
    if (contentLength !== undefined && contentLength <= WHOLE_ANSWER_BYTES_MAX) {
      const whole = await this.#readWhole(answer, remote);
      return { status, headers, object: this.#toWholeBody(whole) };
    }
    const length = contentLength === undefined ? {} : { contentLength };
    return { status, headers, object: toBody(answer), ...length };
  }

  #toWholeBody(whole: Buffer): ObjectBody {
    async function* chunks(): AsyncGenerator<Buffer, void, undefined> {
      yield whole;
    }
    return {
      whole,
      chunks,
      recycle: (chunk) => this.#memory.recycle(chunk),
      close: () => undefined,
    };
  }

  async #readWhole(answer: S3OpenAnswer, { settings: { name } }: Remote): Promise<Buffer> {
    try {
      return await answer.readAll(WHOLE_ANSWER_BYTES_MAX);
    } catch (cause) {
      throw new S3Error("ServiceUnavailable", { message: `The remote ${name} fails.`, cause });
    }
  }

  // Their document, with the id of the request here.
  async #toError(
    { request }: OperationContext,
    { settings: { name } }: Remote,
    answer: S3OpenAnswer,
    headers: Header[],
  ): Promise<S3Answer> {
    const text = await readShort(answer).catch((cause: unknown) => {
      throw new S3Error("ServiceUnavailable", { message: `The remote ${name} fails.`, cause });
    });
    const code = /<Code>([A-Za-z0-9.]{1,64})<\/Code>/.exec(text)?.[1] ?? "";
    if (OWN_FAULTS.has(code)) {
      throw new S3Error("ServiceUnavailable", {
        message: `The remote ${name} refuses the credentials of this store (${code}).`,
        headers: [["Retry-After", "60"]],
      });
    }
    const body = text
      .replace(/<RequestId>[^<]*<\/RequestId>/, `<RequestId>${request.id}</RequestId>`)
      .replace(/<HostId>[^<]*<\/HostId>/, "<HostId>platform-vault</HostId>");
    return { status: answer.status, headers, body };
  }
}

function describeDocument(body: Buffer): SentBody {
  return { body, headers: {}, received: Promise.resolve() };
}

// The checksum that the client has sent behind the body goes into a header.
function describeChecksum(
  { checksum }: PayloadPlan,
  { digests }: BodyBridge,
): Record<string, string> {
  if (checksum === undefined) return {};
  const { field } = CHECKSUM_ALGORITHMS[checksum.algorithm];
  const value = digests?.checksums[checksum.algorithm]?.toString("base64");
  return value === undefined ? {} : { [field]: value };
}

function readLength({ headers }: S3OpenAnswer): number | undefined {
  const text = headers["content-length"];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

async function readShort(answer: S3OpenAnswer): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer.chunks()) {
    bytes += piece.length;
    if (bytes > ERROR_BYTES_MAX) break;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** The body of an answer as that of an object. */
function toBody(answer: S3OpenAnswer): ObjectBody {
  return {
    whole: undefined,
    chunks: () => answer.chunks(),
    recycle: () => undefined,
    close: () => answer.close(),
  };
}
