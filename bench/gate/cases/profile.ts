// CPU profile of a proxied request in the running worker, as a table.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram } from "../../../tests/stage/program.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import { readFunctionShares, type FunctionShare } from "../../harness/cpu-profile.ts";
import { describeMachine } from "../../harness/machine.ts";
import { startPinned, type PinnedProcess } from "../../harness/process.ts";
import { formatTable } from "../../harness/report.ts";
import { runWrk, type WrkSummary } from "../../harness/wrk.ts";
import { runContest, startEntrants, type Entrant, SMALL_LOAD } from "../contest.ts";
import { makeEngineAlone } from "../proxies/engine.ts";
import { makePlatformGate } from "../proxies/platform-gate.ts";
import type { Proxy } from "../proxies/proxy.ts";
import { OURS_ON_NODE, REPOSITORY } from "../../harness/build.ts";
import { startUpstream } from "../upstream.ts";

const SAMPLE_INTERVAL_US = 200;
const FUNCTIONS_SHOWN = 40;
const SYSCALL_SECONDS = 2;

/** The whole gateway. */
export const profile: BenchCase = {
  name: "profile",
  title: "CPU profile of the gateway, written to bench/gate/profile.md",
  isOptional: true,
  run: (context) => writeProfile(context, (env) => makePlatformGate(OURS_ON_NODE, env), "profile"),
};

/** The engine alone, without the gateway's steps. */
export const engineProfile: BenchCase = {
  name: "profile-engine",
  title: "CPU profile of the engine alone, written to bench/gate/profile-engine.md",
  isOptional: true,
  run: (context) => writeProfile(context, (env) => makeEngineAlone("node", env), "profile-engine"),
};

async function writeProfile(
  context: BenchContext,
  makeProxy: (env?: Record<string, string>) => Proxy,
  caseName: string,
): Promise<undefined> {
  await using workspace = new Workspace();
  const upstream = await startUpstream(workspace.folder, context.cores.load);
  workspace.keep(upstream.process);
  const profiles = join(workspace.folder, "profiles");
  mkdirSync(profiles);
  const plain = makeProxy();
  const profiled = makeProxy({
    NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profiles} --cpu-prof-interval=${SAMPLE_INTERVAL_US}`,
  });
  // The figures come from a process without a profiler, the shares from a profiled one.
  const contenders = [{ proxy: plain }, { proxy: profiled, name: `${plain.name}, profiled` }];
  const entrants = await startEntrants(context, workspace, upstream.port, contenders, SMALL_LOAD);
  const [plainEntrant, profiledEntrant] = entrants;
  if (plainEntrant?.process === undefined || profiledEntrant?.process === undefined) {
    throw new Error(plainEntrant?.row.note ?? profiledEntrant?.row.note ?? "nothing started");
  }
  const [row] = await runContest(context, workspace, entrants, SMALL_LOAD);
  const cpuUs = medianOf(row?.rounds.map((round) => round?.["cpuUs"]));
  const systemUs = medianOf(row?.rounds.map((round) => round?.["systemUs"]));
  const calls = await countSystemCalls(context, workspace, plainEntrant, plainEntrant.process);
  await profiledEntrant.process.stop();
  const { functions, busyShare } = readBusiestProfile(profiles);
  const day = new Date().toISOString().slice(0, 10);
  const lines = [
    `# CPU profile of a proxied request: ${plain.name}`,
    "",
    `Written by \`npm run bench -- gate ${caseName}\` · ${day} · ${describeMachine()} · Node ${process.version}`,
    "",
    `The load of \`small-get\`: ${cpuUs.toFixed(1)} µs CPU per request, of which ${systemUs.toFixed(1)} µs in the kernel.`,
    `Each share is self time on the busiest thread, sampled every ${SAMPLE_INTERVAL_US} µs; µs/request is that share of the figure above.`,
    `This thread accounts for ${(busyShare * 100).toFixed(0)} % of the busy samples of the process. A native function includes its system call.`,
    "",
    "## By module",
    "",
    formatShares(groupByModule(functions), cpuUs, ["module"]),
    "",
    "## By function",
    "",
    formatShares(listFunctions(functions), cpuUs, ["function", "file"]),
    "",
    ...calls,
    "",
  ];
  const path = new URL(`../${caseName}.md`, import.meta.url).pathname;
  writeFileSync(path, lines.join("\n"));
  context.say(`  written: ${path}`);
  return undefined;
}

