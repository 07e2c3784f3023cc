// Configurations of request metrics: which requests of a bucket are counted on their own.
// Source: "PutBucketMetricsConfiguration", "ListBucketMetricsConfigurations".
import type { Bucket } from "../../model/bucket.ts";
import type { MetricsFilter } from "../../model/bucket-settings.ts";
import { S3Error } from "../../model/s3-error.ts";
import { StoreError } from "../../model/store-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, type OperationContext } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { readTags } from "../tagging-document.ts";
import { malformedXml, parseXml, tag, wrap, xmlDocument, type XmlElement } from "../wire/xml.ts";
import type { SettingHandlers } from "./setting.ts";

const CONFIGURATIONS_MAX = 1_000;
const PAGE = 100;
const TAGS_MAX = 10;
const ATTEMPTS_MAX = 10;

/** The operations of metrics configurations. */
export const metrics: SettingHandlers = {
  get: (context) => {
    if (!context.query.has("id")) return list(context);
    const id = requireId(context);
    const found = listConfigurations(getBucket(context)).find((one) => one.id === id);
    if (found === undefined) throw new S3Error("NoSuchConfiguration");
    return answerXml(xmlDocument("MetricsConfiguration", format(found)));
  },
  put: async (context) => {
    const id = requireId(context);
    const configuration = read(await receiveDocument(context), id);
    await change(context, (before) => {
      const others = before.filter((one) => one.id !== id);
      if (others.length >= CONFIGURATIONS_MAX) {
        throw new S3Error(
          "TooManyConfigurations",
          `A bucket has at most ${CONFIGURATIONS_MAX} metrics configurations.`,
        );
      }
      return [...others, configuration];
    });
    return answerEmpty(200);
  },
  delete: async (context) => {
    const id = requireId(context);
    await change(context, (before) => {
      const others = before.filter((one) => one.id !== id);
      if (others.length === before.length) throw new S3Error("NoSuchConfiguration");
      return others;
    });
    return answerEmpty();
  },
};

/** The configurations of a bucket by their ids. */
function listConfigurations({ settings }: Bucket): readonly MetricsFilter[] {
  const list = settings.metrics?.configurations ?? [];
  return list.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

function list(context: OperationContext) {
  const after = context.query.get("continuation-token") ?? "";
  const rest = listConfigurations(getBucket(context)).filter(({ id }) => id > after);
  const page = rest.slice(0, PAGE);
  const isTruncated = rest.length > PAGE;
  const inner =
    (after === "" ? "" : tag("ContinuationToken", after)) +
    page.map((one) => wrap("MetricsConfiguration", format(one))).join("") +
    tag("IsTruncated", isTruncated) +
    tag("NextContinuationToken", isTruncated ? page.at(-1)?.id : undefined);
  return answerXml(xmlDocument("ListMetricsConfigurationsResult", inner));
}

function requireId({ query }: OperationContext): string {
  const id = query.get("id") ?? "";
  if (id === "") throw new S3Error("InvalidArgument", "Missing required query parameter: id");
  return id;
}

// Two changes at once must not undo each other.
async function change(
  context: OperationContext,
  edit: (before: readonly MetricsFilter[]) => readonly MetricsFilter[],
): Promise<void> {
  const { bucketName, expectedBucket } = context;
  const { buckets } = context.api.store;
  for (let attempt = 1; ; attempt += 1) {
    const expected = expectedBucket ?? buckets.require(bucketName);
    const configurations = edit(listConfigurations(expected));
    try {
      if (configurations.length === 0) await buckets.deleteSetting(bucketName, "metrics", expected);
      else await buckets.setSetting(bucketName, "metrics", { configurations }, expected);
      return;
    } catch (error) {
      const isChanged = error instanceof StoreError && error.code === "PreconditionFailed";
      if (!isChanged || expectedBucket !== undefined || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

function read(body: Buffer, id: string): MetricsFilter {
  const root = parseXml(body, "MetricsConfiguration");
  root.allow("Id", "Filter");
  const named = root.getText("Id");
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(named))
    throw malformedXml("an Id has 1 to 64 letters, digits, dots, hyphens and underscores", ["Id"]);
  if (named !== id) throw new S3Error("InvalidArgument", "The Id is not the one in the query.");
  const filter = root.find("Filter");
  if (filter === undefined) return { id };
  if (filter.children.length !== 1) throw malformedXml("Filter has one criterion, or And");
  filter.allow("Prefix", "Tag", "And", "AccessPointArn");
  if (filter.find("AccessPointArn") !== undefined)
    throw new S3Error("NotImplemented", "Access points are not implemented.");
  return { id, ...(filter.read("And", readCriteria) ?? readCriteria(filter)) };
}

function readCriteria(item: XmlElement): Pick<MetricsFilter, "prefix" | "tags"> {
  item.allow("Prefix", "Tag", "AccessPointArn");
  if (item.find("AccessPointArn") !== undefined)
    throw new S3Error("NotImplemented", "Access points are not implemented.");
  const prefix = item.findText("Prefix");
  const tags = readTags(item, TAGS_MAX);
  return {
    ...(prefix === undefined ? {} : { prefix }),
    ...(Object.keys(tags).length === 0 ? {} : { tags }),
  };
}

function format({ id, prefix, tags = {} }: MetricsFilter): string {
  const pairs = Object.entries(tags).map(([key, value]) =>
    wrap("Tag", tag("Key", key) + tag("Value", value)),
  );
  const criteria = tag("Prefix", prefix) + pairs.join("");
  const count = pairs.length + (prefix === undefined ? 0 : 1);
  if (count === 0) return tag("Id", id);
  return tag("Id", id) + wrap("Filter", count === 1 ? criteria : wrap("And", criteria));
}
