// Previews of templates, saved or not, and test sends.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import { bytes, defineRoute, StatusAnswer, type ApiRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { sendAnswer } from "../send/answer.ts";
import { templateRequest } from "../send/request.ts";
import type { Sender } from "../send/sender.ts";
import { RenderedDrafts } from "../template/drafts.ts";
import { draftError, renderedAnswer, type Templates } from "../template/templates.ts";
import type { Unsubscribes } from "../unsubscribe/unsubscribes.ts";
import { clientOf, requireManager, requireSender } from "./access.ts";
import { respondView, viewQuery } from "./stored-mail.ts";
import { TEMPLATE_BYTES_MAX, templateContent, templateLocale } from "./template-routes.ts";

/** Parts that the routes use. */
export interface TemplatePreviewOptions {
  templates: Templates;
  sender: Sender;
  unsubscribes: Unsubscribes;
  clock: Clock;
}

const previewBody = z.strictObject({
  variables: z.record(z.string(), z.unknown()).default({}),
  locale: templateLocale.optional(),
  strict: z.boolean().default(false),
  source: z
    .strictObject(templateContent)
    .optional()
    .describe("Unsaved content, rendered instead of the stored one."),
});

export function createTemplatePreviewRoutes(options: TemplatePreviewOptions): ApiRoute[] {
  const { templates, sender, unsubscribes, clock } = options;
  const drafts = new RenderedDrafts(clock);
  const operation = { tag: "Templates", access: requireManager } as const;
  return [
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/templates/{name}/preview",
      summary: "Render a template without sending it",
      description:
        "`unsubscribe_url` is a sample, whose page changes nothing. With `source`, which requires `notify:manage`, the template need not exist: parts that fail are in `errors` with their place, and `html_path` shows the HTML for a minute.",
      access: requireSender,
      body: previewBody,
      bodyBytesMax: TEMPLATE_BYTES_MAX,
      answer: renderedAnswer.extend({
        variables: z.array(z.string()).optional().describe("Variables that a draft uses"),
        errors: z.array(draftError).optional().describe("Failed parts of a draft"),
        html_path: z.string().optional(),
      }),
      handle: async ({ params, body, caller }) => {
        const job = {
          name: params["name"]!,
          locale: body.locale,
          client: clientOf(caller),
          variables: { ...unsubscribes.createSampleVariables(), ...body.variables },
        };
        const { source } = body;
        if (source === undefined) return templates.render({ ...job, isStrict: body.strict });
        requireManager(caller);
        const { subject, html = null, text: plain = null } = source;
        const content = { subject, html, text: plain };
        const rendered = await templates.renderDraft({ ...job, content });
        if (rendered.html === undefined) return rendered;
        const id = drafts.add(job.client, rendered.html);
        const path = `/api/v1/templates/${encodeURIComponent(job.name)}/previews/${id}`;
        return { ...rendered, html_path: path };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/templates/{name}/previews/{id}",
      summary: "HTML of a rendered draft, without scripts and remote content",
      answer: bytes("text/html"),
      query: viewQuery,
      handle: ({ params, query, caller }) => {
        const html = drafts.read(clientOf(caller), params["id"]!);
        if (html !== undefined) return respondView(html, query);
        throw new PlatformError("not_found", "There is no such preview any more; render it again.");
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/templates/{name}/test",
      summary: "Send a template to yourself, with [Test] in front of its subject",
      body: templateRequest.omit({ template: true, stream: true, send_at: true }),
      status: [200, 202],
      answer: sendAnswer,
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
