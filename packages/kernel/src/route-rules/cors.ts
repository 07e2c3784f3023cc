// The schema of a route's `cors`.
import { z } from "zod";
import { fieldName, text, unset, wholeNumber, yesNo } from "./value.ts";

const LIST_MAX = 64;
const ORIGIN = /^https?:\/\/(?:\*\.)?[a-z0-9.-]+(?::\d{1,5})?$/;

/** Requests of pages of other origins. */
export const corsSchema = z
  .strictObject({
    origins: z
      .array(
        z.string().refine((origin) => origin === "*" || ORIGIN.test(origin), {
          error: 'expected "*" or an origin in lower case, such as "https://*.example.com"',
        }),
      )
      .min(1)
      .max(LIST_MAX)
      .meta({ description: "allowed origins; `*.` stands for any subdomain" }),
    methods: unset(z.array(text(64)).max(LIST_MAX)).meta({
      description:
        "allowed methods; default: those of the route, or GET, HEAD, POST, PUT, PATCH, DELETE",
    }),
    headers: unset(z.array(fieldName()).max(LIST_MAX)).meta({
      description: "allowed request fields; default: Authorization, Content-Type",
    }),
    expose_headers: unset(z.array(fieldName()).max(LIST_MAX)).meta({
      description: "response fields that pages may read",
    }),
    credentials: yesNo().meta({ description: "allow cookies and credentials" }),
    max_age_s: unset(wholeNumber(1, 86_400)).meta({
      description:
        "time for which browsers keep the answer to a preflight, in seconds; default: 600",
    }),
  })
  .refine((cors) => cors.credentials !== true || !cors.origins.includes("*"), {
    path: ["origins"],
    error: 'expected no "*" with credentials: any page could use the credentials of a user',
  });
