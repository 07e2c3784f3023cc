// The functions of `platform project …`. Their code is loaded when one of them runs.

interface Call<Options> {
  options: Options & { data: string };
  positionals: string[];
}

/** One function for each of the commands in `PROJECT_COMMANDS`. */
export const PROJECT_HANDLERS = {
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
  "project restart": async ({ options: { data }, positionals: [name = ""] }: Call<object>) =>
    (await import("./project.ts")).runProjectRestart(data, name),
};
