// Lifecycle configurations.
import type {
  LifecycleConfiguration,
  LifecycleRule,
  TransitionMinimum,
} from "../../model/lifecycle.ts";
import { S3Error } from "../../model/s3-error.ts";
import { findTarget } from "../../upkeep/transition-engine.ts";
import { answerXml, type Header } from "../answer.ts";
import { getBucket, type OperationContext } from "../context.ts";
import { formatLifecycle, parseLifecycle } from "../lifecycle-document.ts";
import { receiveDocument } from "../payload.ts";
import { requireTierAllowed } from "./geo-placement.ts";
import { defineSetting } from "./setting.ts";
import type { RequestFields } from "../wire/fields.ts";
import { malformedXml } from "../wire/xml.ts";

const MINIMUM_FIELD = "x-amz-transition-default-minimum-object-size";
/** Classes that S3 knows, and that of the bucket's cold tier; others are those of a remote. */
const CLASSES: ReadonlySet<string> = new Set([
  "COLD",
  "DEEP_ARCHIVE",
  "GLACIER",
  "GLACIER_IR",
  "INTELLIGENT_TIERING",
  "ONEZONE_IA",
  "STANDARD_IA",
]);
const MINIMUMS: readonly TransitionMinimum[] = [
  "all_storage_classes_128K",
  "varies_by_storage_class",
];

/** The operations of the lifecycle configuration. */
export const lifecycleSetting = defineSetting({
  kind: "lifecycle",
  missing: "NoSuchLifecycleConfiguration",
  receive: async (context) => {
    const transitionMinimum = readMinimum(context.fields);
    const rules = parseLifecycle(await receiveDocument(context));
    for (const rule of rules) requireTargets(context, rule);
    return { rules, ...(transitionMinimum === undefined ? {} : { transitionMinimum }) };
  },
  answer: (lifecycle) => answerXml(formatLifecycle(lifecycle.rules), [toMinimumHeader(lifecycle)]),
  putHeaders: (lifecycle) => [toMinimumHeader(lifecycle)],
});

// A stored rule without effect would mislead its author.
function requireTargets(context: OperationContext, rule: LifecycleRule): void {
  const { api, bucketName } = context;
  const { coldTier, geoPlacement } = getBucket(context).settings;
  const moves = [...(rule.transitions ?? []), ...(rule.noncurrentTransitions ?? [])];
  for (const { storageClass } of moves) {
    const target = findTarget(api.store.remotes, bucketName, coldTier, storageClass);
    if (target !== undefined) {
      requireTierAllowed(api, geoPlacement, target.remote);
      continue;
    }
    if (!CLASSES.has(storageClass)) {
      throw malformedXml("objects cannot be moved to this StorageClass", ["StorageClass"]);
    }
    throw new S3Error("InvalidStorageClass", {
      message: `No remote has the storage class ${storageClass} for this bucket.`,
      path: ["StorageClass"],
    });
  }
}

function readMinimum(fields: RequestFields): TransitionMinimum | undefined {
  const text = fields.get(MINIMUM_FIELD);
  if (text === undefined) return undefined;
  const known = MINIMUMS.find((name) => name === text);
  if (known === undefined) {
    throw new S3Error("InvalidRequest", {
      message: "Invalid TransitionDefaultMinimumObjectSize found",
      elements: [["ArgumentValue", text.slice(0, 64)]],
    });
  }
  return known;
}

function toMinimumHeader({ transitionMinimum }: LifecycleConfiguration): Header {
  return [MINIMUM_FIELD, transitionMinimum ?? MINIMUMS[0]!];
}
