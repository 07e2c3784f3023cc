// Triggers of a bucket: PutBucketTriggers, GetBucketTriggers with their last runs, DeleteBucketTriggers
import { z } from "zod";
import { storePrincipal } from "../../access/stored-requester.ts";
import type { ModulePin } from "../../model/guest.ts";
import { S3Error } from "../../model/s3-error.ts";
import { isReservedBucket } from "../../model/bucket.ts";
import type { TriggerDocument, TriggerSettings } from "../../model/trigger.ts";
import { answerEmpty } from "../answer.ts";
import { getBucket, type OperationContext, type OperationHandler } from "../context.ts";
import { answerJson, readJsonDocument, requireMatch, tagDocument } from "../json-document.ts";
import { receiveDocument } from "../payload.ts";
import { checkTemplate } from "../target-template.ts";

const DOCUMENT_BYTES_MAX = 1024 * 1024;
const TRIGGERS_MAX = 100;
const MODULES_MAX = 8;
const TIMEOUT_MS_MAX = 300_000;
const EVENTS: ReadonlySet<string> = new Set(
  ["*", "Put", "Post", "Copy", "CompleteMultipartUpload"].map((kind) => `ObjectCreated:${kind}`),
);

const moduleName = z.string().min(1).max(192);
const triggersSchema = z.strictObject({
  triggers: z
    .array(
      z.strictObject({
        id: z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, {
          error: "expected 1 to 64 letters, digits, dots, underscores or hyphens",
        }),
        events: z
          .array(
            z
              .string()
              .overwrite((text) => text.replace(/^(?:s3|objstore):/, ""))
              .refine((name) => EVENTS.has(name), {
                error: "expected objstore:ObjectCreated:* or one of its kinds",
              }),
          )
          .min(1)
          .max(EVENTS.size),
        filter: z
          .strictObject({
            prefix: z.string().max(1_024).exactOptional(),
            suffix: z.string().max(1_024).exactOptional(),
          })
          .exactOptional(),
        module: moduleName,
        target: z.strictObject({
          bucket: z.string().min(1).max(63),
          key: z.string().min(1).max(1_024),
          content_type: z
            .string()
            .regex(/^[\x20-\x7e]{1,256}$/)
            .exactOptional(),
        }),
        timeout_ms: z.int().min(0).max(TIMEOUT_MS_MAX).exactOptional(),
        enabled: z.boolean().default(true),
      }),
    )
    .max(TRIGGERS_MAX)
    .default([]),
  default_modules: z.array(moduleName).max(MODULES_MAX).exactOptional(),
});

export const putBucketTriggers: OperationHandler = async (context) => {
  const { api, bucketName, request, caller } = context;
  const body = await receiveDocument(context, { bytesMax: DOCUMENT_BYTES_MAX });
  const { triggers, default_modules: defaults } = readJsonDocument(body, triggersSchema);
  if (defaults !== undefined && defaults.length > 0) api.guests.pin(defaults);
  const expected = requireMatch(context, showTriggers(context));
  const before = getBucket(context).settings.triggers;
  const settings: TriggerSettings = {
    triggers,
    ...(defaults === undefined ? {} : { default_modules: defaults }),
    pins: pinModules(context, triggers, before),
    requester: {
      principals: [storePrincipal(caller)],
      address: request.clientAddress,
      secure: request.secure,
    },
  };
  await api.store.buckets.setSetting(bucketName, "triggers", settings, expected);
  return answerEmpty(200, [["ETag", tagDocument(toDocument(settings))]]);
};

/** With `runs`, the last runs instead of the document. */
export const getBucketTriggers: OperationHandler = (context) => {
  const document = showTriggers(context);
  if (context.query.get("runs") !== undefined) {
    return answerJson({ runs: context.api.guests.listRuns(context.bucketName) });
  }
  if (document === undefined) throw new S3Error("NoSuchTriggers");
  return answerJson(document, [["ETag", tagDocument(document)]]);
};

/** Waiting runs end with their triggers. */
export const deleteBucketTriggers: OperationHandler = async (context) => {
  const { api, bucketName } = context;
  const expected = requireMatch(context, showTriggers(context));
  await api.store.buckets.deleteSetting(bucketName, "triggers", expected);
  return answerEmpty();
};

// Throws for a trigger that could not work. One that keeps its module's name keeps the version, too, unless it is put again
// with another one.
function pinModules(
  { api, bucketName }: OperationContext,
  triggers: readonly TriggerDocument[],
  before: TriggerSettings | undefined,
): Record<string, ModulePin> {
  const pins: Record<string, ModulePin> = {};
  const ids = new Set<string>();
  for (const { id, module, target } of triggers) {
    if (ids.has(id)) throw new S3Error("InvalidArgument", `triggers: the id ${id} is not unique.`);
    ids.add(id);
    checkTemplate(target.key);
    api.store.buckets.require(target.bucket);
    if (isReservedBucket(target.bucket)) throw new S3Error("AccessDenied");
    if (target.bucket === bucketName && target.key === "{key}") {
      throw new S3Error("InvalidArgument", `triggers: the target of ${id} is the object itself.`);
    }
    const kept = before?.triggers.find((one) => one.id === id && one.module === module);
    const pin = (kept === undefined ? undefined : before?.pins[id]) ?? api.guests.pin([module])[0]!;
    if (!module.endsWith("@latest")) pins[id] = pin;
  }
  return pins;
}

function showTriggers(context: OperationContext) {
  const { triggers } = getBucket(context).settings;
  return triggers === undefined ? undefined : toDocument(triggers);
}

function toDocument({ triggers, default_modules: defaults, pins }: TriggerSettings) {
  return {
    triggers: triggers.map(({ events, ...trigger }) => ({
      ...trigger,
      events: events.map((event) => `objstore:${event}`),
      ...(pins[trigger.id] === undefined ? {} : { module_sha256: pins[trigger.id]!.sha256 }),
    })),
    ...(defaults === undefined ? {} : { default_modules: defaults }),
  };
}
