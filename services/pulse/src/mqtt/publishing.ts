// Publishes the messages of MQTT clients.
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { Publisher } from "../publish/publisher.ts";
import type { PendingRecord } from "../store/store.ts";
import type { Tenant } from "../topic/name.ts";
import type { Rights } from "../topic/rights.ts";
import { toPublishInput, type MqttMessage } from "./message-form.ts";
import { MqttError, REASON, type Reason } from "./packet/reason-codes.ts";
import type { RetainedMessages } from "./retained.ts";

/** A client, as the publisher of a message. */
export interface MessageSource {
  tenant: Tenant;
  rights: Rights;
  /** That of its session. */
  origin: Buffer;
}

/** Counts for metrics. */
export interface MqttCounts {
  published: number;
  /** Messages with QoS 0 that were refused, and those to topics of the server: their clients learn nothing of it. */
  dropped: number;
}

/** Publishes over the path of all protocols. */
export class MqttPublisher {
  readonly #publisher: Publisher;
  readonly #retained: RetainedMessages;
  readonly #clock: Clock;
  readonly counts: MqttCounts = { published: 0, dropped: 0 };

  constructor(publisher: Publisher, retained: RetainedMessages, clock: Clock) {
    this.#publisher = publisher;
    this.#retained = retained;
    this.#clock = clock;
  }

  /**
   * Publishes to a topic of the broker's name; resolves when the message and `also` are durable.
   * Throws an `MqttError` with the reason for the acknowledgement.
   */
  async publish(
    { tenant, rights, origin }: MessageSource,
    topic: string,
    message: MqttMessage,
    also: readonly PendingRecord[],
  ): Promise<void> {
    if (!rights.covers("publish", topic)) {
      throw new MqttError(REASON.notAuthorized, "publishing to this topic is not allowed");
    }
    const input = toPublishInput(topic, message, origin);
    const isDelayed = (input.delayMs ?? 0) > 0;
    if (message.retain && !isDelayed) {
      input.companion = this.#retained.createCompanion(tenant, input, this.#clock.now());
    }
    try {
      await this.#publisher.publish(tenant, [input], { isRated: false, also });
    } catch (error) {
      throw toMqttError(error);
    }
    this.counts.published++;
  }
}

/** The error of a broker's part as an `MqttError`; unknown errors keep no detail. */
export function toMqttError(error: unknown): MqttError {
  if (error instanceof MqttError) return error;
  if (!(error instanceof PlatformError)) {
    return new MqttError(REASON.unspecified, "an unexpected error occurred");
  }
  return new MqttError(toReason(error), error.detail);
}

function toReason({ code }: PlatformError): Reason {
  switch (code) {
    case "ERR_BACKPRESSURE":
    case "overloaded":
    case "too_many_requests":
    case "insufficient_storage":
      return REASON.quotaExceeded;
    case "unprocessable":
      return REASON.invalidPayloadFormat;
    case "forbidden":
      return REASON.notAuthorized;
    case "internal":
    case "unavailable":
      return REASON.unspecified;
    default:
      return REASON.implementationSpecific;
  }
}
