// An event as subscribers receive it: the record of S3 event notifications, version 2.1 ("Event message structure").
import type { PendingEvent } from "../model/event.ts";
import type { EventNameForm } from "./target.ts";

const VERSION = "2.1";
const ANONYMOUS = "Anonymous";
/** The principal of lifecycle rules. */
const SERVICE = "s3.amazonaws.com";
/** The version id of unversioned objects, which S3 omits. */
const NO_VERSION: ReadonlySet<string> = new Set(["", "null"]);

/** The source of events. */
export interface EventOrigin {
  region: string;
  /** Canonical id of the owner of the buckets. */
  ownerId: string;
}

/** The body of one delivery as JSON: `{"Records":[one record]}`. Keys are percent-encoded, with `+` for a space. */
export function formatEvent(
  event: PendingEvent,
  { region, ownerId }: EventOrigin,
  names: EventNameForm,
): string {
  const { actor } = event;
  const isLifecycle = event.name.startsWith("Lifecycle");
  const isRemoval = event.name.startsWith("ObjectRemoved") || isLifecycle;
  return JSON.stringify({
    Records: [
      {
        eventVersion: VERSION,
        eventSource: names === "s3" ? "aws:s3" : "objstore",
        awsRegion: region,
        eventTime: new Date(event.timeMs).toISOString(),
        eventName: names === "s3" ? event.name : `objstore:${event.name}`,
        userIdentity: { principalId: actor.principalId ?? (isLifecycle ? SERVICE : ANONYMOUS) },
        requestParameters: { sourceIPAddress: actor.sourceIp ?? "" },
        responseElements: {
          "x-amz-request-id": actor.requestId ?? "",
          "x-store-request-id": actor.requestId ?? "",
        },
        s3: {
          s3SchemaVersion: "1.0",
          configurationId: event.ruleId,
          bucket: {
            name: event.bucket,
            ownerIdentity: { principalId: ownerId },
            arn: `arn:aws:s3:::${event.bucket}`,
          },
          object: {
            key: encodeKey(event.key),
            ...(isRemoval ? {} : { size: event.sizeBytes, eTag: event.etag }),
            ...(NO_VERSION.has(event.versionId) ? {} : { versionId: event.versionId }),
            sequencer: event.sequencer,
          },
        },
      },
    ],
  });
}

/** The body of a message without an event, by which a target is tested; the fields of S3's `s3:TestEvent`. */
export function formatTest(
  test: { bucket: string; ruleId: string; timeMs: number; id: string },
  names: EventNameForm,
): string {
  return JSON.stringify({
    Service: names === "s3" ? "Amazon S3" : "objstore",
    Event: `${names}:TestEvent`,
    Time: new Date(test.timeMs).toISOString(),
    Bucket: test.bucket,
    ConfigurationId: test.ruleId,
    RequestId: test.id,
    HostId: test.id,
  });
}

function encodeKey(key: string): string {
  const encoded = encodeURIComponent(key).replace(
    /[!'()~]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return encoded.replaceAll("%20", "+").replaceAll("%2F", "/");
}
