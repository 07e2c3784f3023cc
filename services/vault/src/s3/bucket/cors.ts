// CORS configurations.
import type { OpaqueDocument } from "../../model/bucket.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "../wire/xml.ts";

const RULES_MAX = 100;
const LIST_MAX = 200;
// A star is a name's character (RFC 9110 section 5.1), but stands for any text in these rules.
const HEADER_NAME = /^[!#$%&'+.^_`|~0-9A-Za-z-]{1,256}$/;
const METHODS: ReadonlySet<string> = new Set(["GET", "PUT", "POST", "DELETE", "HEAD"]);

/** One rule, as it is kept. */
export type CorsRule = {
  readonly id: string;
  /** At most one `*` in each. */
  readonly origins: readonly string[];
  readonly methods: readonly string[];
  /** In any case, at most one `*` in each. */
  readonly headers: readonly string[];
  readonly exposed: readonly string[];
  readonly maxAgeSeconds: number | null;
};

/** GetBucketCors */
export const getBucketCors: OperationHandler = (context) => {
  const { cors } = getBucket(context).settings;
  if (cors === undefined) throw new S3Error("NoSuchCORSConfiguration");
  const rules = (cors as unknown as { rules: CorsRule[] }).rules.map(formatRule);
  return answerXml(xmlDocument("CORSConfiguration", rules.join("")));
};

/** PutBucketCors */
export const putBucketCors: OperationHandler = async (context) => {
  const root = parseXml(await receiveDocument(context), "CORSConfiguration");
  root.allow("CORSRule");
  const rules = root.list("CORSRule").map(readRule);
  if (rules.length === 0 || rules.length > RULES_MAX)
    throw malformedXml("it has no rules, or too many");
  await context.api.store.setBucketSetting(context.bucketName, "cors", {
    rules: rules as unknown as OpaqueDocument[],
  });
  return answerEmpty(200);
};

/** DeleteBucketCors */
export const deleteBucketCors: OperationHandler = async (context) => {
  await context.api.store.deleteBucketSetting(context.bucketName, "cors");
  return answerEmpty();
};

function readRule(item: XmlElement): CorsRule {
  item.allow(
    "ID",
    "AllowedOrigin",
    "AllowedMethod",
    "AllowedHeader",
    "ExposeHeader",
    "MaxAgeSeconds",
  );
  const texts = (name: string): string[] => {
    const list = item.list(name).map((child) => child.text.trim());
    if (list.length > LIST_MAX) throw malformedXml(`there are too many ${name}`);
    return list;
  };
  const [origins, methods, headers] = [
    texts("AllowedOrigin"),
    texts("AllowedMethod"),
    texts("AllowedHeader"),
  ];
  if (origins.length === 0 || methods.length === 0)
    throw malformedXml("a rule has no origin or no method");
  const bad = methods.find((method) => !METHODS.has(method));
  if (bad !== undefined) {
    throw new S3Error(
      "InvalidRequest",
      `Found unsupported HTTP method in CORS config. Unsupported method is ${bad}`,
    );
  }
  if ([...origins, ...headers].some((text) => text.split("*").length > 2)) {
    throw new S3Error(
      "InvalidRequest",
      "AllowedOrigin and AllowedHeader can not have more than one wildcard.",
    );
  }
  const exposed = texts("ExposeHeader");
  const notExposed = exposed.find((name) => !HEADER_NAME.test(name));
  if (notExposed !== undefined) {
    throw new S3Error(
      "InvalidRequest",
      `ExposeHeader ${JSON.stringify(notExposed.slice(0, 64))} is no name of a header. Wildcards are not supported for ExposeHeader.`,
    );
  }
  const maxAge = item.findText("MaxAgeSeconds");
  if (maxAge !== undefined && !/^\d{1,9}$/.test(maxAge))
    throw malformedXml("MaxAgeSeconds is no number");
  return {
    id: item.findText("ID") ?? "",
    origins,
    methods,
    headers,
    exposed,
    maxAgeSeconds: maxAge === undefined ? null : Number(maxAge),
  };
}

function formatRule(rule: CorsRule): string {
  const all = (name: string, texts: readonly string[]): string =>
    texts.map((text) => tag(name, text)).join("");
  return wrap(
    "CORSRule",
    (rule.id === "" ? "" : tag("ID", rule.id)) +
      all("AllowedHeader", rule.headers) +
      all("AllowedMethod", rule.methods) +
      all("AllowedOrigin", rule.origins) +
      all("ExposeHeader", rule.exposed) +
      (rule.maxAgeSeconds === null ? "" : tag("MaxAgeSeconds", rule.maxAgeSeconds)),
  );
}
