// GET, PUT and DELETE of a bucket setting.
import type { BucketSettingKind, BucketSettings } from "../../model/bucket-settings.ts";
import type { ErrorCode } from "../../model/errors.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, type Header, type S3Answer } from "../answer.ts";
import { getBucket, type OperationContext, type OperationHandler } from "../context.ts";

/** A setting that has all three operations. */
export interface SettingDefinition<Kind extends BucketSettingKind> {
  kind: Kind;
  /** The error of a GET if the setting is missing. */
  missing: ErrorCode;
  /** Receives and validates the setting of a PUT. */
  receive: (context: OperationContext) => Promise<BucketSettings[Kind]>;
  /** The answer of a GET. */
  answer: (setting: BucketSettings[Kind]) => S3Answer;
  /** Headers of the answer to a PUT. */
  putHeaders?: (setting: BucketSettings[Kind]) => readonly Header[];
  /** Default 200. */
  putStatus?: number;
}

/** The handlers of a setting. */
export interface SettingHandlers {
  readonly get: OperationHandler;
  readonly put: OperationHandler;
  readonly delete: OperationHandler;
}

/** Makes the handlers of a setting. */
export function defineSetting<Kind extends BucketSettingKind>({
  kind,
  missing,
  receive,
  answer,
  putHeaders,
  putStatus = 200,
}: SettingDefinition<Kind>): SettingHandlers {
  return {
    get: (context) => {
      const setting: BucketSettings[Kind] | undefined = getBucket(context).settings[kind];
      if (setting === undefined) throw new S3Error(missing);
      return answer(setting);
    },
    put: async (context) => {
      const setting = await receive(context);
      const { api, bucketName, expectedBucket } = context;
      await api.store.buckets.setSetting(bucketName, kind, setting, expectedBucket);
      return answerEmpty(putStatus, putHeaders?.(setting));
    },
    delete: async (context) => {
      const { api, bucketName, expectedBucket } = context;
      await api.store.buckets.deleteSetting(bucketName, kind, expectedBucket);
      return answerEmpty();
    },
  };
}
