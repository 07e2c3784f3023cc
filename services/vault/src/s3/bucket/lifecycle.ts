// Lifecycle configurations.
import type { LifecycleConfiguration, TransitionMinimum } from "../../model/lifecycle.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml, type Header } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { formatLifecycle, parseLifecycle } from "../lifecycle-document.ts";
import { receiveDocument } from "../payload.ts";
import type { RequestFields } from "../wire/fields.ts";

const MINIMUM_FIELD = "x-amz-transition-default-minimum-object-size";
const MINIMUMS: readonly TransitionMinimum[] = [
  "all_storage_classes_128K",
  "varies_by_storage_class",
];

/** GetBucketLifecycle */
export const getBucketLifecycle: OperationHandler = (context) => {
  const { lifecycle } = getBucket(context).settings;
  if (lifecycle === undefined) throw new S3Error("NoSuchLifecycleConfiguration");
  return answerXml(formatLifecycle(lifecycle.rules), [toMinimumHeader(lifecycle)]);
};

/** PutBucketLifecycle */
export const putBucketLifecycle: OperationHandler = async (context) => {
  const transitionMinimum = readMinimum(context.fields);
  const rules = parseLifecycle(await receiveDocument(context));
  // A rule that is kept and not carried out would have its author believe that objects are moved.
  if (
    rules.some((rule) => rule.transitions !== undefined || rule.noncurrentTransitions !== undefined)
  ) {
    throw new S3Error("NotImplemented", "Transitions between storage classes are not implemented.");
  }
  const lifecycle: LifecycleConfiguration = {
    rules,
    ...(transitionMinimum === undefined ? {} : { transitionMinimum }),
  };
  await context.api.store.setBucketSetting(context.bucketName, "lifecycle", lifecycle);
  return answerEmpty(200, [toMinimumHeader(lifecycle)]);
};

/** DeleteBucketLifecycle */
export const deleteBucketLifecycle: OperationHandler = async (context) => {
  await context.api.store.deleteBucketSetting(context.bucketName, "lifecycle");
  return answerEmpty();
};

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
