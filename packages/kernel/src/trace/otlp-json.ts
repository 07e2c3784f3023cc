// JSON encoding of spans in OTLP. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
import type { AttributeValue, FinishedSpan, SpanKind } from "./tracer.ts";

/** The sender of spans. */
export interface TraceResource {
  service: string;
  version: string;
  /** Distinguishes several processes of a service. */
  instance?: string;
}

const KINDS: Readonly<Record<SpanKind, number>> = {
  internal: 1,
  server: 2,
  client: 3,
  producer: 4,
  consumer: 5,
};
const STATUS_CODES = { unset: 0, ok: 1, error: 2 } as const;

/** Encodes the body of an export request (ExportTraceServiceRequest). */
export function encodeSpans(resource: TraceResource, spans: readonly FinishedSpan[]): string {
  const attributes: [string, AttributeValue][] = [
    ["service.name", resource.service],
    ["service.version", resource.version],
    ["telemetry.sdk.name", "platform"],
    ["telemetry.sdk.language", "nodejs"],
  ];
  if (resource.instance !== undefined) attributes.push(["service.instance.id", resource.instance]);
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: encodeAttributes(attributes) },
        scopeSpans: [
          {
            scope: { name: "platform", version: resource.version },
            spans: spans.map(encodeSpan),
          },
        ],
      },
    ],
  });
}

function encodeSpan(span: FinishedSpan): object {
  return {
    traceId: span.context.traceId,
    spanId: span.context.spanId,
    ...(span.parentSpanId === "" ? {} : { parentSpanId: span.parentSpanId }),
    ...(span.context.traceState === "" ? {} : { traceState: span.context.traceState }),
    flags: span.context.sampled ? 1 : 0,
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: toNanoseconds(span.startMs),
    endTimeUnixNano: toNanoseconds(span.endMs),
    attributes: encodeAttributes(span.attributes),
    droppedAttributesCount: span.attributesDropped,
    events: span.events.map((event) => ({
      timeUnixNano: toNanoseconds(event.atMs),
      name: event.name,
      attributes: encodeAttributes(Object.entries(event.attributes)),
    })),
    status: {
      code: STATUS_CODES[span.status],
      ...(span.statusMessage === "" ? {} : { message: span.statusMessage }),
    },
  };
}

function encodeAttributes(attributes: Iterable<readonly [string, AttributeValue]>): object[] {
  return Array.from(attributes, ([key, value]) => ({ key, value: encodeValue(value) }));
}

function encodeValue(value: AttributeValue): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  // 64-bit integers are decimal strings in this encoding.
  if (typeof value === "number") {
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  }
  return { arrayValue: { values: value.map((item) => ({ stringValue: item })) } };
}

// Nanoseconds since 1970 exceed the exact range of numbers, so milliseconds and the remainder are formatted separately.
function toNanoseconds(ms: number): string {
  const whole = Math.floor(ms);
  const rest = Math.min(999_999, Math.round((ms - whole) * 1e6));
  return `${whole}${String(rest).padStart(6, "0")}`;
}
