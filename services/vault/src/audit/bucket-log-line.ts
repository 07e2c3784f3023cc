// Lines of server access logs.
// Source: "Amazon S3 server access log format".
import { type Caller, nameSession } from "../access/authorizer.ts";
import { HOST_ID } from "../s3/answer.ts";
import type { FinishedRequest } from "../s3/finished-request.ts";
import type { FinishedCall } from "../s3/inner-operations.ts";
import { OPERATIONS } from "../s3/operations.ts";
import { encodeUri } from "../s3/sigv4/index.ts";

/** The account of a store. */
export interface LogAccount {
  readonly canonicalId: string;
  readonly accountId: string;
}

const TEXT_CHARACTERS_MAX = 2_048;
const NONE = "-";
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
/** Query parameters that would let a reader of the log repeat the request. */
const SECRET_PARAMETERS =
  /([?&](?:x-(?:amz|store)-signature|x-(?:amz|store)-security-token|signature)=)[^&]*/gi;
/** Resources whose names are not those of their query parameter. */
const RESOURCES: Readonly<Record<string, string>> = {
  "": "",
  "list-type": "BUCKET",
  acl: "ACL",
  delete: "MULTI_OBJECT_DELETE",
  logging: "LOGGING_STATUS",
  policy: "BUCKETPOLICY",
  policyStatus: "BUCKETPOLICYSTATUS",
  publicAccessBlock: "PUBLIC_ACCESS_BLOCK",
  versions: "BUCKETVERSIONS",
  partNumber: "PART",
  uploadId: "UPLOAD",
};
const NAMES = nameOperations();

/** The line of a request to the object API. */
export function formatRequestLine(
  finished: FinishedRequest,
  account: LogAccount,
  { durationMs, endedMs }: { durationMs: number; endedMs: number },
): string {
  const { request, caller, answer, signature, status, errorCode } = finished;
  const { exchange, fields, method } = request;
  const isPresent = exchange.sequence === request.sequence;
  const { secure, tls } = exchange.connection;
  const query = request.rawQuery === "" ? "" : `?${request.rawQuery}`;
  const uri = `${request.rawPath}${query}`.replaceAll(SECRET_PARAMETERS, "$1REDACTED");
  return join([
    account.canonicalId,
    finished.bucketName,
    formatTime(endedMs),
    request.clientAddress,
    nameRequester(caller, account),
    request.id,
    nameOperation(finished.operation, method),
    formatKey(finished.key),
    quote(`${method} ${uri} HTTP/1.1`),
    String(status),
    errorCode,
    isPresent ? formatCount(exchange.bytesOut) : undefined,
    formatSize(finished),
    String(Math.round(durationMs)),
    undefined,
    quote(fields.get("referer")),
    quote(fields.get("user-agent")),
    findHeader(answer?.headers, "x-amz-version-id"),
    HOST_ID,
    signature === undefined ? undefined : signature.version === "AWS" ? "SigV2" : "SigV4",
    undefined,
    describeAuthentication(signature?.type),
    formatToken(request.host),
    secure ? formatToken(tls?.protocol) : undefined,
    undefined,
    undefined,
  ]);
}

/** The line of an operation that came another way: by the console, or as work of the store. */
export function formatCallLine(call: FinishedCall, account: LogAccount, endedMs: number): string {
  return join([
    account.canonicalId,
    call.bucket,
    formatTime(endedMs),
    call.clientAddress,
    nameRequester(call.caller, account),
    call.id,
    nameOperation(call.operation, "GET"),
    formatKey(call.key),
    quote(undefined),
    String(call.status),
    call.errorCode,
    ...Array.from({ length: 4 }, () => undefined),
    quote(undefined),
    quote(undefined),
    undefined,
    HOST_ID,
    ...Array.from({ length: 7 }, () => undefined),
  ]);
}

