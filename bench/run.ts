// `npm run bench -- <service> [case]`: compares our services with their peers and saves the results.
import { existsSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { findProgram } from "../tests/stage/program.ts";
import { GATE_CASES } from "./gate/cases.ts";
import { AUTH_CASES } from "./auth/cases.ts";
import { listBuilds, type RuntimeName } from "./harness/build.ts";
import type { BenchCase, BenchContext } from "./harness/case.ts";
import { allotCores, describeMachine } from "./harness/machine.ts";
import { formatReport, rewriteSection } from "./harness/report.ts";
import { parse } from "./http1/parse.ts";
import { NOTIFY_CASES } from "./notify/cases.ts";
import { PULSE_CASES } from "./pulse/cases.ts";
import { TUNNEL_CASES } from "./tunnel/cases.ts";
import { RUNTIME_CASES } from "./runtime/cases.ts";
import { VAULT_CASES } from "./vault/cases.ts";

const RESULTS_PATH = new URL("RESULTS.md", import.meta.url).pathname;

const SERVICES: Record<string, readonly BenchCase[]> = {
  gate: GATE_CASES,
  auth: AUTH_CASES,
  http1: [parse],
  vault: VAULT_CASES,
  pulse: PULSE_CASES,
  tunnel: TUNNEL_CASES,
  notify: NOTIFY_CASES,
  runtime: RUNTIME_CASES,
};
const PROGRAMS: Record<string, readonly string[]> = {
  gate: ["taskset", "prlimit", "setpriv", "wrk", "nginx"],
  auth: ["taskset", "setpriv", "wrk"],
  vault: ["taskset", "prlimit", "setpriv", "wrk"],
  pulse: ["taskset", "prlimit", "setpriv"],
  tunnel: ["taskset", "prlimit", "setpriv", "wrk", "nginx"],
  notify: ["taskset", "prlimit", "setpriv", "smtp-source", "smtp-sink"],
  runtime: ["taskset", "prlimit", "setpriv", "wrk"],
};

const INTRO = `# Results

Written by \`npm run bench\`. Each section names its command; running that command again replaces the section.
\`bench/README.md\` describes how the figures are measured and how to read them.
`;

const options = {
  runtime: { type: "string" },
  before: { type: "string" },
  rounds: { type: "string", default: "5" },
  seconds: { type: "string", default: "3" },
  "no-save": { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

await main();

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [service, caseName] = positionals;
  if (values.help || service === undefined) {
    console.log(describeUsage());
    return;
  }
  const known = SERVICES[service];
  if (known === undefined)
    return refuse(`unknown service '${service}'; available: ${listNames(SERVICES)}`);
  const cases =
    caseName === undefined
      ? known.filter((one) => one.isOptional !== true)
      : known.filter((one) => one.name === caseName);
  if (cases.length === 0) {
    return refuse(
      `unknown case '${caseName}'; available: ${known.map((one) => one.name).join(", ")}`,
    );
  }
  const context = readContext(values);
  if (typeof context === "string") return refuse(context);
  for (const program of PROGRAMS[service] ?? []) {
    if (findProgram(program) === undefined) {
      return refuse(`${program} is not installed; run tools/install-peers load ${service}`);
    }
  }
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => process.exit(130));
  for (const one of cases) {
    context.say(`${service} ${one.name}: ${one.title}`);
    try {
      await runCase(service, one, context, values["no-save"] || values.before !== undefined);
    } catch (error) {
      console.error(
        `bench: ${one.name} failed: ${error instanceof Error ? error.message : String(error)}`,
      );
      process.exitCode = 1;
    }
  }
}

async function runCase(
  service: string,
  one: BenchCase,
  context: BenchContext,
  printOnly: boolean,
): Promise<void> {
  const startedAt = Date.now();
  // Other work on the machine: with much of it, only ratios and CPU times mean something.
  const [loadBefore = 0] = loadavg();
  const result = await one.run(context);
  if (result === undefined) return;
  const report = formatReport(result);
  console.log(`\n${report}\n\n(${((Date.now() - startedAt) / 1000).toFixed(0)} s)\n`);
  if (printOnly) return;
  const command = `npm run bench -- ${service} ${one.name} ${describeOptions(context)}`;
  const day = new Date().toISOString().slice(0, 10);
  const provenance = `\`${command}\` · ${day} · ${describeMachine()} · Node ${process.version} · load average ${loadBefore.toFixed(0)}`;
  rewriteSection(
    RESULTS_PATH,
    INTRO,
    {
      name: `${service}/${one.name}`,
      markdown: `## ${service}: ${one.title}\n\n${provenance}\n\n${report}`,
    },
    Object.entries(SERVICES).flatMap(([name, all]) => all.map((each) => `${name}/${each.name}`)),
  );
}

function readContext(values: {
  runtime?: string | undefined;
  before?: string | undefined;
  rounds: string;
  seconds: string;
}): BenchContext | string {
  const rounds = Number(values.rounds);
  const seconds = Number(values.seconds);
  if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 100)) return "--rounds takes 1 to 100";
  if (!(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60))
    return "--seconds takes 1 to 60";
  const { runtime, before } = values;
  if (runtime !== undefined && runtime !== "node" && runtime !== "bun") {
    return "--runtime must be node or bun (default: both)";
  }
  if (before !== undefined && !existsSync(join(before, "bin/platform.js"))) {
    return `--before takes the folder of another checkout; there is no bin/platform.js in ${before}`;
  }
  const runtimes: RuntimeName[] = runtime === undefined ? ["node", "bun"] : [runtime];
  return {
    rounds,
    seconds,
    runtimes,
    builds: listBuilds(runtimes, before),
    cores: allotCores(),
    say: (line) => console.log(line),
  };
}

function describeOptions(context: BenchContext): string {
  const runtime = context.runtimes.length === 1 ? ` --runtime ${context.runtimes[0]}` : "";
  return `--rounds ${context.rounds} --seconds ${context.seconds}${runtime}`;
}

function describeUsage(): string {
  const cases = Object.entries(SERVICES).flatMap(([service, all]) =>
    all.map(
      (one) =>
        `  ${service} ${one.name.padEnd(16)} ${one.title}${one.isOptional === true ? " (only by name)" : ""}`,
    ),
  );
  return `npm run bench -- <service> [case] [options]

  --runtime node|bun   measure ours on one runtime (default: both)
  --before DIR         measure the services of another checkout beside ours; implies --no-save
  --rounds N           alternated rounds per contender (default: 5)
  --seconds S          length of a round (default: 3)
  --no-save            print only; do not change bench/RESULTS.md
  --help               this text

${cases.join("\n")}`;
}

function refuse(message: string): void {
  console.error(`bench: ${message}`);
  process.exitCode = 2;
}

function listNames(record: Record<string, unknown>): string {
  return Object.keys(record).join(", ");
}
