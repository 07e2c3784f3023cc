// Object storage of this service: its bucket, by the S3 protocol.
import { S3mini, S3ServiceError } from "s3mini";
import { requireSettings } from "./required.ts";

/** Content of an object. */
export type ObjectBody = string | Uint8Array | Blob | ReadableStream<Uint8Array>;

/** Options of `objects.put`. */
export interface PutOptions {
  /** Media type; default: that of a Blob, or `application/octet-stream`. */
  type?: string;
}

/** Options of `objects.list`. */
export interface ListOptions {
  /** Only keys that begin with it. */
  prefix?: string;
  /** 1 to 1 000; default 1 000. */
  limit?: number;
  /** `next` of the previous page. */
  cursor?: string | undefined;
}

/** A page of objects, sorted by key. */
export interface ObjectPage {
  readonly objects: readonly ListedObject[];
  /** Cursor of the next page; undefined on the last one. */
  readonly next: string | undefined;
}

/** An object in a list. */
export interface ListedObject {
  readonly key: string;
  /** In bytes. */
  readonly size: number;
  readonly modified: Date;
}

/** Options of presigned URLs. */
export interface UrlOptions {
  /** Lifetime; default 300, at most 604 800. */
  seconds?: number;
}

/** Options of URLs for downloads. */
export interface DownloadUrlOptions extends UrlOptions {
  /** Name under which browsers save the file; without it, they show what they can. */
  saveAs?: string;
}

const DEFAULT_TYPE = "application/octet-stream";
const REQUEST_MS = 600_000;
const PAGE_MAX = 1_000;
const URL_SECONDS = 300;

let client: S3mini | undefined;

/** Stores an object; large ones in parts, which are discarded if the upload fails. */
export async function putObject(
  key: string,
  body: ObjectBody,
  { type }: PutOptions,
): Promise<void> {
  const typeOfBlob = body instanceof Blob && body.type !== "" ? body.type : DEFAULT_TYPE;
  await getClient().putAnyObject(key, body as string, type ?? typeOfBlob);
}

/** Opens an object; undefined if it does not exist. */
export async function getObject(key: string): Promise<Response | undefined> {
  try {
    return (await getClient().getObjectResponse(key)) ?? undefined;
  } catch (error) {
    if (error instanceof S3ServiceError && error.status === 404) return undefined;
    throw error;
  }
}

/** Deletes an object; one that does not exist is no error. */
export async function deleteObject(key: string): Promise<void> {
  await getClient().deleteObject(key);
}

/** Lists objects by page. */
export async function listObjects({
  prefix = "",
  limit = PAGE_MAX,
  cursor,
}: ListOptions): Promise<ObjectPage> {
  const page = await getClient().listObjectsPaged(undefined, prefix, limit, cursor);
  if (page === null || page === undefined) throw new Error("objects: the bucket does not exist");
  return {
    objects: (page.objects ?? []).map(({ Key, Size, LastModified }) => ({
      key: Key,
      size: Size,
      modified: new Date(LastModified),
    })),
    next: page.nextContinuationToken,
  };
}

/** Creates a URL with which a browser stores an object by PUT. */
export function createUploadUrl(
  key: string,
  { seconds = URL_SECONDS }: UrlOptions,
): Promise<string> {
  return getClient().getPresignedUrl("PUT", key, seconds);
}

/** Creates a URL with which a browser reads an object. */
export function createDownloadUrl(
  key: string,
  { seconds = URL_SECONDS, saveAs }: DownloadUrlOptions,
): Promise<string> {
  // RFC 6266: other characters than ASCII are percent-encoded.
  const disposition =
    saveAs === undefined ? undefined : `attachment; filename*=UTF-8''${encodeName(saveAs)}`;
  const query = disposition === undefined ? {} : { "response-content-disposition": disposition };
  return getClient().getPresignedUrl("GET", key, seconds, query);
}

function encodeName(name: string): string {
  return encodeURIComponent(name).replaceAll(
    /[!'()*]/g,
    (sign) => `%${sign.codePointAt(0)!.toString(16).toUpperCase()}`,
  );
}

function getClient(): S3mini {
  if (client !== undefined) return client;
  const settings = requireSettings("objects", [
    "s3_endpoint",
    "s3_region",
    "s3_access_key",
    "s3_secret_key",
    "s3_bucket",
  ]);
  const { s3_endpoint: endpoint, s3_bucket: bucket } = settings;
  client = new S3mini({
    endpoint: `${endpoint.replace(/\/$/, "")}/${bucket}`,
    region: settings.s3_region,
    accessKeyId: settings.s3_access_key,
    secretAccessKey: settings.s3_secret_key,
    requestAbortTimeout: REQUEST_MS,
  });
  // s3mini 1.0.2 sends !'()* of queries unescaped, which storage rejects as another signature.
  Reflect.set(client, "_buildCanonicalQueryString", formatQuery);
  return client;
}

// RFC 3986, sorted by name, as signatures require.
function formatQuery(query: Readonly<Record<string, unknown>> | undefined): string {
  return Object.entries(query ?? {})
    .map(([name, value]) => [encodeName(name), encodeName(String(value))] as const)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}