function listFunctions(functions: readonly FunctionShare[]): { names: string[]; share: number }[] {
  return functions
    .slice(0, FUNCTIONS_SHOWN)
    .map(({ name, file, share }) => ({ names: [name, file === "" ? "native" : file], share }));
}

function medianOf(values: readonly (number | undefined)[] | undefined): number {
  const known = (values ?? []).filter((value) => value !== undefined).sort((a, b) => a - b);
  return known[known.length >> 1] ?? Number.NaN;
}

// There is one profile per thread; the worker's is the one with the most busy time.
function readBusiestProfile(folder: string): { functions: FunctionShare[]; busyShare: number } {
  const read = readdirSync(folder)
    .filter((name) => name.endsWith(".cpuprofile"))
    .map((name) => readFunctionShares(readFileSync(join(folder, name), "utf8"), REPOSITORY))
    .sort((a, b) => b.busyUs - a.busyUs);
  const [busiest] = read;
  if (busiest === undefined) throw new Error("the gateway left no profile when it ended");
  const totalUs = read.reduce((sum, one) => sum + one.busyUs, 0);
  return { functions: busiest.functions, busyShare: busiest.busyUs / totalUs };
}

function groupByModule(functions: readonly FunctionShare[]): { names: string[]; share: number }[] {
  const modules = new Map<string, number>();
  for (const { name, file, share } of functions) {
    const module = nameModule(name, file);
    modules.set(module, (modules.get(module) ?? 0) + share);
  }
  return [...modules]
    .map(([module, share]) => ({ names: [module], share }))
    .sort((a, b) => b.share - a.share);
}

function nameModule(name: string, file: string): string {
  const own = /^(?:packages|services)\/([^/]+)\/src\/([^/]+)/.exec(file);
  if (own !== null) return `${own[1]}: ${own[2]?.replace(/\.ts$/, "")}`;
  if (file.startsWith("node:")) return `Node: ${file.slice(5)}`;
  if (file !== "") return file.split("/").slice(0, 3).join("/");
  if (name === "(garbage collector)") return "garbage collection";
  if (name === "(program)") return "native: outside of any function (event loop, epoll, reads)";
  return /^(?:writev|write\w+|shutdown)$/.test(name) ? "native: socket writes" : "native: other";
}

function formatShares(
  rows: readonly { names: string[]; share: number }[],
  cpuUs: number,
  titles: string[],
): string {
  return formatTable(
    [...titles, "µs/request", "share"],
    rows
      .filter((row) => row.share >= 0.001)
      .map((row) => [
        ...row.names,
        (row.share * cpuUs).toFixed(2),
        `${(row.share * 100).toFixed(1)} %`,
      ]),
  );
}

async function countSystemCalls(
  context: BenchContext,
  workspace: Workspace,
  entrant: Entrant,
  started: PinnedProcess,
): Promise<string[]> {
  if (findProgram("strace") === undefined) return ["System calls are not counted: no strace here."];
  const path = join(workspace.folder, "syscalls");
  const tracer = workspace.keep(
    startPinned({
      name: "strace",
      command: "strace",
      args: ["-f", "-c", "-qq", "-o", path, "-p", String(started.pid)],
      cores: context.cores.load,
    }),
  );
  const summary = await runWrk({
    url: entrant.url,
    connections: SMALL_LOAD.connections,
    seconds: SYSCALL_SECONDS,
    cores: context.cores.load,
    scratch: workspace.folder,
  });
  tracer.signal("SIGINT");
  for (let waited = 0; waited < 50 && !existsSync(path); waited += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await tracer.stop();
  return formatSystemCalls(readFileSync(path, "utf8"), summary);
}

function formatSystemCalls(text: string, summary: WrkSummary): string[] {
  const rows = [...text.matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$/gm)]
    .map((match) => ({ name: match[2] ?? "", perRequest: Number(match[1]) / summary.requests }))
    .filter((row) => row.name !== "total" && row.perRequest >= 0.005)
    .sort((a, b) => b.perRequest - a.perRequest);
  return [
    "## System calls per request",
    "",
    "Counted by strace, which slows the process down: with fewer requests per turn of the event loop, `epoll_pwait` is counted high.",
    "",
    formatTable(
      ["call", "per request"],
      rows.map((row) => [row.name, row.perRequest.toFixed(2)]),
    ),
  ];
}
