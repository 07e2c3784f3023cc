// Runs of schedules on request.
import { segment } from "../api/api.ts";
import { callService } from "../session/session.ts";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

/** Permission to run a schedule. */
export const RUN = "runtime:manage";

/** Label of the command that runs a schedule. */
export function labelOfRun({ service, name }: { service: string; name: string }): string {
  return t("Run {name} of {service} now", { name, service });
}

/** Runs a schedule now. */
export async function runSchedule({ id, name }: { id: string; name: string }): Promise<void> {
  await attempt(
    () => callService("runtime", `/schedules/${segment(id)}/run`, { method: "POST", json: {} }),
    t("{name} runs now.", { name }),
  );
}
