// Modules in the admin API: guests that run on objects.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, bytes as bytesOf, defineRoute, NO_BODY } from "@platform/kernel/http";
import { GuestError } from "@platform/wasm/stream";
import { z } from "zod";
import type { ModuleRegistry, ModuleVersion } from "../guest/module-registry.ts";
import { asProblem } from "./problem.ts";

const TAG = "Modules";
/** Maximum size of a module. */
export const MODULE_BYTES_MAX = 8 * 1024 * 1024;
const WASM_TYPE = "application/wasm";

const params = z.object({ name: z.string().min(1).max(128) });
const moduleAnswer = z.object({
  name: z.string(),
  sha256: z.string(),
  abi: z.string().describe("`command` or `transform`."),
  bytes: z.int().min(0),
});
const listedModule = moduleAnswer.extend({ modified_at: z.string().describe("RFC 3339.") });

/** Routes that register, list, read and remove modules. */
export function createModuleRoutes(modules: ModuleRegistry): ApiRoute[] {
  const require = (name: string): ModuleVersion => {
    const found = modules.find(name);
    if (found !== undefined) return found;
    throw new PlatformError("not_found", `The module ${name} does not exist.`);
  };
  return [
    defineRoute({
      method: "GET",
      path: "/admin/modules",
      tag: TAG,
      summary: "Modules by name, with their newest version",
      answer: z.object({ items: z.array(listedModule) }),
      handle: () => ({ items: modules.list().map(showListed) }),
    }),
    createPutRoute(modules),
    defineRoute({
      method: "GET",
      path: "/admin/modules/{name}",
      tag: TAG,
      summary: "A module; with `content` its bytes",
      params,
      query: z.object({ content: z.string().optional() }),
      answer: bytesOf(WASM_TYPE, { json: listedModule }),
      problems: { 404: "No such module" },
      handle: async ({ params: { name }, query: { content } }) => {
        const found = require(name);
        if (content === undefined) return showListed(found);
        const bytes = await asProblem(modules.read(found));
        return new Response(Uint8Array.from(bytes), { headers: { "Content-Type": WASM_TYPE } });
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/admin/modules/{name}",
      tag: TAG,
      summary: "Remove a module",
      description: "Triggers and jobs that were made with a version of it keep that version.",
      params,
      answer: NO_BODY,
      problems: { 404: "No such module" },
      handle: async ({ params: { name } }) => {
        require(name);
        await asProblem(modules.remove(name));
      },
    }),
  ];
}

function createPutRoute(modules: ModuleRegistry): ApiRoute {
  return defineRoute({
    method: "PUT",
    path: "/admin/modules/{name}",
    tag: TAG,
    summary: "Register a module, or a new version of it",
    description:
      "The module is validated, sandboxed and compiled first. Triggers and jobs keep the version that they were made with, unless they name `NAME@latest`.",
    params,
    bodyKind: "bytes",
    bodyBytesMax: MODULE_BYTES_MAX,
    status: 201,
    answer: moduleAnswer,
    problems: { 413: "Too large", 422: "Not a module that can run here" },
    handle: async ({ params: { name }, body, request }) => {
      const type = request.headers.get("content-type") ?? WASM_TYPE;
      if (type !== WASM_TYPE) {
        throw new PlatformError("unsupported_media_type", `A module is sent as ${WASM_TYPE}.`);
      }
      return show(await register(modules, name, Buffer.from(body)));
    },
  });
}

async function register(
  modules: ModuleRegistry,
  name: string,
  bytes: Buffer,
): Promise<ModuleVersion> {
  try {
    return await asProblem(modules.put(name, bytes));
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
    const { code, message } = error;
    const kind = code === "module-too-large" ? "payload_too_large" : "validation_failed";
    throw new PlatformError(kind, `${code}: ${message}`, { fields: { guest_code: code } });
  }
}

function show({ name, sha256, abi, bytes }: ModuleVersion) {
  return { name, sha256, abi, bytes };
}

function showListed(version: ModuleVersion) {
  return { ...show(version), modified_at: new Date(version.modifiedMs).toISOString() };
}
