// CORS configurations.
import type { CorsRule } from "../../model/bucket-settings.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerXml } from "../answer.ts";
import { receiveDocument } from "../payload.ts";
import { defineSetting } from "./setting.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "../wire/xml.ts";

const RULES_MAX = 100;
const LIST_MAX = 200;
// A star is a valid character of a name (RFC 9110 section 5.1), but a wildcard in these rules.
const HEADER_NAME = /^[!#$%&'+.^_`|~0-9A-Za-z-]{1,256}$/;
const METHODS: ReadonlySet<string> = new Set(["GET", "PUT", "POST", "DELETE", "HEAD"]);

/** The operations of the CORS configuration. */
export const corsSetting = defineSetting({
  kind: "cors",
  missing: "NoSuchCORSConfiguration",
  receive: async (context) => {
    const root = parseXml(await receiveDocument(context), "CORSConfiguration");
    root.allow("CORSRule");
    const rules = root.map("CORSRule", readRule);
    if (rules.length === 0 || rules.length > RULES_MAX)
      throw malformedXml("it has no rules, or too many");
    return { rules };
  },
  answer: ({ rules }) =>
    answerXml(xmlDocument("CORSConfiguration", rules.map(formatRule).join(""))),
});

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
    throw new S3Error("InvalidRequest", {
      message: `Found unsupported HTTP method in CORS config. Unsupported method is ${bad}`,
      path: ["AllowedMethod", methods.indexOf(bad)],
    });
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
    throw new S3Error("InvalidRequest", {
      message: `ExposeHeader ${JSON.stringify(notExposed.slice(0, 64))} is not a header name. Wildcards are not supported for ExposeHeader.`,
      path: ["ExposeHeader", exposed.indexOf(notExposed)],
    });
  }
  const maxAge = item.findText("MaxAgeSeconds");
  if (maxAge !== undefined && !/^\d{1,9}$/.test(maxAge))
    throw malformedXml("MaxAgeSeconds is not a number", ["MaxAgeSeconds"]);
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
