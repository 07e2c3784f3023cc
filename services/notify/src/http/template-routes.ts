// Templates: save, read, list, delete, versions, restore.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import {
  defineRoute,
  nextCursor,
  pageQuery,
  readPage,
  type ApiRoute,
  type HeaderReader,
  NO_BODY,
} from "@platform/kernel/http";
import type { StoredTemplate } from "../template/store.ts";
import type { Templates } from "../template/templates.ts";
import { requireManager, requireSender } from "./access.ts";

const TEXT_CHARACTERS_MAX = 1024 * 1024;
/** Maximum size of a request with the content of a template. */
export const TEMPLATE_BYTES_MAX = 4 * TEXT_CHARACTERS_MAX;

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,127}$/i, "1 to 128 letters, digits, dots, dashes and underscores");
/** A language variant; "" for the default. */
export const templateLocale = z
  .string()
  .regex(/^(?:[a-z]{2,3}(?:-[a-z0-9]{2,8}){0,3})?$/i, "a language tag such as de or de-AT");
const text = z.string().max(TEXT_CHARACTERS_MAX);

/** The content of a template. */
export const templateContent = {
  subject: z.string().max(2_000).default(""),
  html: text.nullish(),
  text: text.nullish(),
};

const templateBody = z
  .strictObject({
    name,
    locale: templateLocale.default("").describe("Language variant; empty for the default."),
    ...templateContent,
  })
  .refine(({ html, text: plain }) => (html ?? plain ?? undefined) !== undefined, {
    path: ["html"],
    message: "at least one of html and text is required",
  });

const localeQuery = z.object({ locale: templateLocale.default("") });

const versionParams = z.object({ name, version: z.coerce.number().int().min(1) });
const VERSION_TAG = /^(?:W\/)?"(\d{1,9})"$/;

const templateItem = z.object({
  name: z.string(),
  locale: z.string(),
  version: z.int(),
  updated_at: z.string(),
});
const contentAnswer = z.object({
  subject: z.string(),
  html: z.string().nullable(),
  text: z.string().nullable(),
});
const versionItem = z.object({ version: z.int(), active: z.boolean(), created_at: z.string() });
const savedAnswer = z.object({
  status: z.literal("created"),
  name: z.string(),
  version: z.int(),
});

export function createTemplateRoutes(templates: Templates): ApiRoute[] {
  const { store } = templates;
  const operation = { tag: "Templates", access: requireManager } as const;
  const find = async (wanted: string, variant: string): Promise<StoredTemplate> => {
    const rows = await store.read([wanted]);
    const row = rows.find((one) => one.locale.toLowerCase() === variant.toLowerCase());
    if (row !== undefined) return row;
    throw new PlatformError(
      "not_found",
      `There is no template ${wanted}${variant === "" ? "" : ` in ${variant}`}.`,
    );
  };
  const findVersion = async (active: StoredTemplate, version: number) => {
    const row = await store.readVersion(active.name, active.locale, version);
    if (row !== undefined) return row;
    throw new PlatformError("not_found", `There is no version ${version}.`);
  };
  return [
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/templates",
      summary: "Create or update a template",
      description:
        "Liquid; each update is a new version. With `If-Match` and the `ETag` of a template, only that version is replaced; with `If-None-Match: *` none.",
      body: templateBody,
      bodyBytesMax: TEMPLATE_BYTES_MAX,
      status: 201,
      problems: {
        412: "Another version is active",
        422: "The template has a syntax error",
      },
      answer: savedAnswer,
      handle: async ({ body, headers }) => {
        const content = { subject: body.subject, html: body.html ?? null, text: body.text ?? null };
        const version = await templates.save(
          body.name,
          body.locale,
          content,
          readExpectedVersion(headers),
        );
        return { status: "created" as const, name: body.name, version };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/templates",
      summary: "List templates",
      access: requireSender,
      query: pageQuery,
      answer: z.object({ templates: z.array(templateItem), next_cursor: nextCursor }),
      handle: async ({ query }) => {
        const page = await readPage(query, {
          key: z.string().max(256),
          read: (limit, after) => store.list(limit, after),
          keyOf: (row) => `${row.name}\n${row.locale}`,
        });
        const items = page.items.map(({ name: found, locale: variant, version, updated_at }) => ({
          name: found,
          locale: variant,
          version,
          updated_at: new Date(updated_at).toISOString(),
        }));
        return { templates: items, next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/templates/{name}",
      summary: "Read a template",
      access: requireSender,
      query: localeQuery,
      answer: templateItem.extend({
        ...contentAnswer.shape,
        variables: z.array(z.string()),
        locales: z.array(z.string()),
      }),
      handle: async ({ params, query, answerHeaders }) => {
        const row = await find(params["name"]!, query.locale);
        answerHeaders.set("ETag", `"${row.version}"`);
        const variants = (await store.read([row.name])).map((one) => one.locale);
        return {
          name: row.name,
          locale: row.locale,
          subject: row.subject,
          html: row.html,
          text: row.text,
          variables: await templates.listVariables(row.name, row.locale),
          version: row.version,
          locales: variants.filter((one) => one !== ""),
          updated_at: new Date(row.updated_at).toISOString(),
        };
      },
    }),
    defineRoute({
      ...operation,
      method: "DELETE",
      path: "/api/v1/templates/{name}",
      summary: "Delete a template with all variants and versions",
      answer: NO_BODY,
      handle: async ({ params }) => {
        if (await templates.remove(params["name"]!)) return undefined;
        throw new PlatformError("not_found", `There is no template ${params["name"]}.`);
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/templates/{name}/versions",
      summary: "List the versions of a template, newest first",
      query: localeQuery,
      answer: z.object({
        versions: z.array(versionItem.extend({ subject: z.string() })),
      }),
      handle: async ({ params, query }) => {
        const active = await find(params["name"]!, query.locale);
        const versions = await store.listVersions(active.name, active.locale);
        return {
          versions: versions.map((row) => ({
            version: row.version,
            active: row.version === active.version,
            subject: row.subject,
            created_at: new Date(row.created_at).toISOString(),
          })),
        };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/templates/{name}/versions/{version}",
      summary: "Read a version of a template",
      params: versionParams,
      query: localeQuery,
      answer: versionItem.extend({
        name: z.string(),
        locale: z.string(),
        ...contentAnswer.shape,
      }),
      handle: async ({ params, query }) => {
        const active = await find(params.name, query.locale);
        const row = await findVersion(active, params.version);
        return {
          name: row.name,
          locale: row.locale,
          version: row.version,
          active: row.version === active.version,
          subject: row.subject,
          html: row.html,
          text: row.text,
          created_at: new Date(row.created_at).toISOString(),
        };
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/templates/{name}/restore",
      summary: "Restore a version: its content becomes a new version",
      body: z.strictObject({ version: z.int().min(1), locale: templateLocale.default("") }),
      status: 201,
      answer: savedAnswer,
      handle: async ({ params, body }) => {
        const active = await find(params["name"]!, body.locale);
        const found = await findVersion(active, body.version);
        const { subject, html, text: plain } = found;
        const version = await templates.save(active.name, active.locale, {
          subject,
          html,
          text: plain,
        });
        return { status: "created" as const, name: active.name, version };
      },
    }),
  ];
}

// The version that a save replaces; 0 for a template that must not exist, undefined for any.
function readExpectedVersion(headers: HeaderReader): number | undefined {
  if (headers.get("if-none-match") === "*") return 0;
  const tag = headers.get("if-match");
  if (tag === null || tag === "*") return undefined;
  // Another form matches no version.
  return Number(VERSION_TAG.exec(tag)?.[1] ?? -1);
}
