// The first screen of `platform up`: what runs where, who may enter, what to try.
import type { Trial } from "./services/entry.ts";

/** A running service as the screen shows it. */
export interface BannerService {
  name: string;
  label: string;
  url: string;
  description: string;
  pid: number;
  listeners: readonly { name: string; host: string; port: number }[];
}

/** Everything on the screen. */
export interface Banner {
  version: string;
  /** As an operator would type it. */
  dataDir: string;
  durationMs: number;
  services: readonly BannerService[];
  trials: readonly Trial[];
  /** What needs the operator's attention. */
  notes: readonly string[];
}

/** The screen for people; colours only where a terminal shows them. */
export function formatBanner(screen: Banner, colours: boolean): string {
  const bold = (text: string): string => (colours ? `\u001b[1m${text}\u001b[0m` : text);
  const dim = (text: string): string => (colours ? `\u001b[2m${text}\u001b[0m` : text);
  const seconds = (screen.durationMs / 1000).toFixed(1);
  const lines = [
    `${bold(`platform ${screen.version}`)} ${dim("·")} data in ${screen.dataDir} ${dim("·")} started in ${seconds} s`,
    "",
  ];
  const urlWidth = Math.max(...screen.services.map(({ url }) => url.length), 24);
  for (const service of screen.services) {
    lines.push(
      `  ${service.label.padEnd(10)} ${service.url.padEnd(urlWidth)} ${dim(service.description)}`,
    );
  }
  if (screen.trials.length > 0) lines.push("", bold("Try"), ...formatTrials(screen.trials, dim));
  if (screen.notes.length > 0)
    lines.push("", bold("Note"), ...screen.notes.map((note) => `  ${note}`));
  lines.push("", dim("ctrl-c stops everything in order"));
  return `${lines.join("\n")}\n\n`;
}

/** The screen for programs: one JSON line. */
export function formatBannerJson(screen: Banner): string {
  return `${JSON.stringify({
    type: "started",
    version: screen.version,
    data_dir: screen.dataDir,
    duration_ms: Math.round(screen.durationMs),
    services: screen.services,
    try: screen.trials,
    notes: screen.notes,
  })}\n`;
}

// Meanings stand in a column of their own as long as the commands leave room for one.
function formatTrials(trials: readonly Trial[], dim: (text: string) => string): string[] {
  const short = trials.filter(({ command }) => command.length <= 52);
  const width = Math.max(0, ...short.map(({ command }) => command.length));
  return trials.map(({ command, meaning }) => `  ${command.padEnd(width)}   ${dim(meaning)}`);
}