/** `[06/Feb/2019:00:00:38 +0000]`, from ms since 1970. */
function formatTime(timeMs: number): string {
  const iso = new Date(timeMs).toISOString();
  const month = MONTHS[Number(iso.slice(5, 7)) - 1];
  return `[${iso.slice(8, 10)}/${month}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000]`;
}

function join(fields: readonly (string | undefined)[]): string {
  return `${fields.map((field) => (field === undefined || field === "" ? NONE : field)).join(" ")}\n`;
}

function nameRequester(caller: Caller | undefined, account: LogAccount): string | undefined {
  switch (caller?.kind) {
    case undefined:
    case "anonymous":
      return undefined;
    case "root":
      return account.canonicalId;
    case "user":
      return `arn:aws:iam::${account.accountId}:user/${encodeUri(caller.name)}`;
    case "session":
      return `arn:aws:sts::${account.accountId}:assumed-role/${formatToken(nameSession(caller))}`;
    default:
      return caller satisfies never;
  }
}

function nameOperation(operation: string, method: string): string {
  if (operation === "Website") return `WEBSITE.${method}.OBJECT`;
  if (operation === "Preflight") return "REST.OPTIONS.PREFLIGHT";
  return NAMES.get(operation) ?? `REST.${method}.UNKNOWN`;
}

// `REST.GET.OBJECT`, by the method, the level and the parameters of a row.
function nameOperations(): ReadonlyMap<string, string> {
  return new Map(
    OPERATIONS.map(({ name, method, level, parameters }) => {
      const isCopy = parameters.includes("copy");
      const own = parameters.find((one) => one !== "copy" && one !== "form");
      const part = parameters.includes("partNumber") ? "partNumber" : own;
      const named = part === undefined ? undefined : (RESOURCES[part] ?? toResource(part));
      const object = part === "tagging" ? "OBJECT_TAGGING" : (named ?? "OBJECT");
      const resource = level === "object" ? object : (named ?? "BUCKET");
      return [name, `REST.${isCopy ? "COPY" : method}.${resource}`];
    }),
  );
}

function toResource(parameter: string): string {
  return parameter
    .replaceAll(/[A-Z]/g, (letter) => `_${letter}`)
    .replaceAll("-", "_")
    .toUpperCase();
}

function describeAuthentication(type: string | undefined): string | undefined {
  if (type === undefined) return undefined;
  return type === "REST-QUERY-STRING" ? "QueryString" : type === "POST" ? "-" : "AuthHeader";
}

// Keys have spaces and line ends; an encoded one is one word.
function formatKey(key: string): string | undefined {
  return key === "" ? undefined : encodeUri(key, true);
}

function formatSize({ request, answer, status }: FinishedRequest): string | undefined {
  const range = findHeader(answer?.headers, "content-range");
  if (range !== undefined) return formatCount(Number(/\/(\d+)$/.exec(range)?.[1]));
  if (answer?.contentLength !== undefined) return formatCount(answer.contentLength);
  const isUpload = request.method === "PUT" && status === 200;
  if (!isUpload) return undefined;
  const declared = request.fields.get("x-amz-decoded-content-length");
  return formatCount(Number(declared ?? request.fields.get("content-length")));
}

function formatCount(count: number): string | undefined {
  return count > 0 ? String(count) : undefined;
}

function findHeader(
  headers: readonly (readonly [string, string])[] | undefined,
  name: string,
): string | undefined {
  return headers?.find(([key]) => key.toLowerCase() === name)?.[1];
}

function formatToken(text: string | undefined): string | undefined {
  return text === undefined ? undefined : clean(text).replaceAll(" ", "%20");
}

function quote(text: string | undefined): string {
  return `"${text === undefined || text === "" ? NONE : clean(text)}"`;
}

// A field cannot end early, and a line is one line.
function clean(text: string): string {
  return text
    .slice(0, TEXT_CHARACTERS_MAX)
    .toWellFormed()
    .replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/gu, (character) => encodeURIComponent(character));
}
