// Tests that follow or disturb the system calls of a program with strace.
import { spawnSync } from "node:child_process";

/** Reason to skip a test that needs strace; false if it runs. Throws without strace if `PLATFORM_TEST_PEERS=required`. */
export function findStraceSkip(): string | false {
  if (spawnSync("strace", ["-V"], { stdio: "ignore" }).status === 0) return false;
  if (process.env["PLATFORM_TEST_PEERS"] === "required") throw new Error("strace is missing");
  return "needs the Debian package strace";
}
