// Metrics of remotes.
import type { MetricFamily, MetricRegistry } from "@platform/kernel/metrics";
import type { RemoteUsage } from "../model/remote.ts";
import type { Remote } from "./remote.ts";

interface Measured {
  readonly remote: Remote;
  readonly usage: RemoteUsage;
}

/** Registers the metrics; a series for each remote, of which there are 100 at most. */
export function collectRemotes(registry: MetricRegistry, list: () => readonly Measured[]): void {
  registry.collect({
    name: "vault-remotes",
    collect: (): MetricFamily[] => {
      const all = list();
      const each = (read: (one: Measured) => number) =>
        all.map((one) => sample({ remote: one.remote.settings.name }, read(one)));
      return [
        gauge(
          "blobs",
          "Bodies of objects in a remote.",
          each(({ usage }) => usage.blobs),
        ),
        gauge(
          "stored_bytes",
          "Bytes in a remote.",
          each(({ usage }) => usage.bytes),
        ),
        gauge(
          "up",
          "0 if the last request to a remote has failed.",
          each(({ remote }) => (remote.health.state === "failing" ? 0 : 1)),
        ),
        counter(
          "requests_total",
          "Attempts of requests to a remote, by operation and result.",
          all.flatMap(({ remote }) => listRequests(remote)),
        ),
        counter(
          "wrong_blocks_total",
          "Blocks from a remote that did not match their checksum; they were not delivered.",
          each(({ remote }) => remote.wrongBlocks),
        ),
        counter(
          "bytes_total",
          "Bytes sent to a remote and received from it.",
          all.flatMap(({ remote }) => {
            const { counts, settings } = remote;
            return [
              sample({ remote: settings.name, direction: "sent" }, counts.sentBytes),
              sample({ remote: settings.name, direction: "received" }, counts.receivedBytes),
            ];
          }),
        ),
      ];
    },
  });
}

function listRequests({ counts, settings }: Remote) {
  return [...counts.requests].map(([name, value]) => {
    const [operation = "", result = ""] = name.split(" ");
    return sample({ remote: settings.name, operation, result }, value);
  });
}

type Samples = readonly ReturnType<typeof sample>[];

function gauge(name: string, help: string, samples: Samples): MetricFamily {
  return { type: "gauge", name: `platform_vault_remote_${name}`, help, samples };
}

function counter(name: string, help: string, samples: Samples): MetricFamily {
  return { type: "counter", name: `platform_vault_remote_${name}`, help, samples };
}

function sample(labels: Readonly<Record<string, string>>, value: number) {
  return { labels: Object.entries(labels), value };
}
