// `npm run soak -- [reload|upstream-loss|mixed-load|guests] [--minutes N] [--runtime node|bun]`: the long form of the soak
// tests; prints the results and fails if something was lost.
import { parseArgs } from "node:util";
import { assertUnharmed, soakGuests } from "./guests.ts";
import { assertReleased, soakMixedLoad } from "./mixed-load.ts";
import { soakReload } from "./reload.ts";
import { soakUpstreamLoss } from "./upstream-loss.ts";

const SOAKS: Record<string, (seconds: number, env: Record<string, string>) => Promise<unknown>> = {
  reload: soakReload,
  "upstream-loss": soakUpstreamLoss,
  "mixed-load": async (seconds, env) => {
    const figures = await soakMixedLoad(seconds, env);
    console.log(JSON.stringify(figures));
    assertReleased(figures, { memory: true });
    return figures;
  },
};

SOAKS["guests"] = async (seconds, env) => {
  const figures = await soakGuests(seconds, env);
  console.log(JSON.stringify(figures));
  assertReleased(figures, { memory: true });
  assertUnharmed(figures);
  return figures;
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string", default: "10" },
    runtime: { type: "string", default: "node" },
  },
});
const names = positionals.length === 0 ? Object.keys(SOAKS) : positionals;
const seconds = Number(values.minutes) * 60;
const isUsable =
  seconds > 0 && names.every((name) => name in SOAKS) && ["node", "bun"].includes(values.runtime);
if (!isUsable) {
  console.error(
    `usage: npm run soak -- [${Object.keys(SOAKS).join("|")}] [--minutes N] [--runtime node|bun]`,
  );
  process.exit(2);
}
for (const name of names) {
  const startedAt = Date.now();
  const figures = await SOAKS[name]?.(seconds, { PLATFORM_RUNTIME: values.runtime });
  const minutes = ((Date.now() - startedAt) / 60_000).toFixed(1);
  console.log(`${name} on ${values.runtime}, ${minutes} minutes: ${JSON.stringify(figures)}`);
}
