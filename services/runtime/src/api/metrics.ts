// Metrics of the platform as a whole: services that are down cannot report it themselves.
import type { MetricFamily, MetricRegistry } from "@platform/kernel/metrics";
import type { RunningState, ServiceState } from "../data-folder/running-file.ts";

/** Values that are read at each scrape. */
export interface PlatformSources {
  readServices: () => RunningState["services"];
  /** Epoch ms; undefined if there was no backup. */
  readLastBackup: () => number | undefined;
}

/** Registers the metrics. */
export function collectPlatform(registry: MetricRegistry, sources: PlatformSources): void {
  registry.collect({
    name: "services",
    collect: () => {
      const services = sources.readServices();
      const family = (
        type: "gauge" | "counter",
        name: string,
        help: string,
        read: (service: ServiceState) => number,
      ): MetricFamily => {
        const samples = services.map((service) => ({
          labels: [["name", service.label]] as const,
          value: read(service),
        }));
        return { type, name: `platform_service_${name}`, help, samples };
      };
      return [
        family("gauge", "running", "1 while a service runs, also if it is not ready.", (service) =>
          service.state === "running" ? 1 : 0,
        ),
        family(
          "counter",
          "restarts_total",
          "Unexpected exits of a service since the platform was started.",
          ({ restarts }) => restarts,
        ),
      ];
    },
  });
  registry.collect({
    name: "backup",
    collect: () => [
      {
        type: "gauge",
        name: "platform_backup_completed_timestamp_seconds",
        help: "End of the last complete `platform backup`, in seconds since 1970; 0 if there was none.",
        samples: [{ labels: [], value: (sources.readLastBackup() ?? 0) / 1_000 }],
      },
    ],
  });
}
