// The templates of `platform init`, in two writings. They are written in the service language; the plain ones are made of
// them as `platform convert` does.
import { convertToPlain } from "../../language/plain.ts";
import { MAIN_FILE } from "../project.ts";
import { createApiTemplate } from "./api.ts";
import { LANGUAGE_FILES } from "./shared-files.ts";
import { createWebTemplate } from "./web.ts";
import { createWorkerTemplate } from "./worker.ts";

export { LAUNCHERS } from "./shared-files.ts";

/** Functions that return the files of a project by path; `name` is the project's name. */
export const TEMPLATES = {
  api: createApiTemplate,
  web: createWebTemplate,
  worker: createWorkerTemplate,
} satisfies Record<string, (name: string) => Readonly<Record<string, string>>>;

/** Name of a template. */
export type TemplateName = keyof typeof TEMPLATES;

/** Options of {@link createProjectFiles}. */
export interface ProjectFilesOptions {
  readonly name: string;
  readonly template: TemplateName;
  /** True for the service language, false for plain TypeScript. */
  readonly isLanguage: boolean;
}

/** The files of a new project by path. */
export function createProjectFiles({
  name,
  template,
  isLanguage,
}: ProjectFilesOptions): Readonly<Record<string, string>> {
  const files: Readonly<Record<string, string>> = TEMPLATES[template](name);
  if (isLanguage) return { ...files, ...LANGUAGE_FILES };
  return { ...files, [MAIN_FILE]: convertToPlain(files[MAIN_FILE]!, MAIN_FILE) };
}
