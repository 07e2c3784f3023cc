// The templates of `platform init`.
import { createApiTemplate } from "./api.ts";
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
