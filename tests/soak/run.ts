// `npm run soak -- [reload|upstream-loss|mixed-load|guests] [--minutes N] [--runtime node|bun]`: the long form of the soak
// tests; prints the results and fails if something was lost.
import { parseArgs } from "node:util";
import { assertLevel, assertUnharmed, soakGuests } from "./guests.ts";
import { assertReleased, soakMixedLoad } from "./mixed-load.ts";
import { soakReload } from "./reload.ts";
import { soakUpstreamLoss } from "./upstream-loss.ts";

const SOAKS: Record<string, (seconds: number, env: Record<string, string>) => Promise<unknown>> = {
  reload: soakReload,
  "upstream-loss": soakUpstreamLoss,
  "mixed-load": async (seconds, env) => {
    const figures = await soakMixedLoad(seconds, env);
    console.log(JSON.stringify(figures));
    assertReleased(figures, ["rssMib", "heapMib"]);
    return figures;
  },
  guests: async (seconds, env) => {
    const figures = await soakGuests(seconds, env);
    console.log(JSON.stringify(figures));
    assertReleased(figures, ["heapMib"]);
    assertLevel(figures);
    assertUnharmed(figures);
    return figures;
  },
};
const USAGE = `usage: npm run soak -- [${Object.keys(SOAKS).join("|")}]… [--minutes N] [--runtime node|bun]

Runs the named soak tests, or all, for N minutes each (default 10).`;

/** The soak tests to run. Throws for arguments that are not usable. */
function readArguments(args: readonly string[]) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      minutes: { type: "string", default: "10" },
      runtime: { type: "string", default: "node" },
    },
  });
  const names = positionals.length === 0 ? Object.keys(SOAKS) : positionals;
  const seconds = Number(values.minutes) * 60;
  for (const name of names) if (!(name in SOAKS)) throw new Error(`There is no soak "${name}".`);
  if (!(seconds > 0 && seconds < Infinity))
    throw new Error(`"${values.minutes}" is no number of minutes.`);
  if (values.runtime !== "node" && values.runtime !== "bun")
    throw new Error(`"${values.runtime}" is no runtime.`);
  return { names, seconds, runtime: values.runtime };
}

async function run(args: readonly string[]): Promise<void> {
  if (args.includes("--help") || args.includes("-h")) {
    console.log(USAGE);
    return;
  }
  let chosen: ReturnType<typeof readArguments>;
  try {
    chosen = readArguments(args);
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`);
    process.exitCode = 2;
    return;
  }
  const { names, seconds, runtime } = chosen;
  for (const name of names) {
    const startedAt = Date.now();
    const figures = await SOAKS[name]!(seconds, { PLATFORM_RUNTIME: runtime });
    const minutes = ((Date.now() - startedAt) / 60_000).toFixed(1);
    console.log(`${name} on ${runtime}, ${minutes} minutes: ${JSON.stringify(figures)}`);
  }
}

await run(process.argv.slice(2));
