// `platform status`: the state of each service.
import { resolve } from "node:path";
import { readRunning } from "../data-folder/running-file.ts";
import { explainFileError } from "../data-folder/data-folder.ts";
import { explainStopped } from "../client/target.ts";
import { readStatus, type ServiceStatus } from "../control/service-status.ts";

/** Prints a table, or JSON; exit code 1 unless every service is up. */
export async function runStatus(options: { data: string; json: boolean }): Promise<number> {
  const dataDir = resolve(options.data);
  let state: ReturnType<typeof readRunning>;
  try {
    state = readRunning(dataDir);
  } catch (error) {
    throw explainFileError(error, dataDir);
  }
  if (state === undefined) throw explainStopped(dataDir);
  const services = await Promise.all(state.services.map(readStatus));
  const isUp = services.every(({ status }) => status === "up");
  const { pid, version, started_at } = state;
  if (options.json) {
    const document = { status: isUp ? "up" : "degraded", pid, version, started_at, services };
    process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  } else {
    process.stdout.write(
      `platform ${version} · process ${pid} · running for ${formatAge(started_at)}\n\n${formatTable(services)}`,
    );
  }
  return isUp ? 0 : 1;
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
    const { label, status, url, pid, started_at, restarts, detail } = service;
    const notes = [
      restarts === 0 ? "" : `${restarts} ${restarts === 1 ? "restart" : "restarts"}`,
      detail,
    ];
    return [
      label,
      status,
      url,
      pid === undefined ? "" : String(pid),
      status === "up" ? formatAge(started_at) : "",
      notes.filter((note) => note !== "").join(" · "),
    ];
  });
  const table = [["service", "state", "address", "process", "for", ""], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  return table
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at]!))
        .join("  ")
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join("");
}
