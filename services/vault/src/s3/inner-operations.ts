// Operations for callers that another listener of this process has identified: the same table, authorization and handlers as
// those of the object API.
import { getCurrentTrace } from "@platform/kernel/trace";
import type { Caller } from "../access/authorizer.ts";
import type { UnknownParts } from "../access/policy.ts";
import type { ReadWindow } from "../model/read-window.ts";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";
import type { Submit } from "../transaction/writer.ts";
import { admitOperation, type IdentifiedRequest, takeBudget } from "./admission.ts";
import { type S3Answer, toS3Error } from "./answer.ts";
import { type ObjectApi, type OperationContext, runOperation } from "./context.ts";
import { type BodySource, ClientGone, type TakeChunk } from "./request-body.ts";
import type { RequestIds } from "./request-ids.ts";
import { MemoryHold, type RequestMemory } from "./request-memory.ts";
import type { OperationRequest } from "./request.ts";
import { resolveOperation } from "./resolve-operation.ts";
import { encodeUri } from "./sigv4/index.ts";
import type { Address } from "./wire/address.ts";
import { RequestQuery } from "./wire/query.ts";
import { RequestFields } from "./wire/fields.ts";

/** The sender of a request. */
export interface Sender {
  /** Its identities in storage, never empty: the roles of a person. A request succeeds with the first that may do it. */
  readonly callers: readonly Caller[];
  readonly clientAddress: string;
  readonly secure: boolean;
  readonly host: string;
  /** Work that was requested earlier: it is charged to no budget. */
  readonly isBackground?: boolean;
}

/** A request for an operation, as the object API would receive it. */
export interface OperationCall {
  readonly method: string;
  /** "" for operations of the service. */
  readonly bucket: string;
  /** Default "": an operation of the bucket. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly fields?: Iterable<readonly [name: string, value: string]>;
  readonly body?: CallBody;
  /** Parts that the caller has not named yet, of a call that is only asked about; their values here are placeholders. */
  readonly unknown?: UnknownParts;
  /** Commits changes of objects together with other work. */
  readonly submit?: Submit;
}

/** The body of a call. A stream is read once; `contentLength` is its declared length. */
type CallBody =
  | string
  | { readonly stream: AsyncIterable<Uint8Array>; readonly contentLength: number | undefined };

/** A call and its outcome, for the access log. */
export interface FinishedCall {
  readonly id: string;
  readonly operation: string;
  readonly caller: Caller;
  readonly clientAddress: string;
  readonly bucket: string;
  readonly key: string;
  readonly status: number;
  readonly errorCode: string | undefined;
}

/** Options of {@link InnerOperations}. */
export interface InnerOperationsOptions {
  api: ObjectApi;
  ids: RequestIds;
  onFinished: (call: FinishedCall) => void;
}

export class InnerOperations {
  readonly #options: InnerOperationsOptions;

  constructor(options: InnerOperationsOptions) {
    this.#options = options;
  }

  /** Runs an operation. Rejects with its error; the caller closes an object in the answer. */
  run(sender: Sender, call: OperationCall): Promise<S3Answer> {
    return this.#perform(sender, call, async (context) => runOperation(context));
  }

  /** Authorizes an operation, then does `work` in its place: for answers in another form than XML. */
  perform<Result>(
    sender: Sender,
    call: OperationCall,
    work: (context: OperationContext) => Promise<Result>,
  ): Promise<Result> {
    return this.#perform(sender, call, async (context) => {
      if (context.federated === undefined) return work(context);
      throw new S3Error("InvalidRequest", {
        message: `The bucket ${call.bucket} is in the remote ${context.federated.remote}: this is only available there.`,
      });
    });
  }

  async #perform<Result>(
    sender: Sender,
    call: OperationCall,
    work: (context: OperationContext) => Promise<Result>,
  ): Promise<Result> {
    const body = createBody(call.body);
    for (const [index, caller] of sender.callers.entries()) {
      try {
        return await this.#attempt(sender, caller, call, body, work);
      } catch (error) {
        const isLast = index === sender.callers.length - 1;
        if (isLast || body.isStarted || !isDenied(error)) throw error;
      }
    }
    throw new S3Error("AccessDenied");
  }

  /**
   * True if the sender may run an operation, or might with the right values of its unknown parts and of its body. It is
   * charged to no budget.
   */
  async isAllowed(sender: Sender, call: OperationCall): Promise<boolean> {
    const { api } = this.#options;
    for (const caller of sender.callers) {
      const identified = this.#identify(sender, caller, call, createBody());
      try {
        await admitOperation(api, { ...identified, tenant: "" });
        return true;
      } catch (error) {
        // Callers that may list the bucket learn that an object is missing in place of the denial.
        const isMissing = error instanceof StoreError && error.code === "NoSuchKey";
        if (!isMissing && !isDenied(error)) throw error;
      }
    }
    return false;
  }

  async #attempt<Result>(
    sender: Sender,
    caller: Caller,
    call: OperationCall,
    body: InnerBody,
    work: (context: OperationContext) => Promise<Result>,
  ): Promise<Result> {
    const { api, onFinished } = this.#options;
    const { bucket, key = "" } = call;
    const identified = this.#identify(sender, caller, call, body);
    const { request, operation } = identified;
    const { id, clientAddress } = request;
    const finish = (status: number, errorCode?: string): void => {
      request.release();
      const { name } = operation;
      onFinished({ id, operation: name, caller, clientAddress, bucket, key, status, errorCode });
    };
    try {
      const tenant = sender.isBackground === true ? "" : takeBudget(api, request, caller);
      const admitted = await admitOperation(api, { ...identified, tenant });
      const { submit } = call;
      const result = await work(submit === undefined ? admitted : { ...admitted, submit });
      finish(200);
      return result;
    } catch (error) {
      const { status, code } = toS3Error(error);
      finish(status, code);
      throw error;
    }
  }

  #identify(
    sender: Sender,
    caller: Caller,
    call: OperationCall,
    body: BodySource,
  ): Omit<IdentifiedRequest, "tenant"> {
    const { api, ids } = this.#options;
    const { bucket, key = "", method, unknown } = call;
    const level = bucket === "" ? "service" : key === "" ? "bucket" : "object";
    const address: Address = { level, bucket, key };
    const query = new RequestQuery(Object.entries(call.query ?? {}));
    const request = new InnerRequest(ids.next(), sender, call, body, api.memory);
    request.fields.requireConsistent();
    const { operation } = resolveOperation(method, address, query, request.fields);
    const payload = { kind: "unsigned" } as const;
    return { request, address, operation, caller, signature: undefined, payload, query, unknown };
  }
}

