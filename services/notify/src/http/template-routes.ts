// Templates: save, read, list, delete, versions, restore, preview, test send.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import {
  defineRoute,
  pageQuery,
  readPage,
  StatusAnswer,
  type ApiRoute,
} from "@platform/kernel/http";
import type { Sender } from "../send/sender.ts";
import { templateRequest } from "../send/request.ts";
import type { StoredTemplate } from "../template/store.ts";
import type { Templates } from "../template/templates.ts";
import type { Unsubscribes } from "../unsubscribe/unsubscribes.ts";
import { clientOf, requireManager, requireSender } from "./access.ts";

const TEXT_CHARACTERS_MAX = 1024 * 1024;
const BODY_BYTES_MAX = 4 * TEXT_CHARACTERS_MAX;

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,127}$/i, "1 to 128 letters, digits, dots, dashes and underscores");
const locale = z
  .string()
  .regex(/^(?:[a-z]{2,3}(?:-[a-z0-9]{2,8}){0,3})?$/i, "a language tag such as de or de-AT");
const text = z.string().max(TEXT_CHARACTERS_MAX);

const templateBody = z
  .strictObject({
    name,
    locale: locale.default("").describe("Language variant; empty for the default."),
    subject: z.string().max(2_000).default(""),
    html: text.nullish(),
    text: text.nullish(),
  })
  .refine(({ html, text: plain }) => (html ?? plain ?? undefined) !== undefined, {
    path: ["html"],
    message: "at least one of html and text is required",
  });

const localeQuery = z.object({ locale: locale.default("") });

const previewBody = z.strictObject({
  variables: z.record(z.string(), z.unknown()).default({}),
  locale: locale.optional(),
  strict: z.boolean().default(false),
});

/** Creates the routes. */
export function createTemplateRoutes(
  templates: Templates,
  sender: Sender,
  unsubscribes: Unsubscribes,
): ApiRoute[] {
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
  return [
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/templates",
      summary: "Create or update a template",
      description: "Liquid; each update is a new version.",
      body: templateBody,
      bodyBytesMax: BODY_BYTES_MAX,
      status: 201,
      problems: { 422: "The template has a syntax error" },
      handle: async ({ body }) => {
        const content = { subject: body.subject, html: body.html ?? null, text: body.text ?? null };
        const version = await templates.save(body.name, body.locale, content);
        return { status: "created", name: body.name, version };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/templates",
      summary: "List templates",
      access: requireSender,
      query: pageQuery,
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
      handle: async ({ params, query }) => {
        const row = await find(params["name"]!, query.locale);
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
      handle: async ({ params, query }) => {
        const active = await find(params["name"]!, query.locale);
        const versions = await store.listVersions(active.name, active.locale);
        return {
          versions: versions.map((row) => ({
            version: row.version,
            active: row.version === active.version,
            subject: row.subject,
            html: row.html,
            text: row.text,
            created_at: new Date(row.created_at).toISOString(),
          })),
        };
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/templates/{name}/restore",
      summary: "Restore a version: its content becomes a new version",
      body: z.strictObject({ version: z.int().min(1), locale: locale.default("") }),
      status: 201,
      handle: async ({ params, body }) => {
        const active = await find(params["name"]!, body.locale);
        const versions = await store.listVersions(active.name, active.locale);
        const found = versions.find(({ version }) => version === body.version);
        if (found === undefined) {
          throw new PlatformError("not_found", `There is no version ${body.version}.`);
        }
        const { subject, html, text: plain } = found;
        const version = await templates.save(active.name, active.locale, {
          subject,
          html,
          text: plain,
        });
        return { status: "created", name: active.name, version };
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/templates/{name}/preview",
      summary: "Render a template without sending it",
      description: "`unsubscribe_url` is a sample, whose page changes nothing.",
      access: requireSender,
      body: previewBody,
      handle: async ({ params, body, caller }) =>
        templates.render({
          name: params["name"]!,
          locale: body.locale,
          client: clientOf(caller),
          variables: { ...unsubscribes.createSampleVariables(), ...body.variables },
          isStrict: body.strict,
        }),
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/templates/{name}/test",
      summary: "Send a template to yourself, with [Test] in front of its subject",
      body: templateRequest.omit({ template: true, stream: true, send_at: true }),
      handle: async ({ params, body, caller, span }) => {
        const request = {
          ...body,
          variables: { ...unsubscribes.createSampleVariables(), ...body.variables },
          template: params["name"]!,
          stream: "transactional" as const,
          send_at: undefined,
          tags: [...body.tags, "test"].slice(-10),
        };
        const context = {
          client: clientOf(caller),
          isOperator: caller.kind === "operator",
          idempotencyKey: undefined,
          span,
          path: "",
          subjectPrefix: "[Test] ",
        };
        const answer = await sender.sendTemplate(request, context);
        return new StatusAnswer(answer.status, answer.body);
      },
    }),
  ];
}
