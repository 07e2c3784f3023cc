// The git repository of the configuration.
import { dirname } from "node:path";
import { loadConfig } from "@platform/kernel/config";
import { gateDefinition } from "../config/document.ts";
import { checkLoaded, type GateSources, type LoadedGate } from "../config/load.ts";
import { describeConfiguration } from "../control/command.ts";
import type { Controller } from "../control/controller.ts";
import { GitSource } from "../source/git-source.ts";

/** Creates the source. A commit is checked as `platform-gate validate` does. */
export function openGit(
  { config, path }: LoadedGate,
  sources: GateSources,
  controller: Controller,
): GitSource {
  return new GitSource({
    folder: config["gitops.dir"] ?? dirname(path),
    configPath: path,
    validate: (checked) => findFaults(checked, sources),
    reload: async () => void (await controller.reload({ caller: "git webhook" })),
  });
}

async function findFaults(path: string, { argv, env }: GateSources): Promise<string | undefined> {
  const rest = argv.filter(
    (text, at) =>
      text !== "--config" && argv[at - 1] !== "--config" && !text.startsWith("--config="),
  );
  try {
    const loaded = loadConfig(gateDefinition, { argv: [...rest, "--config", path], env });
    if (loaded.kind === "run") await describeConfiguration(checkLoaded(loaded));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
