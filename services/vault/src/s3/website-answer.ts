// Buckets as websites: index documents, error documents, redirects, errors in HTML.
import { STATUS_CODES } from "node:http";
import type { WebsiteConfiguration, WebsiteRedirect } from "../model/bucket-settings.ts";
import type { Bucket } from "../model/bucket.ts";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";
import { type Header, HOST_ID, type S3Answer, toS3Error } from "./answer.ts";
import { authorize } from "./authorization.ts";
import type { ObjectApi, OperationContext } from "./context.ts";
import { getObject, headObject } from "./object/get-object.ts";
import { OPERATIONS } from "./operations.ts";
import type { S3Request } from "./request.ts";
import { decodeUri, encodeUri } from "./sigv4/index.ts";
import { RequestQuery } from "./wire/query.ts";
import { escapeXml } from "./wire/xml.ts";

const GET_OBJECT = OPERATIONS.find(({ name }) => name === "GetObject")!;

/** The bucket of a website's Host; `undefined` for other Hosts. */
export function readWebsiteBucket(host: string, domain: string | undefined): string | undefined {
  if (domain === undefined) return undefined;
  const name = host.replace(/:\d+$/, "").toLowerCase();
  return name.endsWith(`.${domain}`) ? name.slice(0, -domain.length - 1) : undefined;
}

/** Answers a request to a website: anonymous and read-only. */
export async function answerWebsite(
  api: ObjectApi,
  request: S3Request,
  name: string,
): Promise<S3Answer> {
  const bucket = api.store.buckets.find(name);
  try {
    if (request.method !== "GET" && request.method !== "HEAD")
      throw new S3Error("MethodNotAllowed", { headers: [["Allow", "GET, HEAD"]] });
    if (bucket === undefined) throw new S3Error("NoSuchBucket");
    const website = bucket.settings.website;
    if (website === undefined) throw new S3Error("NoSuchWebsiteConfiguration");
    return await answerPage(api, request, bucket, website);
  } catch (error) {
    return answerHtml(toS3Error(error), request.id);
  }
}

async function answerPage(
  api: ObjectApi,
  request: S3Request,
  bucket: Bucket,
  website: WebsiteConfiguration,
): Promise<S3Answer> {
  const path = decodeUri(request.rawPath.slice(1));
  if (website.redirectAll !== undefined) {
    return redirectTo(request, path, { ...website.redirectAll, status: 301 }, undefined);
  }
  const before = website.rules.find(
    ({ errorStatus, prefix }) => errorStatus === undefined && path.startsWith(prefix ?? ""),
  );
  if (before !== undefined) return redirectTo(request, path, before.redirect, before.prefix);
  const isFolder = path === "" || path.endsWith("/");
  const key = isFolder ? path + website.indexSuffix! : path;
  try {
    const answer = await readPage(api, request, bucket, key);
    const redirect = answer.headers?.find(([name]) => name === "x-amz-website-redirect-location");
    if (redirect === undefined) return answer;
    answer.object?.close();
    return { status: 301, headers: [["Location", redirect[1]]] };
  } catch (thrown) {
    const error = toS3Error(thrown);
    if (!isFolder && (await isFolderName(api, request, bucket, key, website.indexSuffix!))) {
      return { status: 302, headers: [["Location", `${request.rawPath}/`]] };
    }
    const after = website.rules.find(
      ({ errorStatus, prefix }) => errorStatus === error.status && path.startsWith(prefix ?? ""),
    );
    if (after !== undefined) return redirectTo(request, path, after.redirect, after.prefix);
    if (error.status === 304 || website.errorKey === undefined) throw error;
    return await readErrorPage(api, request, bucket, website.errorKey, error);
  }
}

async function readErrorPage(
  api: ObjectApi,
  request: S3Request,
  bucket: Bucket,
  key: string,
  error: S3Error,
): Promise<S3Answer> {
  try {
    const page = await readPage(api, request, bucket, key);
    const headers = [...(page.headers ?? []), ...getErrorHeaders(error)];
    return { ...page, status: error.status, headers };
  } catch (second) {
    if (second instanceof S3Error || second instanceof StoreError) throw error;
    throw second;
  }
}

