// The stored form of wills.
import type { Will } from "../packet/packets.ts";
import type { StoredWill } from "./session-records.ts";

export function toStoredWill({ topic, payload, qos, retain, properties }: Will): StoredWill {
  const { correlationData, ...others } = properties;
  return {
    topic,
    payload: payload.toString("base64"),
    qos,
    retain,
    properties: {
      ...others,
      ...(correlationData === undefined
        ? {}
        : { correlationData: correlationData.toString("base64") }),
    },
  };
}

export function fromStoredWill({ topic, payload, qos, retain, properties }: StoredWill): Will {
  const { correlationData, ...others } = properties;
  return {
    topic,
    payload: Buffer.from(payload, "base64"),
    qos,
    retain,
    properties: {
      ...others,
      ...(correlationData === undefined
        ? {}
        : { correlationData: Buffer.from(correlationData, "base64") }),
    },
  };
}
