// Operations of the operator: cutting subjects off.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, NO_BODY, type ApiRoute } from "@platform/kernel/http";
import { needScope } from "@platform/kernel/identity";
import { z } from "zod";
import { ADMIN_SCOPE } from "../identity.ts";
import type { Subjects } from "../name/subjects.ts";

/** Options of {@link createSubjectRoutes}. */
export interface SubjectRoutesOptions {
  subjects: Subjects;
  /** Disconnects the clients of a subject. */
  onCutOff: (subject: string, reason: string) => void;
}

const cutSchema = z.object({ subject: z.string(), reason: z.string(), cut_at: z.string() });
const params = z.object({ subject: z.string().min(1).max(255) });

/** Creates the operations on subjects. */
export function createSubjectRoutes({ subjects, onCutOff }: SubjectRoutesOptions): ApiRoute[] {
  const own = { tag: "Subjects", access: needScope(ADMIN_SCOPE) } as const;
  return [
    defineRoute({
      ...own,
      method: "GET",
      path: "/api/v1/subjects/cut-off",
      summary: "List the subjects that are cut off",
      answer: z.object({ subjects: z.array(cutSchema) }),
      handle: () => ({ subjects: subjects.list().map(show) }),
    }),
    defineRoute({
      ...own,
      method: "PUT",
      path: "/api/v1/subjects/{subject}/cut-off",
      summary: "Cut a subject off and disconnect its clients",
      params,
      body: z.strictObject({ reason: z.string().max(500).default("") }),
      answer: cutSchema,
      handle: async ({ params: { subject }, body: { reason } }) => {
        const row = await subjects.cutOff(subject, reason);
        onCutOff(subject, reason === "" ? "cut off by the operator" : reason);
        return show(row);
      },
    }),
    defineRoute({
      ...own,
      method: "DELETE",
      path: "/api/v1/subjects/{subject}/cut-off",
      summary: "Admit a subject again",
      params,
      answer: NO_BODY,
      problems: { 404: "The subject is not cut off" },
      handle: async ({ params: { subject } }) => {
        if (!(await subjects.readmit(subject))) {
          throw new PlatformError("not_found", "This subject is not cut off.");
        }
      },
    }),
  ];
}

function show(row: { subject: string; reason: string; cut_at: number }) {
  return { ...row, cut_at: new Date(row.cut_at).toISOString() };
}
