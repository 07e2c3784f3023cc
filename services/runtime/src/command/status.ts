// `platform status`: the state of each service.
import { readRunning } from "../data-folder/running-file.ts";
import { formatCommand } from "../data-folder/data-folder.ts";
import { locatePlatform } from "../data-folder/platform-list.ts";
import { explainStopped } from "../client/target.ts";
import { readStatus, type ServiceStatus } from "../control/service-status.ts";
import { formatTextTable } from "./text-table.ts";

/** Prints a table, or JSON; exit code 1 unless every service is up. */
export async function runStatus(options: { data: string; json: boolean }): Promise<number> {
  const dataDir = locatePlatform(options.data);
  const state = readRunning(dataDir);
  if (state === undefined) throw explainStopped(dataDir);
  const services = await Promise.all(state.services.map(readStatus));
  const isUp = services.every(({ status }) => status === "up");
  const { pid, version, started_at } = state;
  if (options.json) {
    const document = { status: isUp ? "up" : "degraded", pid, version, started_at, services };
    process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  } else {
    process.stdout.write(
      `platform ${version} · process ${pid} · running for ${formatAge(started_at)}\n\n${formatTable(services)}${formatProblems(services, dataDir)}`,
    );
  }
  return isUp ? 0 : 1;
}

// Reasons may be long: below the table, each with the next step.
function formatProblems(services: readonly ServiceStatus[], dataDir: string): string {
  return services
    .filter(({ status, detail }) => status !== "up" || detail !== "")
    .map(({ label, status, detail }) => {
      const reason = detail === "" ? status : detail;
      return `\n${label}: ${reason}\n      → ${suggestStep(label, status, dataDir)}\n`;
    })
    .join("");
}

/** The next step for a service with a problem. */
export function suggestStep(
  label: string,
  status: ServiceStatus["status"],
  dataDir: string,
): string {
  if (status === "stopped") return "start it in the console, or restart the platform";
  return formatCommand(dataDir, `logs ${label} --level warn`);
}

/** The time since a moment: `45 s`, `12 min`, `3 h`, `5 d`. */
function formatAge(since: string | undefined): string {
  if (since === undefined) return "";
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(since)) / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

function formatTable(services: readonly ServiceStatus[]): string {
  const rows = services.toReversed().map((service) => {
    const { label, status, pid, started_at, restarts } = service;
    const url = service.url === "" ? "" : (service.public_url ?? service.url);
    return [
      label,
      status,
      url,
      pid === undefined ? "" : String(pid),
      status === "up" ? formatAge(started_at) : "",
      restarts === 0 ? "" : `${restarts} ${restarts === 1 ? "restart" : "restarts"}`,
    ];
  });
  return formatTextTable([["service", "state", "address", "process", "for", ""], ...rows]);
}
