// A service in its own process, as tests of other packages start it too.
export { StagedVault, vaultRoot, type VaultLaunch } from "@platform/testing/staged-vault";
