// Acknowledgements over HTTP: a success means that it is on the disk.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi, createBearerGuard, listenHttp } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import { createServiceTracer } from "@platform/kernel/trace";
import { openLog } from "@platform/log";
import { Random, SimDisk } from "@platform/log/simulation";
import { GuestPool } from "@platform/wasm";
import { openBroker } from "../../src/broker.ts";
import { ReadAhead } from "../../src/dispatch/read-ahead.ts";
import { Admission } from "../../src/http/admission.ts";
import { ALL_RIGHTS } from "../../src/topic/rights.ts";
import { createAcknowledgementRoutes } from "../../src/http/acknowledgement-api.ts";

const limits = {
  topics_per_tenant_max: 10,
  partitions_max: 10,
  partitions_default: 1,
  backpressure_limit: 0,
  publish_rate: 0,
  publish_capacity: 1,
  message_bytes_max: 100_000,
  message_ids_max: 1_000,
  producers_max: 1_000,
  max_deliveries: 10,
  nack_backoff_ms: 1_000,
  nack_backoff_max_ms: 60_000,
  followed_topics_per_user_max: 10_000,
  followed_topics_per_tenant_max: 10_000,
  followed_topics_max: 10_000,
};

test(
  "an acknowledgement whose write fails is not answered with success",
  { timeout: 30_000 },
  async (t) => {
    const disk = new SimDisk(new Random(1));
    const journal = await openLog({ disk });
    const guests = new GuestPool();
    const broker = await openBroker({
      journal,
      guests,
      limits,
      clock: systemClock,
      idSource: createIdSource(),
      onTransform: () => undefined,
      onError: () => undefined,
    });
    const { topics, groups, publisher } = broker;
    const metrics = new MetricRegistry();
    const tracer = createServiceTracer({
      resource: { service: "pulse", version: "0.0.0" },
      endpoint: undefined,
      metrics,
      ids: createIdSource(),
      clock: systemClock,
    });
    const api = createApi({
      service: "pulse",
      version: "0.0.0",
      title: "Pulse",
      routes: createAcknowledgementRoutes({
        topics,
        groups,
        admission: new Admission({ rightsOf: () => ALL_RIGHTS }),
      }),
      guard: createBearerGuard(undefined),
      health: new HealthRegistry({ service: "pulse", version: "0.0.0" }),
      metrics,
      tracer,
      clock: systemClock,
      logger: createLogger({ service: "pulse", level: "error", write: () => undefined }),
    });
    const listener = await listenHttp({
      address: { host: "127.0.0.1", port: 0 },
      fetch: api.fetch,
    });
    t.after(async () => {
      await listener.close(0);
      await broker.close();
      await journal.close();
      await guests.close();
    });

    const places: string[] = [];
    for (const payload of ["one", "two", "three", "four"]) {
      const input = { topic: "a", payload: Buffer.from(payload) };
      const [outcome] = await publisher.publish("", [input], { isRated: false });
      assert.equal(outcome!.kind, "stored");
    }
    const topic = topics.get("", "a");
    const group = await groups.ensure("", "g", topic, () => 0);
    const delivered = Promise.withResolvers<void>();
    const sink = {
      canSend: () => true,
      readAhead: new ReadAhead(undefined),
      send: ({ partition, offset }: { partition: number; offset: number }) => {
        if (places.push(`${partition}:${offset}`) === 4) delivered.resolve();
      },
      end: () => undefined,
    };
    group.join(sink, { isManual: true, prefetch: 10, ackWaitMs: 60_000 });
    await delivered.promise;

    const send = async (operation: "ack" | "nack", id: string): Promise<number> => {
      const answer = await fetch(`${listener.url}/api/v1/${operation}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ topic: "a", group: "g", id }),
      });
      await answer.body?.cancel();
      return answer.status;
    };
    assert.equal(await send("ack", places[0]!), 200);
    disk.capacity = 0;
    assert.equal(await send("ack", places[1]!), 507);
    assert.equal(await send("nack", places[2]!), 507);
    disk.capacity = Number.POSITIVE_INFINITY;
    assert.equal(await send("ack", places[3]!), 200);
    assert.equal(broker.offsets.find("", "g", topic, 0)?.offset, 2);
  },
);
