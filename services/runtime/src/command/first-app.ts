// The commands of a first project.
import { resolve } from "node:path";
import { nameProgram } from "@platform/kernel/config";

const NAME = "my-app";

/** Commands that create a project in a new folder, and run it with the platform that runs. */
export function formatFirstApp(): string {
  const path = process.env["PATH"] ?? "";
  const inside = nameProgram("platform", { path, folder: resolve(NAME) });
  return `${nameProgram("platform")} init ${NAME} && cd ${NAME} && ${inside} up`;
}
