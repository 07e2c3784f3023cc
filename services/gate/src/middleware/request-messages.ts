// The request and the response of one exchange for its guests.
import {
  HeadChangeError,
  type HeadWriter,
  isIdempotent,
  type ResponseDraft,
} from "@platform/http1";
import {
  type BodyPart,
  type FieldEdit,
  FieldList,
  GuestError,
  type GuestMessages,
} from "@platform/wasm/http";
import { readMethod } from "../exchange/answers.ts";
import type { CompiledRoute, GateExchange, OriginalRequest } from "../exchange/exchange.ts";
import { PathScan } from "../exchange/path-scan.ts";
import type { RouteSpec } from "../shared-state/index.ts";
import type { RequestFields } from "./request-fields.ts";

/** Maximum response body that a guest may write, or ask to buffer. */
export const RESPONSE_BYTES_MAX = 8 * 1024 * 1024;
const NO_BYTES = Buffer.alloc(0);
const LENGTH_FIELD = "content-length";

const scan = new PathScan();

/** The body of one request. */
export interface RequestBody {
  /** The next part, of at least so many bytes if there are as many. */
  readPart: (bytesMin: number) => BodyPart | Promise<BodyPart>;
}

/** Messages of one exchange. Fields are read when a guest first asks for them. */
export class RequestMessages implements GuestMessages {
  readonly requestBodyBytesMax: number;
  readonly responseBodyBytesMax = RESPONSE_BYTES_MAX;
  status = 200;
  readonly #exchange: GateExchange;
  readonly #fields: RequestFields;
  readonly #body: RequestBody;
  #method: string | undefined;
  #uri: string | undefined;
  #opened: ReturnType<RequestFields["open"]> | undefined;
  /** Fields that follow the head, which does not contain them. */
  #following: readonly FieldEdit[] | undefined;
  #responseFields: FieldList | undefined;
  #responseBody: Uint8Array = NO_BYTES;

  constructor(
    exchange: GateExchange,
    { spec }: Pick<CompiledRoute, "spec">,
    fields: RequestFields,
    body: RequestBody,
  ) {
    this.#exchange = exchange;
    this.#fields = fields;
    this.#body = body;
    this.requestBodyBytesMax = spec.bodyBytesMax;
  }

  get method(): string {
    return this.#method ?? readMethod(this.#exchange);
  }

  set method(method: string) {
    this.#method = method;
  }

  get uri(): string {
    return this.#uri ?? this.#readTarget();
  }

  set uri(uri: string) {
    this.#uri = uri;
  }

  get protocolVersion(): string {
    return `HTTP/1.${this.#exchange.head.minor}`;
  }

  get sourceAddress(): string {
    const { connection, userData } = this.#exchange;
    const { clientAddress } = userData.forwarding;
    const port = clientAddress === connection.remoteAddress ? connection.remotePort : 0;
    return clientAddress.includes(":") ? `[${clientAddress}]:${port}` : `${clientAddress}:${port}`;
  }

  get requestFields(): FieldList {
    return this.#open().seen;
  }

