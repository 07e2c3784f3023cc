// The places of the configuration file and of the gateway's state.

/** Configuration file if none is named. */
export const CONFIG_PATH_DEFAULT = "config.json";
/** Environment variable that names the configuration file. */
export const CONFIG_PATH_VARIABLE = "PLATFORM_GATE_CONFIG";

/** The folder of the gateway's state; see the key data_dir. */
export function getStateFolder(dataDir: string | undefined, configPath: string): string {
  return dataDir ?? `${configPath}.state`;
}