/** True for an error that another identity of the sender might not meet. */
function isDenied(error: unknown): boolean {
  return (error instanceof S3Error || error instanceof StoreError) && error.code === "AccessDenied";
}

class InnerRequest implements OperationRequest {
  readonly id: string;
  readonly method: string;
  readonly rawPath: string;
  readonly host: string;
  readonly clientAddress: string;
  readonly secure: boolean;
  readonly fields: RequestFields;
  readonly body: BodySource;
  readonly trace = getCurrentTrace();
  readonly #memory: MemoryHold;

  constructor(
    id: string,
    sender: Sender,
    call: OperationCall,
    body: BodySource,
    memory: RequestMemory,
  ) {
    this.id = id;
    this.method = call.method;
    this.rawPath = `/${call.bucket}/${encodeUri(call.key ?? "", true)}`;
    this.host = sender.host;
    this.clientAddress = sender.clientAddress;
    this.secure = sender.secure;
    this.fields = new RequestFields(call.fields ?? []);
    this.body = body;
    this.#memory = new MemoryHold(memory);
  }

  hold(bytes: number, tenant: string): void {
    this.#memory.take(bytes, tenant);
  }

  holdWhenRoom(bytes: number, tenant: string): Promise<void> | undefined {
    return this.#memory.takeWhenRoom(bytes, tenant);
  }

  release(): void {
    this.#memory.release();
  }

  openWindow(): ReadWindow | undefined {
    return undefined;
  }

  // The reader of the answer closes it.
  watchClient(): AbortSignal {
    return new AbortController().signal;
  }
}

interface InnerBody extends BodySource {
  /** True if a part of it is gone, so that it cannot be read again. */
  readonly isStarted: boolean;
}

function createBody(body: CallBody = ""): InnerBody {
  return typeof body === "string" ? new TextBody(body) : new StreamedBody(body);
}

class TextBody implements InnerBody {
  readonly isStarted = false;
  readonly contentLength: number;
  readonly #bytes: Buffer;

  constructor(text: string) {
    this.#bytes = Buffer.from(text);
    this.contentLength = this.#bytes.length;
  }

  async receive(take: TakeChunk, bytesMax: number): Promise<void> {
    if (this.contentLength > bytesMax) throw new S3Error("EntityTooLarge");
    if (this.contentLength > 0) await take(this.#bytes);
  }
}

class StreamedBody implements InnerBody {
  isStarted = false;
  readonly contentLength: number | undefined;
  readonly #stream: AsyncIterable<Uint8Array>;

  constructor({ stream, contentLength }: Exclude<CallBody, string>) {
    this.#stream = stream;
    this.contentLength = contentLength;
  }

  async receive(take: TakeChunk, bytesMax: number): Promise<void> {
    this.isStarted = true;
    let size = 0;
    for await (const piece of readPieces(this.#stream)) {
      size += piece.length;
      if (size > bytesMax) throw new S3Error("EntityTooLarge");
      await take(Buffer.from(piece.buffer, piece.byteOffset, piece.length));
    }
  }
}

// The stream of a request fails only if its client has gone.
async function* readPieces(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await reader.next().catch(() => {
        throw new ClientGone();
      });
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await reader.return?.().catch(() => undefined);
  }
}
