// `platform-vaultd fsck`: checks the store of a configuration and prints the findings.
import { SecretBox } from "../access/secret-box.ts";
import { toStoreOptions, type VaultConfig } from "../config.ts";
import { openKeys } from "../keys/open-keys.ts";
import { checkStore } from "./check-store.ts";

/** Runs the command. Resolves to the exit code: 0 if nothing is damaged or lost. */
export async function runFsck(
  config: VaultConfig,
  { repair: isRepair, remotes }: { repair: boolean; remotes: boolean },
): Promise<number> {
  const { findings, isWhole } = await checkStore({
    dataDir: config.data_dir,
    drives: config.drives,
    isRepair,
    ...(remotes ? { remotes: await openRemotes(config) } : {}),
  });
  for (const { state, path, text } of findings) {
    process.stdout.write(`${state.padEnd(9)} ${path}: ${text}\n`);
  }
  const repairable = findings.some(({ state }) => state === "restored");
  if (!isRepair && repairable) {
    process.stdout.write(
      "Nothing was changed. Run the command again with --repair to restore it.\n",
    );
  }
  return isWhole ? 0 : 1;
}

async function openRemotes(config: VaultConfig) {
  const { ring } = await openKeys(config, { isWriting: false });
  const { remoteNetworks: networks = [] } = toStoreOptions(config);
  return { secrets: new SecretBox(ring.listBoxKeys), networks };
}
