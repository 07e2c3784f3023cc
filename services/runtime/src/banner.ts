// The banner of `platform up`: services with their addresses, credentials, commands to try.
import type { Trial } from "./services/entry.ts";

/** A running service. */
export interface BannerService {
  name: string;
  label: string;
  url: string;
  description: string;
  pid: number;
  listeners: readonly { name: string; host: string; port: number }[];
}

/** Content of the banner. */
export interface Banner {
  version: string;
  /** As a user would type it. */
  dataDir: string;
  durationMs: number;
  services: readonly BannerService[];
  /** Address of the web console; undefined if it does not run. */
  consoleUrl: string | undefined;
  /** The way to sign in at the console; empty if it is not known. */
  signIn: string;
  /** Address of the API of `platform up` itself. */
  apiUrl: string;
  trials: readonly Trial[];
  /** Warnings for the operator. */
  notes: readonly string[];
}

/** Formats the banner as text. */
export function formatBanner(banner: Banner, colours: boolean): string {
  const bold = (text: string): string => (colours ? `\u001b[1m${text}\u001b[0m` : text);
  const dim = (text: string): string => (colours ? `\u001b[2m${text}\u001b[0m` : text);
  const seconds = (banner.durationMs / 1000).toFixed(1);
  const lines = [
    `${bold(`platform ${banner.version}`)} ${dim("·")} data in ${banner.dataDir} ${dim("·")} started in ${seconds} s`,
    "",
  ];
  const { consoleUrl } = banner;
  const urls = [consoleUrl ?? "", ...banner.services.map(({ url }) => url)];
  const urlWidth = Math.max(...urls.map((url) => url.length), 24);
  if (consoleUrl !== undefined) {
    const [name, url] = ["console".padEnd(10), consoleUrl.padEnd(urlWidth)].map(bold);
    lines.push(`  ${name} ${url} ${dim(banner.signIn)}`.trimEnd());
  }
  for (const service of banner.services) {
    lines.push(
      `  ${service.label.padEnd(10)} ${service.url.padEnd(urlWidth)} ${dim(service.description)}`,
    );
  }
  const api = `services, schedules, logs · docs ${banner.apiUrl}/api/docs`;
  lines.push(`  ${"runtime".padEnd(10)} ${banner.apiUrl.padEnd(urlWidth)} ${dim(api)}`);
  if (banner.trials.length > 0) lines.push("", bold("Try"), ...formatTrials(banner.trials, dim));
  if (banner.notes.length > 0)
    lines.push("", bold("Note"), ...banner.notes.map((note) => `  ${note}`));
  lines.push("", dim("ctrl-c stops all services"));
  return `${lines.join("\n")}\n\n`;
}

/** Formats the banner as one JSON line. */
export function formatBannerJson(banner: Banner): string {
  return `${JSON.stringify({
    type: "started",
    version: banner.version,
    data_dir: banner.dataDir,
    duration_ms: Math.round(banner.durationMs),
    services: banner.services,
    console_url: banner.consoleUrl,
    api_url: banner.apiUrl,
    try: banner.trials,
    notes: banner.notes,
  })}\n`;
}

// Meanings are aligned after commands of up to 52 characters.
function formatTrials(trials: readonly Trial[], dim: (text: string) => string): string[] {
  const short = trials.filter(({ command }) => command.length <= 52);
  const width = Math.max(0, ...short.map(({ command }) => command.length));
  return trials.map(({ command, meaning }) => `  ${command.padEnd(width)}   ${dim(meaning)}`);
}
