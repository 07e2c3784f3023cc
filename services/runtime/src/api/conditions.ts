// Figures of the platform's services, and conditions that need an operator.
import type { AdminFeedsOptions } from "@platform/kernel/feeds";
import type { RunningServices } from "../control/running-services.ts";
import type { RunningState } from "../data-folder/running-file.ts";

type Conditions = ReturnType<NonNullable<AdminFeedsOptions["conditions"]>[number]>;

/** Describes the figures. */
export function describeFigures(states: RunningServices): AdminFeedsOptions["figures"] {
  return [
    {
      name: "services_running",
      unit: "",
      title: "Running services",
      kind: "gauge",
      read: () => states.state.services.filter(({ state }) => state === "running").length,
    },
    {
      name: "restarts",
      unit: "",
      title: "Unexpected exits of services",
      kind: "gauge",
      read: () => states.state.services.reduce((sum, { restarts }) => sum + restarts, 0),
    },
  ];
}

/** Lists services that failed or were stopped. */
export function describeConditions({ services }: RunningState): Conditions {
  return services.flatMap(({ name, label, state, last_failure: failure = "" }): Conditions => {
    const href = `/ui/runtime/services?service=${name}`;
    if (state === "restarting") {
      const detail = `${failure}; see the log of ${label}`;
      return [{ id: `failed:${name}`, level: "critical", title: `${label} exited`, detail, href }];
    }
    if (state !== "stopped") return [];
    const detail = "It stays stopped until it is started, or the platform is.";
    return [
      { id: `stopped:${name}`, level: "warning", title: `${label} is stopped`, detail, href },
    ];
  });
}
