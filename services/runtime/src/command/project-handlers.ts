// The functions of `platform project …`, and of the commands that create and convert projects. Their code is loaded when one of them runs.
import type { TemplateName } from "../project/templates/index.ts";

interface Call<Options> {
  options: Options & { data: string };
  positionals: string[];
}

/** A call of a command without a running platform. */
interface LocalCall<Options> {
  options: Options;
  positionals: string[];
}

/** One function for each of the commands in `PROJECT_COMMANDS`, and for those that write projects. */
export const PROJECT_HANDLERS = {
  init: async ({
    options: { template, language: isLanguage },
    positionals: [name = ""],
  }: LocalCall<{ template: TemplateName; language: boolean }>) =>
    (await import("./init.ts")).runInit({ name, template, isLanguage }),
  convert: async ({
    options,
    positionals: [file = ""],
  }: LocalCall<{ out?: string | undefined; write: boolean }>) =>
    (await import("./convert.ts")).runConvert({ ...options, out: options.out, file }),
  "project update": async () => (await import("./project-update.ts")).runProjectUpdate(),
  "project list": async ({ options }: Call<{ json: boolean }>) =>
    (await import("./project.ts")).runProjectList(options),
  "project add": async ({
    options: { data, environment_file: environmentFile },
    positionals: [folder = "."],
  }: Call<{ environment_file?: string | undefined }>) =>
    (await import("./project.ts")).runProjectAdd({ data, folder, environmentFile }),
  "project remove": async ({
    options: { data, data_too: dataToo },
    positionals: [name = ""],
  }: Call<{ data_too: boolean }>) =>
    (await import("./project.ts")).runProjectRemove({ data, name, dataToo }),
  "project env": async ({ options: { data }, positionals: [name = ""] }: Call<object>) =>
    (await import("./project-variables.ts")).runProjectEnv(data, name),
  "project set": async ({
    options: { data, plain },
    positionals: [project = "", variable = ""],
  }: Call<{ plain: boolean }>) =>
    (await import("./project-variables.ts")).runProjectSet({ data, project, variable, plain }),
  "project unset": async ({
    options: { data },
    positionals: [project = "", variable = ""],
  }: Call<object>) =>
    (await import("./project-variables.ts")).runProjectUnset({ data, project, variable }),
  "project restart": async ({ options: { data }, positionals: [name = ""] }: Call<object>) =>
    (await import("./project.ts")).runProjectRestart(data, name),
};