async function readPage(
  api: ObjectApi,
  request: S3Request,
  bucket: Bucket,
  key: string,
): Promise<S3Answer> {
  const context = createContext(api, request, bucket, key);
  await authorize(context);
  return await (request.method === "HEAD" ? headObject : getObject)(context);
}

// The key does not exist but is a public folder with an index document. The redirect applies even if callers may not learn
// about missing keys.
async function isFolderName(
  api: ObjectApi,
  request: S3Request,
  bucket: Bucket,
  key: string,
  indexSuffix: string,
): Promise<boolean> {
  const index = `${key}/${indexSuffix}`;
  if ((await hasObject(api, bucket, key)) || !(await hasObject(api, bucket, index))) return false;
  try {
    await authorize(createContext(api, request, bucket, index));
    return true;
  } catch (error) {
    if (error instanceof S3Error) return false;
    throw error;
  }
}

async function hasObject(api: ObjectApi, bucket: Bucket, key: string): Promise<boolean> {
  try {
    await api.store.objects.describe({ bucket: bucket.name, key });
    return true;
  } catch (error) {
    if (error instanceof StoreError) return false;
    throw error;
  }
}

function createContext(
  api: ObjectApi,
  request: S3Request,
  bucket: Bucket,
  key: string,
): OperationContext {
  return {
    api,
    request,
    operation: GET_OBJECT,
    caller: { kind: "anonymous" },
    tenant: "",
    signature: undefined,
    payload: { kind: "unsigned" },
    bucketName: bucket.name,
    key,
    fields: request.fields,
    // The query parameters belong to the page.
    query: new RequestQuery([]),
    bucket,
  };
}

function redirectTo(
  request: S3Request,
  path: string,
  redirect: WebsiteRedirect,
  prefix: string | undefined,
): S3Answer {
  const protocol = redirect.protocol ?? (request.secure ? "https" : "http");
  let target = encodeUri(path, true);
  if (redirect.keyWith !== undefined) target = encodeRest(redirect.keyWith);
  else if (redirect.prefixWith !== undefined)
    target = encodeRest(redirect.prefixWith) + encodeUri(path.slice(prefix?.length ?? 0), true);
  // The query is kept, unless the redirect names another page.
  const isKept = redirect.keyWith === undefined && request.rawQuery !== "";
  const query = isKept ? `?${request.rawQuery}` : "";
  const location = `${protocol}://${redirect.host ?? request.host}/${target}${query}`;
  return { status: redirect.status ?? 301, headers: [["Location", location]] };
}

// The text of the configuration is used as is (`#!/` for example); only characters that a URL cannot contain are encoded.
function encodeRest(text: string): string {
  return encodeURI(text).replaceAll("%25", "%");
}

// As in S3, the error is in the headers as well, because a page of the site may hide it.
function answerHtml(error: S3Error, requestId: string): S3Answer {
  if (error.status === 304) return { status: 304, headers: error.headers };
  const title = `${error.status} ${STATUS_CODES[error.status] ?? error.code}`;
  const facts: (readonly [string, string])[] = [
    ["Code", error.code],
    ["Message", error.message],
    ...error.elements,
    ["RequestId", requestId],
    ["HostId", HOST_ID],
  ];
  const list = facts.map(([name, value]) => `<li>${name}: ${escapeXml(value)}</li>`).join("\n");
  return {
    status: error.status,
    headers: [["Content-Type", "text/html; charset=utf-8"], ...getErrorHeaders(error)],
    body: `<html>\n<head><title>${title}</title></head>\n<body>\n<h1>${title}</h1>\n<ul>\n${list}\n</ul>\n<hr/>\n</body>\n</html>\n`,
  };
}

function getErrorHeaders(error: S3Error): Header[] {
  return [
    ...error.headers,
    ["x-amz-error-code", error.code],
    ["x-amz-error-message", error.message.replaceAll(/[^\x20-\x7e]/g, "?")],
  ];
}