  get responseFields(): FieldList {
    return (this.#responseFields ??= new FieldList());
  }

  readRequestBody(bytesMin: number): BodyPart | Promise<BodyPart> {
    return this.#body.readPart(bytesMin);
  }

  readResponseBody(): Uint8Array {
    return this.#responseBody;
  }

  /** The guest has set fields for the response before there is one. */
  get hasResponseFields(): boolean {
    return this.#responseFields !== undefined;
  }

  /** The fields that it has set for the response. */
  takeResponseFields(): [name: string, value: string][] {
    const set = this.#responseFields?.list() ?? [];
    this.#responseFields = undefined;
    return set;
  }

  /** The guest has changed something else than the body. */
  get isRequestChanged(): boolean {
    return (
      this.#opened?.seen.isChanged === true || this.#method !== undefined || this.#uri !== undefined
    );
  }

  /** The head of the request as the guest got it; before `applyRequest`. */
  describeOriginal(): Omit<OriginalRequest, "body"> {
    return {
      method: readMethod(this.#exchange),
      target: this.#readTarget(),
      fields: this.#fields.open(this.#exchange).seen.list(),
    };
  }

  /**
   * Gives the request that the guest has changed to the exchange. Throws `invalid-result` if it cannot be forwarded. With
   * `isLast`, no later step reads the request: fields that were added may follow the head, see {@link writeFollowing}.
   */
  applyRequest(spec: RouteSpec, isLast: boolean): void {
    const exchange = this.#exchange;
    if (!this.isRequestChanged || this.#addFields(isLast)) return;
    const fields = this.#fields.close(this.#open());
    const path = this.#uri === undefined ? exchange.forwardPath : checkUri(this.#uri, spec);
    const target = this.#uri ?? exchange.head.targetString();
    try {
      exchange.replaceHead({ method: this.method, target, fields });
    } catch (error) {
      throw toInvalid(error);
    }
    exchange.forwardPath = path;
    this.#noteChange();
  }

  /** Writes the fields that follow the head, for each attempt. */
  writeFollowing(writer: HeadWriter): void {
    if (this.#following === undefined) return;
    for (const { name, value } of this.#following) writer.field(name, value);
  }

  /** Adds fields to the request if the guest has changed nothing else, which costs less. */
  #addFields(isLast: boolean): boolean {
    if (this.#method !== undefined || this.#uri !== undefined) return false;
    const added = this.#fields.listAdded(this.#open(), this.#exchange);
    if (added === undefined) return false;
    const { list, mayFollowHead } = added;
    if (list.length === 0) return true;
    if (isLast && mayFollowHead) {
      this.#following = list;
      return true;
    }
    try {
      this.#exchange.appendFields(list.map(({ name, value }) => [name, value]));
    } catch (error) {
      throw toInvalid(error);
    }
    // Read again, they contain those that were added.
    this.#opened = undefined;
    return true;
  }

  /** Shows the response to the guest; `body` is empty unless it is buffered. */
  openResponse(
    status: number,
    fields: readonly (readonly [name: string, value: string])[],
    body: Uint8Array,
    contentLength: number,
  ): void {
    this.status = status;
    const hasLength = contentLength >= 0 && status !== 204;
    this.#responseFields = new FieldList(
      hasLength ? [...fields, ["Content-Length", String(contentLength)]] : fields,
    );
    this.#responseBody = body;
  }

  /** The fields of the response after the guest; the length is that of the content. */
  listResponseFields(): [name: string, value: string][] {
    return this.responseFields.list().filter(([name]) => name.toLowerCase() !== LENGTH_FIELD);
  }

  /** Gives a response that the guest has changed to the draft. `body` is the guest's own. */
  applyResponse(draft: ResponseDraft, body: Buffer | undefined): void {
    if (this.responseFields.isChanged) draft.headers = this.listResponseFields();
    const isHead = !draft.hasContent && draft.status !== 204 && draft.status !== 304;
    if (this.status !== draft.status) {
      draft.status = this.status;
      draft.hasContent = !isHead && this.status !== 204 && this.status !== 304;
    }
    if (body !== undefined) draft.contentLength = body.length;
  }

  #open(): ReturnType<RequestFields["open"]> {
    return (this.#opened ??= this.#fields.open(this.#exchange));
  }

  #readTarget(): string {
    const { head, forwardPath } = this.#exchange;
    const path = forwardPath ?? (head.pathString() || "/");
    const query = head.queryString();
    return query === undefined ? path : `${path}?${query}`;
  }

  // Metrics keep the client's method; the log shows what the upstream got.
  #noteChange(): void {
    const { head, forwardPath, userData } = this.#exchange;
    userData.isIdempotent = isIdempotent(head.methodId);
    if (userData.path === "") return;
    userData.method = readMethod(this.#exchange);
    userData.path = forwardPath ?? head.pathString();
  }
}

function toInvalid(error: unknown): unknown {
  if (!(error instanceof HeadChangeError)) return error;
  return new GuestError("invalid-result", `The guest made an invalid request: ${error.code}`);
}

/**
 * The path to forward for a changed target, null for the path as it is: as if a client had sent it. Where plans cut a prefix,
 * the path must still have it.
 */
function checkUri(uri: string, spec: RouteSpec): string | null {
  const bytes = Buffer.from(uri, "latin1");
  const fault = scan.read(bytes, 0, bytes.length, 0);
  if (fault !== null || !uri.startsWith("/") || uri.includes("#"))
    throw new GuestError("invalid-result", `The guest set a URI that is not valid: ${fault}`);
  if (spec.rawPath ? !scan.isRawSafe(0) : scan.hasEncodedSeparator)
    throw new GuestError("invalid-result", "The guest set a URI with an encoded separator.");
  const path = spec.rawPath ? uri.replace(/\?.*$/s, "") : scan.readPath();
  const prefix = spec.prefix.replace(/\/+$/, "");
  const cutsPrefix = spec.stripPrefix || spec.replacePrefix !== undefined;
  if (cutsPrefix && path !== prefix && !path.startsWith(`${prefix}/`))
    throw new GuestError("invalid-result", `The guest set a URI without the prefix ${prefix}.`);
  return spec.rawPath || scan.clean ? null : path;
}
