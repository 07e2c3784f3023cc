// The programs that apply a deployment.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** Programs that build images, with the same arguments. */
const BUILDERS = ["docker", "podman", "buildah"] as const;

/** Returns the first installed program that builds images. Throws if there is none. */
export function findBuilder(): string {
  const found = BUILDERS.find(isInstalled);
  if (found !== undefined) return found;
  throw new Error(
    `--apply requires one of ${BUILDERS.join(", ")}; install one, or build elsewhere`,
  );
}

/** Throws if kubectl is not installed. */
export function requireKubectl(): void {
  if (isInstalled("kubectl")) return;
  throw new Error("--apply requires kubectl; install it, or apply deploy/k8s.yaml elsewhere");
}

/** Runs a program with the output of this one. Throws if it fails. */
export async function runTool(program: string, args: readonly string[]): Promise<void> {
  process.stdout.write(`\n$ ${program} ${args.join(" ")}\n`);
  const child = spawn(program, args, { stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`${program} ${args[0] ?? ""} failed (${code ?? "signal"})`);
}

function isInstalled(program: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return folder !== "";
    } catch {
      return false;
    }
  });
}
