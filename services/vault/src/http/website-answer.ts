// Buckets as web sites: index documents, error documents, redirects, errors in HTML.
import { StoreError } from "../store.ts";
import type { Bucket } from "../store.ts";
import { S3Error } from "../wire/error.ts";
import { decodeUri } from "../sigv4/index.ts";
import { RequestQuery } from "../wire/operation.ts";
import { escapeXml } from "../wire/xml.ts";
import type { S3Answer } from "./answer.ts";
import { toS3Error } from "./answer.ts";
import { authorize } from "./authorization.ts";
import type { WebsiteConfiguration, WebsiteRedirect } from "./bucket/website.ts";
import type { ObjectApi, OperationContext } from "./context.ts";
import { getObject, headObject } from "./object/get-object.ts";
import type { S3Request } from "./request.ts";

/** The bucket whose site a Host names; undefined where it names none. */
export function readWebsiteBucket(host: string, domain: string | undefined): string | undefined {
  if (domain === undefined) return undefined;
  const name = host.replace(/:\d+$/, "").toLowerCase();
  return name.endsWith(`.${domain}`) ? name.slice(0, -domain.length - 1) : undefined;
}

/** Answers a request to a site: anonymous, reading only. */
export async function answerWebsite(
  api: ObjectApi,
  request: S3Request,
  name: string,
): Promise<S3Answer> {
  const bucket = api.store.findBucket(name);
  try {
    if (request.method !== "GET" && request.method !== "HEAD")
      throw new S3Error("MethodNotAllowed");
    if (bucket === undefined) throw new S3Error("NoSuchBucket");
    const website = bucket.settings.website as WebsiteConfiguration | undefined;
    if (website === undefined) throw new S3Error("NoSuchWebsiteConfiguration");
    return await answerPage(api, request, bucket, website);
  } catch (error) {
    return answerHtml(toS3Error(error));
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
    answer.reader?.close();
    return { status: 301, headers: [["Location", redirect[1]]] };
  } catch (thrown) {
    const error = toS3Error(thrown);
    if (
      error.code === "NoSuchKey" &&
      !isFolder &&
      (await hasPage(api, request, bucket, `${key}/${website.indexSuffix!}`))
    ) {
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
    return { ...page, status: error.status };
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

async function hasPage(
  api: ObjectApi,
  request: S3Request,
  bucket: Bucket,
  key: string,
): Promise<boolean> {
  try {
    await authorize(createContext(api, request, bucket, key));
    await api.store.headObject({ bucket: bucket.name, key });
    return true;
  } catch (error) {
    if (error instanceof S3Error || error instanceof StoreError) return false;
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
    name: "GetObject",
    caller: { kind: "anonymous" },
    signature: undefined,
    payload: { kind: "unsigned" },
    bucketName: bucket.name,
    key,
    fields: request.fields,
    // Parameters of pages are the pages' own.
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
  let target = path;
  if (redirect.keyWith !== undefined) target = redirect.keyWith;
  else if (redirect.prefixWith !== undefined)
    target = redirect.prefixWith + path.slice(prefix?.length ?? 0);
  const encoded = target.split("/").map(encodeURIComponent).join("/");
  const location = `${protocol}://${redirect.host ?? request.host}/${encoded}`;
  return { status: redirect.status ?? 301, headers: [["Location", location]] };
}

function answerHtml(error: S3Error): S3Answer {
  if (error.status === 304) return { status: 304, headers: error.headers };
  const title = `${error.status} ${error.code}`;
  return {
    status: error.status,
    headers: [
      ["Content-Type", "text/html; charset=utf-8"],
      ["x-amz-error-code", error.code],
    ],
    body: `<!doctype html>\n<html><head><title>${escapeXml(title)}</title></head><body><h1>${escapeXml(title)}</h1><p>${escapeXml(error.message)}</p></body></html>\n`,
  };
}
