// Website configurations.
import type { WebsiteConfiguration } from "../../model/bucket-settings.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerXml } from "../answer.ts";
import { receiveDocument } from "../payload.ts";
import { defineSetting } from "./setting.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "../wire/xml.ts";

const ROUTING_RULES_MAX = 50;

/** The operations of the website configuration. */
export const websiteSetting = defineSetting({
  kind: "website",
  missing: "NoSuchWebsiteConfiguration",
  receive: async (context) => {
    const root = parseXml(await receiveDocument(context), "WebsiteConfiguration");
    root.allow("RedirectAllRequestsTo", "IndexDocument", "ErrorDocument", "RoutingRules");
    const all = root.find("RedirectAllRequestsTo");
    all?.allow("HostName", "Protocol");
    const index = root.find("IndexDocument");
    index?.allow("Suffix");
    const suffix = index?.getText("Suffix");
    if (all !== undefined && root.children.length > 1)
      throw malformedXml("RedirectAllRequestsTo excludes other elements");
    if (all === undefined && suffix === undefined)
      throw new S3Error(
        "InvalidArgument",
        "A value for IndexDocument Suffix must be provided if RedirectAllRequestsTo is empty",
      );
    if (suffix !== undefined && (suffix === "" || suffix.includes("/"))) {
      throw new S3Error("InvalidArgument", {
        message: "The IndexDocument Suffix is not well formed",
        path: ["IndexDocument", "Suffix"],
      });
    }
    const routing = root.find("RoutingRules");
    routing?.allow("RoutingRule");
    if ((routing?.list("RoutingRule").length ?? 0) > ROUTING_RULES_MAX)
      throw new S3Error("InvalidRequest", `At most ${ROUTING_RULES_MAX} routing rules are allowed`);
    const errorDocument = root.find("ErrorDocument");
    errorDocument?.allow("Key");
    const errorKey = errorDocument?.getText("Key");
    if (errorKey === "") throw malformedXml("the Key of the ErrorDocument is empty");
    return {
      ...(suffix === undefined ? {} : { indexSuffix: suffix }),
      ...(errorKey === undefined ? {} : { errorKey }),
      ...(all === undefined
        ? {}
        : { redirectAll: { host: readHost(all.getText("HostName")), ...readProtocol(all) } }),
      rules: root.read("RoutingRules", (list) => list.map("RoutingRule", readRule)) ?? [],
    };
  },
  answer: (website) => answerXml(xmlDocument("WebsiteConfiguration", formatWebsite(website))),
});

function formatWebsite(website: WebsiteConfiguration): string {
  const { redirectAll, indexSuffix, errorKey, rules } = website;
  return (
    (redirectAll === undefined
      ? ""
      : wrap(
          "RedirectAllRequestsTo",
          tag("HostName", redirectAll.host) + tag("Protocol", redirectAll.protocol),
        )) +
    (indexSuffix === undefined ? "" : wrap("IndexDocument", tag("Suffix", indexSuffix))) +
    (errorKey === undefined ? "" : wrap("ErrorDocument", tag("Key", errorKey))) +
    (rules.length === 0 ? "" : wrap("RoutingRules", rules.map(formatRule).join("")))
  );
}

function readRule(item: XmlElement): WebsiteConfiguration["rules"][number] {
  item.allow("Condition", "Redirect");
  const condition = item.find("Condition");
  const redirect = item.find("Redirect");
  if (redirect === undefined) throw malformedXml("a RoutingRule has no Redirect");
  redirect.allow(
    "HostName",
    "Protocol",
    "HttpRedirectCode",
    "ReplaceKeyPrefixWith",
    "ReplaceKeyWith",
  );
  if (redirect.children.length === 0) throw malformedXml("a Redirect is empty");
  condition?.allow("KeyPrefixEquals", "HttpErrorCodeReturnedEquals");
  if (condition?.children.length === 0) {
    throw new S3Error(
      "InvalidRequest",
      "Condition cannot be empty. To redirect all requests without a condition, the condition element shouldn't be present.",
    );
  }
  const prefix = condition?.findText("KeyPrefixEquals");
  const error = condition?.findText("HttpErrorCodeReturnedEquals");
  if (error !== undefined && !/^[45]\d\d$/.test(error))
    throw malformedXml("an HttpErrorCodeReturnedEquals is not an error status");
  const [host, code, prefixWith, keyWith] = [
    "HostName",
    "HttpRedirectCode",
    "ReplaceKeyPrefixWith",
    "ReplaceKeyWith",
  ].map((name) => redirect.findText(name));
  if (code !== undefined && !/^30[1-8]$/.test(code))
    throw malformedXml("an HttpRedirectCode is not a redirect status");
  if (prefixWith !== undefined && keyWith !== undefined) {
    throw new S3Error(
      "InvalidRequest",
      "You can only define ReplaceKeyPrefix or ReplaceKey but not both.",
    );
  }
  return {
    ...(prefix === undefined ? {} : { prefix }),
    ...(error === undefined ? {} : { errorStatus: Number(error) }),
    redirect: {
      ...(host === undefined ? {} : { host: readHost(host) }),
      ...readProtocol(redirect),
      ...(code === undefined ? {} : { status: Number(code) }),
      ...(prefixWith === undefined ? {} : { prefixWith }),
      ...(keyWith === undefined ? {} : { keyWith }),
    },
  };
}

function readHost(text: string): string {
  if (!/^[A-Za-z0-9.-]{1,253}(?::\d{1,5})?$/.test(text))
    throw malformedXml("a HostName is not valid");
  return text;
}

function readProtocol(item: XmlElement): { protocol?: string } {
  const protocol = item.findText("Protocol");
  if (protocol === undefined) return {};
  if (protocol !== "http" && protocol !== "https")
    throw malformedXml("a Protocol must be http or https");
  return { protocol };
}

function formatRule(rule: WebsiteConfiguration["rules"][number]): string {
  const { redirect } = rule;
  const condition =
    tag("KeyPrefixEquals", rule.prefix) + tag("HttpErrorCodeReturnedEquals", rule.errorStatus);
  return wrap(
    "RoutingRule",
    (condition === "" ? "" : wrap("Condition", condition)) +
      wrap(
        "Redirect",
        tag("HostName", redirect.host) +
          tag("Protocol", redirect.protocol) +
          tag("HttpRedirectCode", redirect.status) +
          tag("ReplaceKeyPrefixWith", redirect.prefixWith) +
          tag("ReplaceKeyWith", redirect.keyWith),
      ),
  );
}
