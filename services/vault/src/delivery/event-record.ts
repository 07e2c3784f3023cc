// An event as subscribers get it: the record of S3 event notifications, version 2.1 ("Event message structure").
import type { PendingEvent } from "../event/types.ts";
import type { EventNameForm } from "./target.ts";

const VERSION = "2.1";
const ANONYMOUS = "anonymous";

/** The body of one delivery as JSON: `{"Records":[one record]}`. Keys are percent-encoded, a space being `+`. */
export function formatEvent(event: PendingEvent, region: string, names: EventNameForm): string {
  const { actor } = event;
  const isRemoval = event.name.startsWith("ObjectRemoved") || event.name.startsWith("Lifecycle");
  return JSON.stringify({
    Records: [
      {
        eventVersion: VERSION,
        eventSource: names === "s3" ? "aws:s3" : "objstore",
        awsRegion: region,
        eventTime: new Date(event.timeMs).toISOString(),
        eventName: names === "s3" ? event.name : `objstore:${event.name}`,
        userIdentity: { principalId: actor.principalId ?? ANONYMOUS },
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
            ownerIdentity: { principalId: actor.principalId ?? ANONYMOUS },
            arn: `arn:aws:s3:::${event.bucket}`,
          },
          object: {
            key: encodeKey(event.key),
            ...(isRemoval ? {} : { size: event.sizeBytes, eTag: event.etag }),
            ...(event.versionId === "" ? {} : { versionId: event.versionId }),
            sequencer: event.sequencer,
          },
        },
      },
    ],
  });
}

function encodeKey(key: string): string {
  const encoded = encodeURIComponent(key).replace(
    /[!'()~]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return encoded.replaceAll("%20", "+").replaceAll("%2F", "/");
}
